"""`lockstep compare` of the runs of a page: asked and understood."""

import collections
import json
import subprocess

import units

_VERDICTS = {0: "pass", 3: "unknown"}  # by the exit code of lockstep compare; else it is worse
_ORDER = ("slower", "missing", "ambiguous", "faster", "same")

Comparison = collections.namedtuple(
    "Comparison", "headline verdict base candidate counts rows cases figure", defaults=(None,))


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


def interval_of(case):
    """(low, high) of the change; () while the launches are too few for one. No time is less than
    nothing, so a wide interval ends there."""
    low, high = case["effect"]["low"], case["effect"]["high"]
    return () if low is None or high is None else (max(low, -1), high)


def _interval(case):
    ends = interval_of(case)
    return " to ".join(units.change(end, units.half_of(*ends)) for end in ends) or "–"


def _time(side):
    return units.duration(float("nan") if side["median_ns"] is None else side["median_ns"])


def _outcome(case):
    before, after = case["base"]["outcome"], case["candidate"]["outcome"]
    return after if before == after else "%s → %s" % (before, after)


def _why(case):
    ranks = ["rank %d %s (%s)" % (rank["rank"], rank["what"],
                                  units.change_of(rank["effect"]))
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
    rows = [[case["case"], case["verdict"], units.change_of(case["effect"]),
             _interval(case), _time(case["base"]),
             _time(case["candidate"]), _outcome(case), _why(case)] for case in cases]
    return Comparison(told["headline"], _VERDICTS.get(told["exit_code"], "fail"),
                      [run.shown for run in base], [run.shown for run in candidate],
                      [(name, count) for name, count in counts if count], rows, cases)
