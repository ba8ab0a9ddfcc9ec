"""Loading and waiting: cases whose parts stand side by side, each with what it takes."""

import units
from chart import Canvas, Linear, upright_grid
from figures.parts import MOST_BARS, follows, table, word_of

_WIDTH = 460


def figure(run):
    cases = [case for case in run.cases if case["iterations"] > 0 and run.parts[case["case"]] and
             not any(map(follows, run.parts[case["case"]]))]
    if not cases:
        return None
    shown = cases[:MOST_BARS]
    names = units.without_common_start([case["name"] for case in shown])
    bars = [(name, [part for part in run.parts[case["case"]] if part.units == "ns"])
            for case, name in zip(shown, names)]
    title = "Loading and waiting"
    alternative = "%s: %s." % (title, "; ".join("%s: %s" % (name, ", ".join(
        "%s %s" % (word_of(part.name), units.duration(part.median)) for part in parts))
        for name, parts in bars))
    return _draw(bars).figure("loads-%s" % run.key, title, alternative,
                              "Medians over the means of visits. Load: of the slowest rank; "
                              "waited: the ranks' mean.",
                              *table(run, cases))


def _draw(bars):
    order = [part.name for part in bars[0][1]]
    height = 20 + 16 * len(order)
    canvas = Canvas(_WIDTH, 28 + height * len(bars) + 26)
    bottom = 24 + height * len(bars)
    x = Linear(0, 1.05 * max(part.median for _, parts in bars for part in parts), 4, _WIDTH - 10,
               units.duration)
    for place, name in enumerate(order):
        canvas.box(4 + 120 * place, 2, 12, 12, _class(place))
        canvas.text(20 + 120 * place, 12, word_of(name))
    upright_grid(canvas, x, 22, bottom, bottom + 16, first="start")
    for row, (name, parts) in enumerate(bars):
        y = 26 + height * row
        canvas.text(4, y + 11, name)
        medians = {part.name: part.median for part in parts}
        for place, part_name in enumerate(order):
            median = medians[part_name]
            canvas.box(x(0), y + 15 + 16 * place, x(median) - x(0), 13, _class(place),
                       "%s: %s" % (word_of(part_name), units.duration(median)))
    return canvas


def _class(place):
    return "p%d" % (2 * place + 1)
