"""Time over that of the median iteration against the percentile, whose axis counts nines."""

import collections
import math

import numpy
import units
from chart import SERIES, Canvas, Linear, Log, axes, curve, legend

_WIDTH, _LEFT, _RIGHT = 460, 62, 12
_PLOT = 230  # height of the plot
_LEVELS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999)
_MARKS = (0, 0.5, 0.9, 0.99, 0.999, 0.9999)
_COLUMNS = (0.0, 0.5, 0.9, 0.99, 0.999)

# Of a case: how many samples, the levels that they support, and the times there.
_Spread = collections.namedtuple("_Spread", "name count levels times")


def figure(run, cases):
    spreads = [spread for case in cases[:SERIES]
               if (spread := _spread(case["name"], run.times(case["case"]).slowest()))]
    if not spreads:
        return None
    alternative = "Spread of single iterations: %s." % "; ".join(
        "%s has its median at %s and %s at the %g th percentile" % (
            one.name, units.duration(one.times[2]), units.duration(one.times[-1]),
            100 * one.levels[-1]) for one in spreads)
    rows = [[one.name, str(one.count)] + [_time_at(one, level) for level in _COLUMNS]
            for one in spreads]
    return _draw(spreads).figure(
        "percentiles-%s" % run.key, "Percentiles", alternative,
        "A percentile is shown when at least one sample is expected beyond it.",
        ["case", "samples", "least", "p50", "p90", "p99", "p99.9"], rows)


def _spread(name, slowest):
    """None of samples that are too few."""
    if len(slowest) < 10:
        return None
    # At least one sample is expected beyond each (core/stats).
    levels = [level for level in _LEVELS if len(slowest) * (1 - level) >= 1]
    return _Spread(name, len(slowest), levels, numpy.quantile(slowest, levels))


def _time_at(spread, level):
    return units.duration(spread.times[spread.levels.index(level)]) \
        if level in spread.levels else "–"


def _nines(level):
    return -math.log10(1 - level)


def _draw(spreads):
    canvas = Canvas(_WIDTH, 0)
    top = legend(canvas, 4, 14, [one.name for one in spreads], _WIDTH - 8) + 24
    canvas.height = top + _PLOT + 42
    x = Linear(_nines(0), max(_nines(one.levels[-1]) for one in spreads), _LEFT, _WIDTH - _RIGHT,
               str)
    x.ticks = lambda: [(_nines(mark), "%g" % (100 * mark)) for mark in _MARKS
                       if _nines(mark) <= x.high + 1e-9]
    ratios = [one.times / numpy.median(one.times[2:3]) for one in spreads]
    y = Log(min(ratio.min() for ratio in ratios) * 0.95,
            max(2.0, max(ratio.max() for ratio in ratios) * 1.1), top + _PLOT, top,
            lambda value: units.plain(value) + "×", base=2)
    axes(canvas, x, y, "percentile of the iterations", "time, over that of the median iteration")
    canvas.line(x.start, y(1), x.end, y(1), "axis")
    for place, (one, ratio) in enumerate(zip(spreads, ratios)):
        curve(canvas, place, [(x(_nines(level)), y(value))
                              for level, value in zip(one.levels, ratio)])
    return canvas
