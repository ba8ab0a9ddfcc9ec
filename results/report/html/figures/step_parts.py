"""Where the time of a training step goes: a bar a case, the parts of the slowest rank's step one
after the other."""

import units
from chart import LETTER, Canvas, Linear, upright_grid
from figures.parts import MOST_BARS, PART_CLASS, follows, table, word_of

_WIDTH = 460
# Also of the parts of a step without a timeline.
_COLOURS = {**PART_CLASS, "launch_ns": "p1", "completion_ns": "p3"}


def figure(run):
    cases = [case for case in run.cases
             if case["iterations"] > 0 and any(map(follows, run.parts[case["case"]]))]
    if not cases:
        return None
    shown = cases[:MOST_BARS]
    names = units.without_common_start([case["name"] for case in shown])
    bars = [(case, name, list(filter(follows, run.parts[case["case"]])))
            for case, name in zip(shown, names)]
    title = "Where the time of a step goes"
    alternative = "%s: %s." % (title, "; ".join(
        "%s %s, of which %s" % (name, units.median_of(case), ", ".join(
            map(_told, parts))) for case, name, parts in bars))
    note = "Medians over iterations, of the rank whose step was the longest."
    if len(cases) > len(shown):
        note += " The first %d of %d cases." % (len(shown), len(cases))
    return _draw(bars).figure("parts-%s" % run.key, title, alternative, note, *table(run, cases))


def _told(part):
    return "%s %s" % (word_of(part.name), units.part(part))


def _draw(bars):
    canvas = Canvas(_WIDTH, 0)
    x = Linear(0, 1.02 * max(case["median_ns"] for case, _, _ in bars), 4, _WIDTH - 10,
               units.duration)
    top = _legend(canvas, [part.name for part in bars[0][2]]) + 10
    bottom = top + 40 * len(bars)
    canvas.height = bottom + 26
    upright_grid(canvas, x, top - 4, bottom, bottom + 16, first="start")
    for row, (case, name, parts) in enumerate(bars):
        y = top + 40 * row
        canvas.text(4, y + 12, "%s: %s" % (name, units.median_of(case)), "label")
        start = 0.0
        for part in parts:
            if units.positive(part.median):
                canvas.box(x(start), y + 17, x(start + part.median) - x(start), 14,
                           _COLOURS.get(part.name, "p0"),
                           "%s: %s" % (word_of(part.name), units.part(part)))
                start += part.median
    return canvas


def _legend(canvas, names):
    """Returns the y below it."""
    at, y = 4, 2
    for name in names:
        need = 28 + LETTER * len(word_of(name))
        if at > 4 and at + need > _WIDTH:
            at, y = 4, y + 18
        canvas.box(at, y, 12, 12, _COLOURS.get(name, "p0"))
        canvas.text(at + 16, y + 10, word_of(name))
        at += need
    return y + 18
