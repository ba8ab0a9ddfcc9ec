"""Which figures a section of the page has, in which order."""

import math

from chart import SERIES
from figures import (bandwidth, effects, heat_map, latency, loads, percentiles, rank_times,
                     step_parts, step_timeline, tails)
from figures.size_plot import series_of

_MOST_CASES = 5  # of a run, whose samples are drawn
_MOST_STEPS = 4  # of a run, whose timeline is drawn


def _drawn(figures):
    return [figure for figure in figures if figure]


def curves(runs):
    """Two figures for every operation and every six series of it."""
    found = []
    for operation, series in series_of(runs).items():
        if all(len(one.cases) < 2 for one in series):
            continue  # nothing to draw a curve through; the table of cases has it
        for first in range(0, len(series), SERIES):
            some = series[first:first + SERIES]
            slug = "%s-%d" % (operation, first // SERIES)
            found.append(latency.figure(operation, some, "latency-" + slug))
            found.append(bandwidth.figure(operation, some, "bandwidth-" + slug))
    return _drawn(found)


def spread(runs):
    """The first six series of each operation."""
    return _drawn(tails.figure(operation, series[:SERIES], "tails-" + operation)
                  for operation, series in series_of(runs).items())


def steps(run):
    timed = [case for case in run.cases if case["iterations"] > 0 and
             any(part.name == "backward_ns" for part in run.parts[case["case"]])]
    return _drawn([draw.figure(run) for draw in (step_parts, loads, effects)] +
                  [step_timeline.figure(run, case) for case in timed[:_MOST_STEPS]])


def details(run):
    """The percentiles of all chosen cases; then ranks and iterations of each, which are pairs."""
    cases = _worth_a_look(run)
    errors = {row["case"]: row["clock_error_ns"] for row in run.rows("arrivals")}
    over_all, pairs = percentiles.figure(run, cases), []
    for case in cases:
        samples = run.times(case["case"])
        slug = "%s-%d" % (run.key, case["case"])
        error = errors.get(case["case"], math.inf)
        pairs += [rank_times.figure(case, samples, error, slug),
                  heat_map.figure(case, samples, slug)]
    return _drawn([over_all]), _drawn(pairs)


def _worth_a_look(run):
    """Broken cases first, then the unsteadiest, then the smallest, the middle and the largest."""
    measured = [case for case in run.cases if case["iterations"] > 1]
    by_size = sorted(measured, key=lambda case: case["bytes"])
    order = [case for case in measured if case["verdict"] != "pass"]
    order += sorted(measured, key=_unsteadiness, reverse=True)[:2]
    order += [by_size[k] for k in (0, len(by_size) // 2, -1) if by_size]
    order += by_size
    unique = list({case["case"]: case for case in order}.values())[:_MOST_CASES]
    return sorted(unique, key=lambda case: case["case"])


def _unsteadiness(case):
    ratio = case["p99_ns"] / case["median_ns"] if case["median_ns"] > 0 else 0
    return ratio if math.isfinite(ratio) else 0
