"""How the samples of single cases are spread: over iterations, over ranks, over both."""

import math

import numpy

import units
from chart import SERIES, Canvas, Figure, Linear, Log, axes, curve, legend

_WIDTH, _LEFT, _RIGHT = 460, 62, 12
_MOST_RANKS = 32
_MOST_ROWS, _MOST_COLUMNS = 64, 160  # of a heat map
# A cell of the heat map by its time over the case's median: up to these, and above the last.
LEVELS = (0.5, 0.9, 1.1, 1.5, 2, 4, 10)
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999)


def chosen(run, most):
    """The cases worth a close look: broken ones first, then the unsteadiest, then the smallest, the
    middle and the largest."""
    measured = [case for case in run.cases if case["iterations"] > 1]
    by_size = sorted(measured, key=lambda case: case["bytes"])

    def unsteady(case):
        ratio = case["p99_ns"] / case["median_ns"] if case["median_ns"] > 0 else 0
        return ratio if math.isfinite(ratio) else 0

    order = [case for case in measured if case["verdict"] != "pass"]
    order += sorted(measured, key=unsteady, reverse=True)[:2]
    order += [by_size[k] for k in (0, len(by_size) // 2, -1) if by_size]
    order += by_size
    unique = list({case["case"]: case for case in order}.values())[:most]
    return sorted(unique, key=lambda case: case["case"])


def _supported(count, quantile):
    """At least one sample is expected beyond it (core/stats)."""
    return count * (1 - quantile) >= 1


def percentiles(run, cases, slug):
    """Time over the case's median against the percentile, whose axis counts nines."""
    spreads = []
    for case in cases[:SERIES]:
        slowest = run.samples(case["case"]).slowest()
        if len(slowest) < 10:
            continue
        levels = [q for q in _QUANTILES if _supported(len(slowest), q)]
        spreads.append((case, len(slowest), levels, numpy.quantile(slowest, levels)))
    if not spreads:
        return None
    canvas = Canvas(_WIDTH, 0)
    top = legend(canvas, 4, 14, [case["name"] for case, _, _, _ in spreads], _WIDTH - 8) + 24
    canvas.height = top + 272
    ratios = [values / numpy.median(values[2:3]) for _, _, _, values in spreads]
    x = Linear(-math.log10(1.0), max(-math.log10(1 - levels[-1]) for _, _, levels, _ in spreads),
               _LEFT, _WIDTH - _RIGHT, str)
    marks = [(q, "%g" % (100 * q)) for q in (0, 0.5, 0.9, 0.99, 0.999, 0.9999)
             if -math.log10(1 - q) <= x.high + 1e-9]
    x.ticks = lambda: [(-math.log10(1 - q), label) for q, label in marks]
    y = Log(min(ratio.min() for ratio in ratios) * 0.95,
            max(2.0, max(ratio.max() for ratio in ratios) * 1.1), top + 230, top,
            lambda value: units.plain(value) + "×", base=2)
    axes(canvas, x, y, "percentile of the iterations", "time, of the case's median")
    canvas.line(x.start, y(1), x.end, y(1), "axis")
    for place, ((_, _, levels, _), ratio) in enumerate(zip(spreads, ratios)):
        curve(canvas, place, [(x(-math.log10(1 - q)), y(value))
                              for q, value in zip(levels, ratio)])
    title = "Percentiles"
    alternative = "Spread of single iterations: %s." % "; ".join(
        "%s has its median at %s and %s at the %g th percentile" % (
            case["name"], units.duration(values[2]), units.duration(values[-1]), 100 * levels[-1])
        for case, _, levels, values in spreads)
    wanted = (0.0, 0.5, 0.9, 0.99, 0.999)
    rows = [[case["name"], str(count)] +
            [units.duration(values[levels.index(q)]) if q in levels else "–" for q in wanted]
            for case, count, levels, values in spreads]
    return Figure(slug, title, canvas.svg(title, alternative), alternative,
                  "A percentile is shown when at least one sample is expected beyond it.",
                  ["case", "samples", "least", "p50", "p90", "p99", "p99.9"], rows)


def _rank_rows(spent, entry):
    """[rank, 5, 25, 50, 75, 95 % of its time, median lag of its entry, how often the slowest]."""
    whole = ~numpy.isnan(spent).any(axis=1)
    spent, entry = spent[whole], entry[whole]
    if not len(spent):
        return []
    quantiles = numpy.quantile(spent, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0).T
    lags = numpy.median(entry - entry.min(axis=1, keepdims=True), axis=0)
    slowest = numpy.bincount(spent.argmax(axis=1), minlength=spent.shape[1]) / len(spent)
    rows = [[rank, *quantiles[rank], lags[rank], slowest[rank]] for rank in range(len(lags))]
    if len(rows) > _MOST_RANKS:
        middle = numpy.median(quantiles[:, 2])
        rows.sort(key=lambda row: -abs(row[3] - middle))
        rows = sorted(rows[:_MOST_RANKS])
    return rows


def skew(run, case, samples, slug):
    """The time of each rank in the collective; who comes late waits least."""
    rows = _rank_rows(samples.spent, samples.entry)
    if not rows:
        return None
    height = 18 * len(rows)
    canvas = Canvas(_WIDTH, 30 + height + 22)
    x = Linear(0, 1.05 * max(row[5] for row in rows), _LEFT, _WIDTH - _RIGHT, units.duration)
    for value, label in x.ticks():
        canvas.line(x(value), 26, x(value), 30 + height, "grid")
        canvas.text(x(value), 30 + height + 15, label, "tick", "middle")
    canvas.text(0, 14, "each rank's time: 5 to 95 %, middle half, median", "label")
    for place, (rank, p5, p25, p50, p75, p95, lag, share) in enumerate(rows):
        y = 30 + 18 * place + 9
        canvas.text(_LEFT - 6, y + 4, "rank %d" % rank, "tick", "end")
        canvas.line(x(p5), y, x(p95), y, "whisker")
        canvas.box(x(p25), y - 5, x(p75) - x(p25), 10, "middle-half",
                   "rank %d: median %s, enters %s after the first, slowest in %s" % (
                       rank, units.duration(p50), units.duration(lag), units.percent(100 * share)))
        canvas.line(x(p50), y - 7, x(p50), y + 7, "median")
    title = "Ranks in %s" % case["name"]
    worst = max(rows, key=lambda row: row[6])
    alternative = "Time of each rank in %s. Rank %d enters last, %s after the first (median)." % (
        case["name"], worst[0], units.duration(worst[6]))
    note = ""
    if samples.spent.shape[1] > len(rows):
        note = "Of %d ranks the %d that differ most." % (samples.spent.shape[1], len(rows))
    table = [[str(row[0]), *(units.duration(value) for value in row[1:6]),
              units.duration(row[6]), units.percent(100 * row[7])] for row in rows]
    return Figure(slug, title, canvas.svg(title, alternative), alternative, note,
                  ["rank", "5 %", "25 %", "median", "75 %", "95 %", "enters after the first",
                   "is the slowest"], table)


def blocks(values, rows, columns):
    """The worst of each block, where there are more ranks or iterations than cells."""
    for axis, most in ((0, rows), (1, columns)):
        if values.shape[axis] > most:
            edges = numpy.linspace(0, values.shape[axis], most + 1).astype(int)[:-1]
            values = numpy.fmax.reduceat(values, edges, axis=axis)
    return values


def heat_map(run, case, samples, slug):
    """Rank by iteration: every time in the shade of its ratio to the median."""
    spent = samples.spent.T
    iterations = spent.shape[1] if spent.ndim == 2 else 0
    slowest = samples.slowest()
    if iterations < 2 or not len(slowest):
        return None
    cells = blocks(spent / numpy.median(slowest), _MOST_ROWS, _MOST_COLUMNS)
    height = max(3, min(22, 200 // len(cells)))
    canvas = Canvas(_WIDTH, 30 + height * len(cells) + 68)
    width = (_WIDTH - _LEFT - _RIGHT) / cells.shape[1]
    levels = numpy.where(numpy.isnan(cells), len(LEVELS) + 1, numpy.searchsorted(LEVELS, cells))
    _draw_cells(canvas, levels, width, height)
    group = math.ceil(len(spent) / len(cells))
    for row in range(0, len(cells), max(1, 14 // height)):
        canvas.text(_LEFT - 6, 30 + height * row + height / 2 + 4, "rank %d" % (row * group),
                    "tick", "end")
    below = 30 + height * len(cells)
    canvas.text(0, 16, "time of each rank, over the median of the case", "label")
    canvas.text(_LEFT, below + 16, "iteration 0", "tick")
    canvas.text(_WIDTH - _RIGHT, below + 16, "%d" % (iterations - 1), "tick", "end")
    heat_legend(canvas, below + 34)
    title = "Every iteration of %s" % case["name"]
    with numpy.errstate(invalid="ignore"):
        above = (spent > 2 * numpy.median(slowest)).sum(axis=1)
    alternative = "Heat map of %d ranks by %d iterations of %s; times above twice the median: %s." \
        % (len(spent), iterations, case["name"],
           ", ".join("rank %d %d times" % (rank, count)
                     for rank, count in list(enumerate(above))[:_MOST_RANKS]))
    worst = numpy.nanargmax(numpy.where(numpy.isnan(spent), -1, spent), axis=1)
    rows = [[str(rank), units.duration(float(spent[rank, worst[rank]])), str(int(worst[rank])),
             str(int(above[rank])), str(int(numpy.isnan(spent[rank]).sum()))]
            for rank in range(min(len(spent), 256))]
    step = [math.ceil(iterations / cells.shape[1]), group]
    note = "" if max(step) == 1 else "A cell shows the longest of about %d iterations%s." % (
        step[0], " and %d ranks" % group if group > 1 else "")
    return Figure(slug, title, canvas.svg(title, alternative), alternative, note,
                  ["rank", "longest", "in iteration", "above twice the median", "not reached"],
                  rows)


def _draw_cells(canvas, levels, width, height):
    """Neighbours of a shade are one piece, pieces of a shade one path."""
    paths = {}
    for row, line in enumerate(levels):
        edges = numpy.flatnonzero(numpy.diff(line)) + 1
        for first, last in zip([0, *edges], [*edges, len(line)]):
            paths.setdefault(int(line[first]), []).append(
                "M%.1f %dh%.1fv%dh-%.1fZ" % (_LEFT + first * width, 30 + height * row,
                                             (last - first) * width, height,
                                             (last - first) * width))
    for level, pieces in sorted(paths.items()):
        canvas.add("path", d="".join(pieces), class_="h%d" % level)


def heat_legend(canvas, y):
    names = ["≤ %g×" % level for level in LEVELS] + ["above"]
    for level, name in enumerate(names):
        x, below = 2 + level % 4 * 115, y + level // 4 * 18
        canvas.box(x, below, 12, 12, "h%d" % level)
        canvas.text(x + 15, below + 11, name, "tick")


def figures(run, most):
    """The percentiles of all chosen cases; then ranks and iterations of each, which are pairs."""
    cases = chosen(run, most)
    over_all, pairs = percentiles(run, cases, "percentiles-%s" % run.key), []
    for case in cases:
        samples = run.samples(case["case"])
        slug = "%s-%d" % (run.key, case["case"])
        pairs.append(skew(run, case, samples, "skew-" + slug))
        pairs.append(heat_map(run, case, samples, "heat-" + slug))
    return [over_all] if over_all else [], [figure for figure in pairs if figure]
