"""Bus bandwidth over the size of a message, with confidence bands."""

import math

import units
from chart import Linear
from figures.size_plot import Series, SizePlot
from units import positive


def figure(operation, series, slug):
    series = [Series(one.name, cases) for one in series
              if (cases := [case for case in one.cases if positive(case["bus_gbps"])])]
    if not series:
        return None
    best = [max(one.cases, key=lambda case: case["bus_gbps"]) for one in series]
    plot = SizePlot(series, lambda start, end: Linear(
        0, 1.08 * max(case["bus_gbps"] for case in best), start, end, units.plain),
                    "bus bandwidth in GB/s")
    for place in range(len(series)):
        plot.band(place, lambda case: _within(case, "interval_high_ns"),
                  lambda case: _within(case, "interval_low_ns"))
    plot.curves(lambda case: case["bus_gbps"], units.bus_bandwidth_of)
    title = "Bus bandwidth of %s" % operation
    alternative = "%s: %s." % (title, "; ".join(
        "%s reaches %s at %s" % (name, units.bus_bandwidth_of(case),
                                 units.size(case["bytes"]))
        for name, case in zip(plot.names, best)))
    note = "Bytes over median, times nccl-tests' factor of the collective; 1 GB/s is 1e9 B/s."
    return plot.canvas.figure(slug, title, alternative, note, *plot.table())


def _within(case, time):
    """The bandwidth of the case if it took that time; NaN: nobody knows."""
    return math.inf if case[time] <= 0 else case["bus_gbps"] * case["median_ns"] / case[time]
