"""`lockstep compare` of the runs of a page. All that the page knows of it is in this file."""

import collections
import json
import subprocess

import units
from chart import Canvas, Figure, Linear

_WIDTH = 460
_MOST_ROWS = 40
_ORDER = ("slower", "missing", "ambiguous", "faster", "same")

Comparison = collections.namedtuple("Comparison", "headline base candidate counts rows differences "
                                    "figure")


class CompareFailed(Exception):
    """The tool could not compare; the text is its own line."""


def sides(runs):
    """The last run against those before it, of one program and plan; None when there are none."""
    last = runs[-1]
    base = [run for run in runs[:-1]
            if (run.name, run.plan_hash) == (last.name, last.plan_hash) and run.id != last.id]
    return (base, last) if base else None


def _ask(lockstep, base, candidate):
    command = [lockstep, "compare", "--format=json", "--base", *(run.path for run in base),
               "--candidate", candidate.path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False)
    if done.returncode not in (0, 1, 3, 5):
        raise CompareFailed(done.stderr.decode("utf-8", "replace").strip())
    return json.loads(done.stdout)


def _percent(value):
    return "–" if value is None else "%+.1f %%" % (100 * value)


def compare(lockstep, runs):
    """Comparison, or None where the runs are of different plans."""
    found = sides(runs)
    if not found:
        return None
    base, candidate = found
    told = _ask(lockstep, base, candidate)
    cases = sorted(told["cases"], key=lambda case: _ORDER.index(case["verdict"])
                   if case["verdict"] in _ORDER else -1)
    counts = [(name, sum(case["verdict"] == name for case in cases)) for name in _ORDER]
    rows = [[case["case"], case["verdict"], _percent(case["effect"]["estimate"]),
             "%s to %s" % (_percent(case["effect"]["low"]), _percent(case["effect"]["high"])),
             units.duration(case["base"]["median_ns"] or float("nan")),
             units.duration(case["candidate"]["median_ns"] or float("nan")),
             case["why"] + (" " + case["resolve"] if case["resolve"] else "")] for case in cases]
    return Comparison(told["headline"], [run.label() for run in base], candidate.label(),
                      [(name, count) for name, count in counts if count], rows,
                      [(one["fact"], one["base"], one["candidate"])
                       for one in told["differences"]], _draw(cases))


def _draw(cases):
    """A line a case: the change of its time with the interval; right of 0 the candidate is slower."""
    shown = [case for case in cases if case["effect"]["estimate"] is not None][:_MOST_ROWS]
    if not shown:
        return None
    ends = [abs(value) for case in shown for value in case["effect"].values() if value is not None]
    reach = min(1.0, 1.1 * max(ends + [0.05]))
    canvas = Canvas(_WIDTH, 30 + 17 * len(shown) + 24)
    x = Linear(-reach, reach, 200, _WIDTH - 10, lambda value: "%+.0f %%" % (100 * value))
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
        low = x(max(-reach, effect["low"] if effect["low"] is not None else -reach))
        high = x(min(reach, effect["high"] if effect["high"] is not None else reach))
        canvas.line(low, y, high, y, "whisker")
        at = x(max(-reach, min(reach, effect["estimate"])))
        canvas.add("circle", "<title>%s: %s</title>" % (case["verdict"],
                                                        _percent(effect["estimate"])),
                   cx=float(at), cy=float(y), r=4, class_="mark change-" + case["verdict"])
    title = "Change of the times"
    alternative = "%s of %d cases: %s." % (title, len(cases), "; ".join(
        "%s %s, %s" % (case["case"], case["verdict"], _percent(case["effect"]["estimate"]))
        for case in shown[:12]))
    note = "Candidate against base, with 95 % intervals" + (
        "; the first %d of %d cases." % (len(shown), len(cases)) if len(cases) > len(shown)
        else ".")
    return Figure("comparison", title, canvas.svg(title, alternative), alternative, note, [], [])
