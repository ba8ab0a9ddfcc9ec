"""How much longer the slow iterations are, by size."""

import units
from chart import Log
from figures.size_plot import Series, SizePlot
from units import positive


def figure(operation, series, slug):
    series = [Series(one.name, [case for case in one.cases if positive(case["p99_ns"])])
              for one in series]
    series = [one for one in series if len(one.cases) > 1]
    if not series:
        return None
    highest = max(_ratio(case) for one in series for case in one.cases)
    plot = SizePlot(series, lambda start, end: Log(
        0.9, max(4.0, 1.1 * highest), start, end, lambda value: units.plain(value) + "×", base=2),
                    "99th percentile, of the median")
    plot.curves(_ratio, lambda case: units.duration(case["p99_ns"]))
    title = "Slow iterations of %s" % operation
    alternative = "99th percentile over median of %s; at most %s." % (
        ", ".join(plot.names), units.plain(highest))
    rows = [[case["name"], units.duration(case["min_ns"]), units.median_of(case),
             units.duration(case["p99_ns"]), units.duration(case["max_ns"]),
             "%d" % case["max_rank"]] for case in plot.cases]
    return plot.canvas.figure(slug, title, alternative, "",
                              ["case", "least", "median", "p99", "longest", "on rank"], rows)


def _ratio(case):
    return case["p99_ns"] / case["median_ns"]
