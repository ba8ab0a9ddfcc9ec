"""`lockstep compare` of the runs of a page. All that the page knows of it is in this file."""

import collections
import json
import subprocess

import units
from chart import Canvas, Figure, Linear

_WIDTH = 460
_MOST_ROWS = 40
_WORSE = 5  # exit code of lockstep compare
_ORDER = ("slower", "missing", "ambiguous", "faster", "same")

Comparison = collections.namedtuple(
    "Comparison", "headline worse base candidate counts rows figure")


class CompareFailed(Exception):
    """The tool could not compare; the text is its own line."""


def sides(runs, candidates):
    """The last `candidates` runs against those before them, as far as they are of the last one's
    program and cases (not plan: launches have seeds of their own); None when a side is empty."""
    def what(run):
        return run.name, sorted((case["name"], case["backend"], case["ranks"])
                                for case in run.cases)

    last = what(runs[-1])

    def like(some):
        return [run for run in some if what(run) == last]

    candidate = like(runs[-candidates:])
    ids = {run.id for run in candidate}
    base = [run for run in like(runs[:-candidates]) if run.id not in ids]
    return (base, candidate) if base else None


def _ask(lockstep, base, candidate):
    command = [lockstep, "compare", "--format=json", "--base", *(run.path for run in base),
               "--candidate", *(run.path for run in candidate)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False)
    if done.returncode not in (0, 1, 3, 5):
        raise CompareFailed(done.stderr.decode("utf-8", "replace").strip())
    return json.loads(done.stdout)


def _percent(value):
    return "–" if value is None else "%+.1f %%" % (100 * value)


def _interval(case):
    """(low, high) of the change; () while the launches are too few for one."""
    low, high = case["effect"]["low"], case["effect"]["high"]
    return () if low is None or high is None or low <= -1 else (low, high)


def _time(side):
    return units.duration(float("nan") if side["median_ns"] is None else side["median_ns"])


def _outcome(case):
    before, after = case["base"]["outcome"], case["candidate"]["outcome"]
    return after if before == after else "%s → %s" % (before, after)


def _why(case):
    ranks = ["rank %d %s (%s)" % (rank["rank"], rank["what"], _percent(rank["effect"]["estimate"]))
             for rank in case["slower_ranks"]]
    return "; ".join(part for part in [case["why"], *ranks, case["resolve"]] if part)


def compare(lockstep, runs, candidates):
    """Comparison, or None where the runs are of different plans."""
    found = sides(runs, candidates)
    if not found:
        return None
    base, candidate = found
    if len(base) + len(candidate) > 2:  # a pair needs no words
        for run in base + candidate:
            run.side = "base" if run in base else "candidate"
    told = _ask(lockstep, base, candidate)
    cases = sorted(told["cases"], key=lambda case: (case["outcome_change"] != "worse",
                                                    _ORDER.index(case["verdict"])))
    counts = [(name, sum(case["verdict"] == name for case in cases)) for name in _ORDER]
    rows = [[case["case"], case["verdict"], _percent(case["effect"]["estimate"]),
             " to ".join(map(_percent, _interval(case))) or "–", _time(case["base"]),
             _time(case["candidate"]), _outcome(case), _why(case)] for case in cases]
    return Comparison(told["headline"], told["exit_code"] == _WORSE, [run.id for run in base],
                      [run.id for run in candidate],
                      [(name, count) for name, count in counts if count], rows, _draw(cases))


def _draw(cases):
    """A line a case: the change of its time, with its interval; to the right it is slower."""
    shown = [case for case in cases if case["effect"]["estimate"] is not None][:_MOST_ROWS]
    if not shown:
        return None
    ends = [abs(value) for case in shown for value in _interval(case) + (
        case["effect"]["estimate"],)]
    reach = min(1.0, 1.1 * max(ends + [0.05]))
    canvas = Canvas(_WIDTH, 30 + 17 * len(shown) + 24)
    x = Linear(-reach, reach, 200, _WIDTH - 26,
               lambda value: "%+.0f %%" % (100 * value) if abs(value) > 1e-9 else "0 %")
    bottom = 26 + 17 * len(shown)
    for value, label in x.ticks():
        canvas.line(x(value), 22, x(value), bottom, "axis" if abs(value) < 1e-9 else "grid")
        canvas.text(x(value), bottom + 15, label, "tick", "middle")
    canvas.text(200, 14, "← faster", "tick")
    canvas.text(_WIDTH - 4, 14, "slower →", "tick", "end")
    for place, case in enumerate(shown):
        y = 26 + 17 * place + 8
        effect = case["effect"]
        name = case["case"] if len(case["case"]) <= 30 else "…" + case["case"][-29:]
        canvas.text(192, y + 4, name, "tick", "end", case["case"])
        if _interval(case):
            canvas.line(x(max(-reach, effect["low"])), y, x(min(reach, effect["high"])), y,
                        "whisker")
        at = x(max(-reach, min(reach, effect["estimate"])))
        canvas.add("circle", "<title>%s: %s</title>" % (case["verdict"],
                                                        _percent(effect["estimate"])),
                   cx=float(at), cy=float(y), r=4, class_="mark change-" + case["verdict"])
    title = "Change of the times"
    alternative = "%s of %d cases: %s." % (title, len(cases), "; ".join(
        "%s %s, %s" % (case["case"], case["verdict"], _percent(case["effect"]["estimate"]))
        for case in shown[:12]))
    note = "Candidate against base, with 95 % intervals where there are launches enough"
    note += "; the first %d of %d cases." % (len(shown), len(cases)) \
        if len(cases) > len(shown) else "."
    return Figure("comparison", title, canvas.svg(title, alternative), alternative, note, [], [])
