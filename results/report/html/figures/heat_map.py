"""Every iteration of a case: rank by iteration, every time in the shade of its ratio to the
median iteration's."""

import math

import heat
import numpy
import units
from chart import Canvas

_WIDTH, _LEFT, _RIGHT, _TOP = 460, 62, 12, 30
_MOST_ROWS, _MOST_COLUMNS = 64, 160
_MOST_RANKS = 32  # told in words
_MOST_NUMBERS = 256


def figure(case, samples, slug):
    spent = samples.spent.T
    slowest = samples.slowest()
    iterations = spent.shape[1] if spent.ndim == 2 else 0
    if iterations < 2 or not len(slowest):
        return None
    median = numpy.median(slowest)
    cells = heat.blocks(spent / median, _MOST_ROWS, _MOST_COLUMNS)
    group = math.ceil(len(spent) / len(cells))  # ranks of a cell
    with numpy.errstate(invalid="ignore"):
        above = (spent > 2 * median).sum(axis=1)
    title = "Every iteration of %s" % case["name"]
    alternative = "Heat map of %d ranks by %d iterations of %s; times above twice that " \
        "of the median iteration: %s." % (len(spent), iterations, case["name"], ", ".join(
            "rank %d %d times" % told for told in list(enumerate(above))[:_MOST_RANKS]))
    return _draw(cells, group, iterations).figure(
        "heat-" + slug, title, alternative, _note(math.ceil(iterations / cells.shape[1]), group),
        ["rank", "longest", "in iteration", "above twice the median", "not reached"],
        _rows(spent, above))


def _note(iterations, ranks):
    """Of a cell."""
    if max(iterations, ranks) == 1:
        return ""
    return "A cell shows the longest of about %d iterations%s." % (
        iterations, " and %d ranks" % ranks if ranks > 1 else "")


def _rows(spent, above):
    worst = numpy.nanargmax(numpy.where(numpy.isnan(spent), -1, spent), axis=1)
    return [[str(rank), units.duration(float(spent[rank, worst[rank]])), str(int(worst[rank])),
             str(int(above[rank])), str(int(numpy.isnan(spent[rank]).sum()))]
            for rank in range(min(len(spent), _MOST_NUMBERS))]


def _draw(cells, group, iterations):
    height = max(3, min(22, 200 // len(cells)))
    below = _TOP + height * len(cells)
    canvas = Canvas(_WIDTH, below + 68)
    _draw_cells(canvas, heat.levels_of(cells), height)
    for row in range(0, len(cells), max(1, 14 // height)):
        canvas.text(_LEFT - 6, _TOP + height * row + height / 2 + 4, "rank %d" % (row * group),
                    "tick", "end")
    canvas.text(0, 16, "time of each rank, over that of the median iteration", "label")
    canvas.text(_LEFT, below + 16, "iteration 0", "tick")
    canvas.text(_WIDTH - _RIGHT, below + 16, "%d" % (iterations - 1), "tick", "end")
    heat.legend(canvas, below + 34)
    return canvas


def _draw_cells(canvas, levels, height):
    """Neighbours of a shade are one piece, pieces of a shade one path."""
    width = (_WIDTH - _LEFT - _RIGHT) / levels.shape[1]
    paths = {}
    for row, line in enumerate(levels):
        edges = numpy.flatnonzero(numpy.diff(line)) + 1
        for first, last in zip([0, *edges], [*edges, len(line)]):
            paths.setdefault(int(line[first]), []).append(
                "M%.1f %dh%.1fv%dh-%.1fZ" % (_LEFT + first * width, _TOP + height * row,
                                             (last - first) * width, height,
                                             (last - first) * width))
    for level, pieces in sorted(paths.items()):
        canvas.add("path", d="".join(pieces), class_="h%d" % level)
