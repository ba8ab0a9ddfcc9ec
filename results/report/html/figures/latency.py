"""Latency over the size of a message, with confidence bands and the floors of the host."""

import math

import units
from chart import Log, curve
from figures.size_plot import SizePlot
from units import positive


def figure(operation, series, slug):
    low, high = _reach([case for one in series for case in one.cases])
    plot = SizePlot(series, lambda start, end: Log(low * 0.9, high * 1.1, start, end,
                                                   units.duration),
                    "median of the slowest rank's time")
    has_floor = False
    for place in range(len(series)):
        plot.band(place, lambda case: case["interval_low_ns"],
                  lambda case: case["interval_high_ns"])
        has_floor |= _floor(plot, place)
    plot.curves(lambda case: case["median_ns"], units.median_of)
    title = "Latency of %s" % operation
    alternative = "%s for %d curves from %s to %s: %s." % (
        title, len(series), units.size(plot.x.low), units.size(plot.x.high),
        "; ".join("%s from %s to %s" % (one.name, units.median_of(one.cases[0]),
                                        units.median_of(one.cases[-1]))
                  for one in series))
    note = "Bands: 95 % confidence interval of the median."
    if not all(math.isfinite(case["interval_high_ns"]) for case in plot.cases):
        note += " From edge to edge: too few rounds for one."
    if has_floor:
        note += " Thin dotted lines: the least time that this host's floors allow."
    elif any(positive(case["floor_ns"]) for case in plot.cases):
        note += " The floors of this host are outside of the figure."
    return plot.canvas.figure(slug, title, alternative, note, *plot.table())


def _reach(cases):
    """(the least, the greatest) time that is drawn."""
    def known(*names):
        return [case[name] for case in cases for name in names if positive(case[name])]

    low = min(known("median_ns", "interval_low_ns"))
    floors = known("floor_ns")
    if floors:  # those far below are left out: the medians are what is to be seen
        low = min(low, max(min(floors), low / 8))
    return low, max(known("median_ns", "interval_high_ns"))


def _floor(plot, place):
    """Whether the series has one to be seen."""
    cases = [case for case in plot.series[place].cases
             if positive(case["floor_ns"]) and plot.y.low <= case["floor_ns"] <= plot.y.high]
    if len(cases) < 2:
        return False
    curve(plot.canvas, place, plot.points(cases, lambda case: case["floor_ns"]), "floor")
    return True
