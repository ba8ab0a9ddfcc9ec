"""The time of each rank in the collective; who comes late waits least. Stamps of two hosts are off
by what their clocks are: what is smaller is not told."""

import collections
import math

import numpy
import units
from chart import Canvas, Linear, upright_grid

_WIDTH, _LEFT, _RIGHT = 460, 62, 12
_MOST_RANKS = 32

# Quantiles of a rank's time; how late it enters (median), and the share in which it is the slowest.
_Row = collections.namedtuple("_Row", "rank p5 p25 p50 p75 p95 lag share")


def figure(case, samples, clock_error_ns, slug):
    """`clock_error_ns`: by so much stamps of ranks can be off; infinite: they do not compare."""
    rows = _rows(samples.spent, samples.entry, clock_error_ns)
    if not rows:
        return None
    alternative = "Time of each rank in %s." % case["name"]
    late = [row for row in rows if row.lag > 0]  # no comparison with NaN holds
    if late:
        last = max(late, key=lambda row: row.lag)
        alternative += " Rank %d enters last, %s after the first (median)." % (
            last.rank, units.duration(last.lag))
    ranks = samples.spent.shape[1]
    note = "Of %d ranks the %d that differ most." % (ranks, len(rows)) if ranks > len(rows) else ""
    table = [[str(row.rank), *map(units.duration, row[1:7]), units.percent(100 * row.share)]
             for row in rows]
    return _draw(rows).figure(
        "skew-" + slug, "Ranks in %s" % case["name"], alternative, note,
        ["rank", "5 %", "25 %", "median", "75 %", "95 %", "enters after the first",
         "is the slowest"], table)


def _rows(spent, entry, clock_error_ns):
    whole = ~numpy.isnan(spent).any(axis=1)
    spent, entry = spent[whole], entry[whole]
    if not len(spent):
        return []
    quantiles = numpy.quantile(spent, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0).T
    lags = numpy.median(entry - entry.min(axis=1, keepdims=True), axis=0)
    lags = numpy.where(lags < clock_error_ns, math.nan, lags)
    slowest = numpy.bincount(spent.argmax(axis=1), minlength=spent.shape[1]) / len(spent)
    rows = [_Row(rank, *quantiles[rank], lags[rank], slowest[rank]) for rank in range(len(lags))]
    middle = numpy.median(quantiles[:, 2])
    return sorted(sorted(rows, key=lambda row: -abs(row.p50 - middle))[:_MOST_RANKS])


def _draw(rows):
    height = 18 * len(rows)
    canvas = Canvas(_WIDTH, 30 + height + 22)
    x = Linear(0, 1.05 * max(row.p95 for row in rows), _LEFT, _WIDTH - _RIGHT, units.duration)
    upright_grid(canvas, x, 26, 30 + height, 30 + height + 15)
    canvas.text(0, 14, "each rank's time: 5 to 95 %, middle half, median", "label")
    for place, row in enumerate(rows):
        y = 30 + 18 * place + 9
        canvas.text(_LEFT - 6, y + 4, "rank %d" % row.rank, "tick", "end")
        canvas.line(x(row.p5), y, x(row.p95), y, "whisker")
        canvas.box(x(row.p25), y - 5, x(row.p75) - x(row.p25), 10, "middle-half",
                   "rank %d: median %s, enters %s after the first, slowest in %s" % (
                       row.rank, units.duration(row.p50), units.duration(row.lag),
                       units.percent(100 * row.share)))
        canvas.line(x(row.p50), y - 7, x(row.p50), y + 7, "median")
    return canvas
