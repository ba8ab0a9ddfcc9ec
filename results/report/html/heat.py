"""What heat maps share: shades by the ratio to what is usual, and how many cells there are."""

import numpy

# The shade of a cell by its time over the usual one: up to these, and above the last.
LEVELS = (0.5, 0.9, 1.1, 1.5, 2, 4, 10)
UNKNOWN = len(LEVELS) + 1


def levels_of(ratios):
    """Numbers of shades; NaN is unknown."""
    return numpy.where(numpy.isnan(ratios), UNKNOWN, numpy.searchsorted(LEVELS, ratios))


def blocks(values, rows, columns):
    """The worst of each block, where there are more ranks or iterations than cells."""
    for axis, most in ((0, rows), (1, columns)):
        if values.shape[axis] > most:
            edges = numpy.linspace(0, values.shape[axis], most + 1).astype(int)[:-1]
            values = numpy.fmax.reduceat(values, edges, axis=axis)
    return values


def legend(canvas, y):
    names = ["≤ %g×" % level for level in LEVELS] + ["above"]
    for level, name in enumerate(names):
        x, below = 2 + level % 4 * 115, y + level // 4 * 18
        canvas.box(x, below, 12, 12, "h%d" % level)
        canvas.text(x + 15, below + 11, name, "tick")
