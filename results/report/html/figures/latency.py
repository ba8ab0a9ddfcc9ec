"""Latency and bus bandwidth over the size of a message, with confidence bands and floors."""

import collections
import itertools
import math

import units
from chart import (SERIES, Canvas, Figure, Linear, Log, axes, band, curve, legend, marker)

_WIDTH, _LEFT, _RIGHT = 460, 62, 12
_PLOT = 230  # height of the plot

Series = collections.namedtuple("Series", "name cases")  # cases: rows of /summary by size


def _measured(case):
    return case["iterations"] > 0 and case["bytes"] > 0 and case["median_ns"] > 0


def _variant(case):
    """The name of a case without its size: what a curve has in common."""
    sizes = {str(case["bytes"]), units.size(case["bytes"]).replace(" ", "")}
    return "/".join(word for word in case["name"].split("/") if word not in sizes)


def series_of(runs):
    """{operation: [Series]}: of sizes and of single buckets; steps and sequences have no curve."""
    panels = collections.OrderedDict()
    for run in runs:
        for case in run.cases:
            sequence = case["model"] and case["bucket"] < 0
            if not _measured(case) or sequence or run.parts.get(case["case"]):
                continue
            name = "%s %s" % (case["model"], case["operation"]) if case["model"] else _variant(case)
            of = (run.side + " " + run.key).strip() if len(runs) > 1 else ""
            key = (of, case["backend"], case["ranks"], name)
            panel = panels.setdefault(case["operation"], collections.OrderedDict())
            panel.setdefault(key, []).append(case)
    return {operation: _named(found) for operation, found in panels.items()}


def _shorter(names):
    """Without the beginning that all have, up to a slash."""
    if len(names) < 2:
        return names
    while all("/" in name for name in names) and len({name.split("/")[0] for name in names}) == 1:
        names = [name.split("/", 1)[1] for name in names]
    return names


def _named(found):
    """Names of series with what differs among them only."""
    columns = list(zip(*found))
    differ = [len(set(column)) > 1 for column in columns]
    differ[-1] = differ[-1] or not any(differ)
    variants = sorted(set(columns[-1]))
    short = dict(zip(variants, _shorter(variants)))
    series = []
    for key, cases in found.items():
        words = [("%d ranks" % word if place == 2 else short.get(word, str(word)))
                 for place, word in enumerate(key) if differ[place]]
        series.append(Series(" ".join(words), sorted(cases, key=lambda case: case["bytes"])))
    return series


def _canvas(series):
    names = [one.name for one in series]
    canvas = Canvas(_WIDTH, 0)
    top = legend(canvas, 4, 14, names, _WIDTH - 8) + 24
    canvas.height = top + _PLOT + 42
    return canvas, top, names


def _size_axis(series):
    sizes = [case["bytes"] for one in series for case in one.cases]
    return Log(min(sizes), max(sizes), _LEFT, _WIDTH - _RIGHT, units.size, base=2)


def _place_ticks(scale):
    """At least 62 units apart, or their words touch."""
    ticks = scale.ticks()
    while len(ticks) > 2 and abs(scale(ticks[1][0]) - scale(ticks[0][0])) < 58:
        ticks = ticks[::2]
    scale.ticks = lambda: ticks


def _finite(*values):
    return all(math.isfinite(value) and value > 0 for value in values)


def _known(cases):
    """Neighbouring cases that have an interval, group by group."""
    for has, group in itertools.groupby(
            cases, lambda case: _finite(case["interval_low_ns"], case["interval_high_ns"])):
        if has:
            yield list(group)


def latency(operation, series, slug):
    canvas, top, names = _canvas(series)
    cases = [case for one in series for case in one.cases]
    lows = [value for case in cases for value in (case["median_ns"], case["interval_low_ns"])
            if _finite(value)]
    # Floors far below are left out: the medians are what is to be seen.
    bounds = [case["floor_ns"] for case in cases if _finite(case["floor_ns"])]
    lows += [max(min(bounds), min(lows) / 8)] if bounds else []
    highs = [value for case in cases for value in (case["median_ns"], case["interval_high_ns"])
             if _finite(value)]
    x = _size_axis(series)
    _place_ticks(x)
    y = Log(min(lows) * 0.9, max(highs) * 1.1, top + _PLOT, top, units.duration)
    axes(canvas, x, y, "bytes of a message", "median of the slowest rank's time")
    floors = False
    for place, one in enumerate(series):
        for sure in _known(one.cases):
            band(canvas, place, [(x(case["bytes"]), y(case["interval_low_ns"])) for case in sure],
                 [(x(case["bytes"]), y(case["interval_high_ns"])) for case in sure])
        bounds = [(x(case["bytes"]), y(case["floor_ns"])) for case in one.cases
                  if _finite(case["floor_ns"]) and y.low <= case["floor_ns"] <= y.high]
        if len(bounds) > 1:
            floors = True
            curve(canvas, place, bounds, "floor")
    for place, one in enumerate(series):
        points = [(x(case["bytes"]), y(case["median_ns"])) for case in one.cases]
        curve(canvas, place, points)
        for case, point in zip(one.cases, points):
            marker(canvas, place, *point, "%s: %s" % (
                case["name"], units.duration(case["median_ns"])))
    title = "Latency of %s" % operation
    alternative = "%s for %d curves from %s to %s: %s." % (
        title, len(series), units.size(x.low), units.size(x.high),
        "; ".join("%s from %s to %s" % (name, units.duration(one.cases[0]["median_ns"]),
                                        units.duration(one.cases[-1]["median_ns"]))
                  for name, one in zip(names, series)))
    note = "Bands: 95 % confidence interval of the median."
    if floors:
        note += " Thin dotted lines: the least time that this host's floors allow."
    elif any(_finite(case["floor_ns"]) for case in cases):
        note += " The floors of this host are outside of the figure."
    return Figure(slug, title, canvas.svg(title, alternative), alternative, note, *_table(cases))


