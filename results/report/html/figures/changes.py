"""A line a case of a comparison: the change of its time, with its interval. To the right it is
slower."""

import comparison
import units
from chart import Canvas, Linear, upright_grid

_WIDTH, _LEFT = 460, 200
_MOST_ROWS = 40
_MOST_TOLD = 12
_LONGEST_NAME = 30


def figure(cases):
    shown = [case for case in cases if case["effect"]["estimate"] is not None][:_MOST_ROWS]
    if not shown:
        return None
    title = "Change of the times"
    alternative = "%s of %d cases: %s." % (title, len(cases), "; ".join(
        "%s %s, %s" % (case["case"], case["verdict"], units.change_of(case["effect"]))
        for case in shown[:_MOST_TOLD]))
    note = "Candidate against base, with 95 % intervals where there are launches enough"
    note += "; the first %d of %d cases." % (len(shown), len(cases)) \
        if len(cases) > len(shown) else "."
    return _draw(shown).figure("comparison", title, alternative, note, [], [])


def _draw(cases):
    canvas = Canvas(_WIDTH, 30 + 17 * len(cases) + 24)
    x = _scale(cases)
    bottom = 26 + 17 * len(cases)
    upright_grid(canvas, x, 22, bottom, bottom + 15, main=0, first="middle")
    canvas.text(_LEFT, 14, "← faster", "tick")
    canvas.text(_WIDTH - 4, 14, "slower →", "tick", "end")
    for place, case in enumerate(cases):
        y = 26 + 17 * place + 8
        canvas.text(_LEFT - 8, y + 4, _shortened(case["case"]), "tick", "end", case["case"])
        low_high = [_within(x, value) for value in comparison.interval_of(case)]
        if low_high:
            canvas.line(low_high[0], y, low_high[1], y, "whisker")
        told = "%s: %s" % (case["verdict"], units.change_of(case["effect"]))
        canvas.add("circle", "<title>%s</title>" % told,
                   cx=float(_within(x, case["effect"]["estimate"])), cy=float(y), r=4,
                   class_="mark change-" + case["verdict"])
    return canvas


def _scale(cases):
    ends = [abs(value) for case in cases
            for value in comparison.interval_of(case) + (case["effect"]["estimate"],)]
    reach = min(1.0, 1.1 * max(ends + [0.05]))
    return Linear(-reach, reach, _LEFT, _WIDTH - 26,
                  lambda value: "%+.0f %%" % (100 * value) if abs(value) > 1e-9 else "0 %")


def _within(x, value):
    """What is beyond the axis is drawn at its end."""
    return x(max(x.low, min(x.high, value)))


def _shortened(name):
    return name if len(name) <= _LONGEST_NAME else "…" + name[1 - _LONGEST_NAME:]
