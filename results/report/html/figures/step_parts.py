"""Training steps and loads: where their time goes, and what the options change."""

import math

import units
from chart import LETTER, Canvas, Figure, Linear, Log

_WIDTH = 460
_MOST_BARS = 24


# The class, so the colour, of a part of a step.
CLASS_OF = {"buffer_broadcast_ns": "p0", "forward_ns": "p1", "backward_ns": "p2",
            "exposed_communication_ns": "p3", "copy_back_ns": "p4"}
# And of the parts of a step without a timeline.
_COLOURS = {**CLASS_OF, "launch_ns": "p1", "completion_ns": "p3"}


def _follows(part):
    """Parts of the slowest rank follow each other and add up; communication runs beside them."""
    return part.units == "ns" and part.over == "slowest" and part.name != "communication_ns"


def word_of(part_name):
    return part_name[:-3].replace("_", " ") if part_name.endswith("_ns") else \
        part_name.replace("_", " ")


def _short(names):
    while len(names) > 1 and all("/" in name for name in names) and \
            len({name.split("/")[0] for name in names}) == 1:
        names = [name.split("/", 1)[1] for name in names]
    return names


def _finite(value):
    return math.isfinite(value) and value > 0


def parts(run, slug):
    """A bar a case: the parts of the slowest rank's step one after the other."""
    cases = [case for case in run.cases
             if case["iterations"] > 0 and any(_follows(part) for part in run.parts[case["case"]])]
    if not cases:
        return None
    shown = cases[:_MOST_BARS]
    names = _short([case["name"] for case in shown])
    order = [part.name for part in run.parts[shown[0]["case"]] if _follows(part)]
    canvas = Canvas(_WIDTH, 0)
    x = Linear(0, 1.02 * max(case["median_ns"] for case in shown), 4, _WIDTH - 10, units.duration)
    top = _part_legend(canvas, order) + 10
    bottom = top + 40 * len(shown)
    canvas.height = bottom + 26
    for value, label in x.ticks():
        canvas.line(x(value), top - 4, x(value), bottom, "grid")
        canvas.text(x(value), bottom + 16, label, "tick", "middle" if value else "start")
    for row, (case, name) in enumerate(zip(shown, names)):
        y = top + 40 * row
        total = "%s: %s" % (name, units.duration(case["median_ns"]))
        canvas.text(4, y + 12, total, "label")
        start = 0.0
        for part in run.parts[case["case"]]:
            if _follows(part) and _finite(part.median):
                canvas.box(x(start), y + 17, x(start + part.median) - x(start), 14,
                           _COLOURS.get(part.name, "p0"),
                           "%s: %s" % (word_of(part.name), units.duration(part.median)))
                start += part.median
    title = "Where the time of a step goes"
    alternative = "%s: %s." % (title, "; ".join(
        "%s %s, of which %s" % (name, units.duration(case["median_ns"]), ", ".join(
            "%s %s" % (word_of(part.name), units.duration(part.median))
            for part in run.parts[case["case"]] if _follows(part)))
        for case, name in zip(shown, names)))
    note = "Medians over iterations, of the rank whose step was the longest."
    if len(cases) > len(shown):
        note += " The first %d of %d cases." % (len(shown), len(cases))
    return Figure(slug, title, canvas.svg(title, alternative), alternative, note,
                  *_parts_table(run, cases))


def _part_legend(canvas, order):
    """Returns the y below it."""
    at, y = 4, 2
    for name in order:
        need = 28 + LETTER * len(word_of(name))
        if at > 4 and at + need > _WIDTH:
            at, y = 4, y + 18
        canvas.box(at, y, 12, 12, _COLOURS.get(name, "p0"))
        canvas.text(at + 16, y + 10, word_of(name))
        at += need
    return y + 18


def _parts_table(run, cases):
    names = [part.name for part in run.parts[cases[0]["case"]]]
    headers = ["case", "step", "± 95 %"] + [word_of(name) for name in names]
    rows = []
    for case in cases:
        found = {part.name: part for part in run.parts[case["case"]]}
        rows.append([case["name"], units.duration(case["median_ns"]),
                     units.precision(case["interval_low_ns"], case["median_ns"],
                                     case["interval_high_ns"])] +
                    [units.part(found[name].median, found[name].units) if name in found else "–"
                     for name in names])
    return headers, rows