def bandwidth(operation, series, slug):
    series = [Series(one.name, [case for case in one.cases if _finite(case["bus_gbps"])])
              for one in series]
    series = [one for one in series if one.cases]
    if not series:
        return None
    canvas, top, names = _canvas(series)
    cases = [case for one in series for case in one.cases]
    x = _size_axis(series)
    _place_ticks(x)
    y = Linear(0, 1.08 * max(case["bus_gbps"] for case in cases), top + _PLOT, top, units.plain)
    axes(canvas, x, y, "bytes of a message", "bus bandwidth in GB/s")
    for place, one in enumerate(series):
        for sure in _known(one.cases):
            work = [case["bus_gbps"] * case["median_ns"] for case in sure]
            band(canvas, place,
                 [(x(case["bytes"]), y(min(y.high, done / case["interval_low_ns"])))
                  for case, done in zip(sure, work)],
                 [(x(case["bytes"]), y(done / case["interval_high_ns"]))
                  for case, done in zip(sure, work)])
    for place, one in enumerate(series):
        points = [(x(case["bytes"]), y(case["bus_gbps"])) for case in one.cases]
        curve(canvas, place, points)
        for case, point in zip(one.cases, points):
            marker(canvas, place, *point, "%s: %s" % (
                case["name"], units.bandwidth(case["bus_gbps"])))
    best = [max(one.cases, key=lambda case: case["bus_gbps"]) for one in series]
    title = "Bus bandwidth of %s" % operation
    alternative = "%s: %s." % (title, "; ".join(
        "%s reaches %s at %s" % (name, units.bandwidth(case["bus_gbps"]),
                                 units.size(case["bytes"])) for name, case in zip(names, best)))
    note = "Bytes over median, times nccl-tests' factor of the collective; 1 GB/s is 1e9 B/s."
    return Figure(slug, title, canvas.svg(title, alternative), alternative, note, *_table(cases))


def tails(operation, series, slug):
    """How much longer the slow iterations are, by size."""
    series = [Series(one.name, [case for case in one.cases if _finite(case["p99_ns"])])
              for one in series]
    series = [one for one in series if len(one.cases) > 1]
    if not series:
        return None
    canvas, top, names = _canvas(series)
    cases = [case for one in series for case in one.cases]
    x = _size_axis(series)
    _place_ticks(x)
    highest = max(case["p99_ns"] / case["median_ns"] for case in cases)
    y = Log(0.9, max(4.0, 1.1 * highest), top + _PLOT, top,
            lambda value: units.plain(value) + "×", base=2)
    axes(canvas, x, y, "bytes of a message", "99th percentile, of the median")
    for place, one in enumerate(series):
        points = [(x(case["bytes"]), y(case["p99_ns"] / case["median_ns"])) for case in one.cases]
        curve(canvas, place, points)
        for case, point in zip(one.cases, points):
            marker(canvas, place, *point, "%s: %s" % (
                case["name"], units.duration(case["p99_ns"])))
    title = "Slow iterations of %s" % operation
    alternative = "99th percentile over median of %s; at most %s." % (
        ", ".join(names), units.plain(highest))
    rows = [[case["name"], units.duration(case["min_ns"]), units.duration(case["median_ns"]),
             units.duration(case["p99_ns"]), units.duration(case["max_ns"]),
             "%d" % case["max_rank"]] for case in cases]
    return Figure(slug, title, canvas.svg(title, alternative), alternative, "",
                  ["case", "least", "median", "p99", "longest", "on rank"], rows)


def spread(runs):
    """The first six series of each operation."""
    drawn = [tails(operation, series[:SERIES], "tails-" + operation)
             for operation, series in series_of(runs).items()]
    return [figure for figure in drawn if figure]


def _table(cases):
    headers = ["case", "median", "± 95 %", "bus bandwidth", "of this host's limit", "verdict"]
    rows = [[case["name"], units.duration(case["median_ns"]),
             units.precision(case["interval_low_ns"], case["median_ns"],
                             case["interval_high_ns"]),
             units.bandwidth(case["bus_gbps"]), units.percent(case["percent_of_limit"]),
             case["verdict"]] for case in cases]
    return headers, rows


def figures(runs):
    """Two figures for every operation and every six series of it."""
    drawn = []
    for operation, series in series_of(runs).items():
        if all(len(one.cases) < 2 for one in series):
            continue  # nothing to draw a curve through; the table of cases has it
        for first in range(0, len(series), SERIES):
            some = series[first:first + SERIES]
            slug = "%s-%d" % (operation, first // SERIES)
            drawn.append(latency(operation, some, "latency-" + slug))
            drawn.append(bandwidth(operation, some, "bandwidth-" + slug))
    return [figure for figure in drawn if figure]
