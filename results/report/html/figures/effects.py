"""What the options change: ratios of paired cases with their intervals. Right of 1 is faster than
the baseline."""

import units
from chart import Canvas, Log, upright_grid
from units import positive

_WIDTH = 460
_TICKS = (0.25, 0.5, 0.8, 1, 1.25, 2, 4)


def figure(run):
    rows = [row for row in run.effects if positive(row["ratio"])]
    if not rows:
        return None
    cases = [run.cases[row["case"]]["name"] for row in rows]
    names = _names(rows, cases)
    title = "What the options change"
    alternative = "%s: %s." % (title, "; ".join(
        "%s: %s times as fast" % (name, _ratio(row))
        for row, name in zip(rows, names)))
    table = [[name, case, _ratio(row),
              units.interval(row["interval_low"], row["interval_high"]),
              str(row["rounds"])] for row, name, case in zip(rows, names, cases)]
    return _draw(rows, names, cases).figure(
        "effects-%s" % run.key, title, alternative,
        "Ratio of the paired cases' times, round by round, with its 95 % interval.",
        ["option", "case", "times as fast", "95 % interval", "rounds"], table)


def _ratio(row):
    return units.plain(row["ratio"], units.half_of(row["interval_low"], row["interval_high"]))


def _names(rows, cases):
    """The case tells apart what is named alike."""
    names = ["%s=%s instead of %s" % (row["option"], row["value"], row["baseline_value"])
             for row in rows]
    return ["%s (%s)" % (name, case) if names.count(name) > 1 else name
            for name, case in zip(names, units.without_common_start(cases))]


def _draw(rows, names, cases):
    canvas = Canvas(_WIDTH, 24 + 34 * len(rows) + 26)
    bottom = 20 + 34 * len(rows)
    x = _scale(rows)
    upright_grid(canvas, x, 18, bottom, bottom + 15, main=1)
    canvas.text(0, 12, "← slower", "tick")
    canvas.text(_WIDTH - 4, 12, "faster →", "tick", "end")
    for place, (row, name, case) in enumerate(zip(rows, names, cases)):
        y = 22 + 34 * place
        canvas.text(8, y + 11, name, "label", title=case)
        if positive(row["interval_high"]):  # one that reaches zero ends with the axis
            low = row["interval_low"] if positive(row["interval_low"]) else x.low
            canvas.line(x(low), y + 22, x(row["interval_high"]), y + 22, "whisker")
        canvas.add("circle", "<title>%s</title>" % _ratio(row),
                   cx=float(x(row["ratio"])), cy=float(y + 22), r=4.5, class_="mark s0")
    return canvas


def _scale(rows):
    sure = [row[name] for row in rows for name in ("interval_low", "interval_high", "ratio")
            if positive(row[name])]
    x = Log(min(0.79, 0.95 * min(sure)), max(1.25, 1.05 * max(sure)), 20, _WIDTH - 16, units.plain)
    x.ticks = lambda: [(value, units.plain(value) + "×")
                       for value in _TICKS if x.low <= value <= x.high]
    return x