def loads(run, slug):
    """Cases whose parts stand side by side: what each takes, with its interval."""
    cases = [case for case in run.cases if case["iterations"] > 0 and run.parts[case["case"]] and
             not any(_follows(part) for part in run.parts[case["case"]])]
    if not cases:
        return None
    shown = cases[:_MOST_BARS]
    order = [part.name for part in run.parts[shown[0]["case"]] if part.units == "ns"]
    names = _short([case["name"] for case in shown])
    row_height = 20 + 16 * len(order)
    canvas = Canvas(_WIDTH, 28 + row_height * len(shown) + 26)
    bottom = 24 + row_height * len(shown)
    x = Linear(0, 1.05 * max(part.median for case in shown for part in run.parts[case["case"]]
                             if part.units == "ns"), 4, _WIDTH - 10, units.duration)
    for place, name in enumerate(order):
        canvas.box(4 + 120 * place, 2, 12, 12, "p%d" % (2 * place + 1))
        canvas.text(20 + 120 * place, 12, word_of(name))
    for value, label in x.ticks():
        canvas.line(x(value), 22, x(value), bottom, "grid")
        canvas.text(x(value), bottom + 16, label, "tick", "middle" if value else "start")
    for row, (case, name) in enumerate(zip(shown, names)):
        y = 26 + row_height * row
        canvas.text(4, y + 11, name)
        found = {part.name: part for part in run.parts[case["case"]]}
        for place, part_name in enumerate(order):
            part = found[part_name]
            canvas.box(x(0), y + 15 + 16 * place, x(part.median) - x(0), 13,
                       "p%d" % (2 * place + 1),
                       "%s: %s" % (word_of(part_name), units.duration(part.median)))
    title = "Loading and waiting"
    alternative = "%s: %s." % (title, "; ".join("%s: %s" % (
        name, ", ".join("%s %s" % (word_of(part.name), units.duration(part.median))
                        for part in run.parts[case["case"]] if part.units == "ns"))
        for case, name in zip(shown, names)))
    return Figure(slug, title, canvas.svg(title, alternative), alternative,
                  "Load: of the slowest rank; waited: the ranks' mean.", *_parts_table(run, cases))


def effects(run, slug):
    """Ratios of paired cases with their intervals; right of 1 is faster than the baseline."""
    rows = [row for row in run.effects if _finite(row["ratio"])]
    if not rows:
        return None
    names = ["%s=%s instead of %s" % (row["option"], row["value"], row["baseline_value"])
             for row in rows]
    where = _short([run.cases[row["case"]]["name"] for row in rows])
    names = ["%s (%s)" % (name, case) if names.count(name) > 1 else name
             for name, case in zip(names, where)]
    canvas = Canvas(_WIDTH, 24 + 34 * len(rows) + 26)
    bottom = 20 + 34 * len(rows)
    sure = [value for row in rows for value in (row["interval_low"], row["interval_high"],
                                                row["ratio"]) if _finite(value)]
    x = Log(min(0.79, 0.95 * min(sure)), max(1.25, 1.05 * max(sure)), 20, _WIDTH - 16,
            units.plain)
    x.ticks = lambda: [(value, units.plain(value) + "×")
                       for value in (0.25, 0.5, 0.8, 1, 1.25, 2, 4) if x.low <= value <= x.high]
    for value, label in x.ticks():
        canvas.line(x(value), 18, x(value), bottom, "axis" if value == 1 else "grid")
        canvas.text(x(value), bottom + 15, label, "tick", "middle")
    canvas.text(0, 12, "← slower", "tick")
    canvas.text(_WIDTH - 4, 12, "faster →", "tick", "end")
    for place, (row, name) in enumerate(zip(rows, names)):
        y = 22 + 34 * place
        case = run.cases[row["case"]]["name"]
        canvas.text(8, y + 11, name, "label", title=case)
        if _finite(row["interval_low"]) and _finite(row["interval_high"]):
            canvas.line(x(row["interval_low"]), y + 22, x(row["interval_high"]), y + 22, "whisker")
        canvas.add("circle", "<title>%s</title>" % units.plain(row["ratio"]),
                   cx=float(x(row["ratio"])), cy=float(y + 22), r=4.5, class_="mark s0")
    title = "What the options change"
    alternative = "%s: %s." % (title, "; ".join(
        "%s: %s times as fast" % (name, units.plain(row["ratio"]))
        for row, name in zip(rows, names)))
    table = [[name, run.cases[row["case"]]["name"], units.plain(row["ratio"]),
              "%s to %s" % (units.plain(row["interval_low"]), units.plain(row["interval_high"])),
              str(row["rounds"])] for row, name in zip(rows, names)]
    return Figure(slug, title, canvas.svg(title, alternative), alternative,
                  "Ratio of the paired cases' times, round by round, with its 95 % interval.",
                  ["option", "case", "times as fast", "95 % interval", "rounds"], table)


def figures(run):
    drawn = [draw(run, "%s-%s" % (draw.__name__, run.key)) for draw in (parts, loads, effects)]
    return [figure for figure in drawn if figure]
