"""Links between ranks: every pair in the shade of its time over the usual one."""

import math

import numpy

import units
from chart import Canvas, Figure
from distribution import LEVELS, blocks, heat_legend

_WIDTH, _LEFT, _TOP, _RIGHT = 460, 74, 40, 12
_MOST_CELLS = 64  # a side
_MOST_NUMBERS = 6  # a side, where cells have room for them
_MOST_ROWS = 256


def _finite(value):
    return math.isfinite(value) and value > 0


def _matrices(run):
    """Ranks that took part; ranks x ranks of half round trips (ns) and bandwidths (GB/s)."""
    pairs = run.links["pairs"]
    ranks = sorted({rank for pair in pairs for rank in (pair["a"], pair["b"])})
    place = {rank: index for index, rank in enumerate(ranks)}
    latency = numpy.full((len(ranks), len(ranks)), numpy.nan)
    rate = latency.copy()
    for pair in pairs:
        a, b = place[pair["a"]], place[pair["b"]]
        latency[a, b] = latency[b, a] = pair["latency_ns"]
        rate[a, b], rate[b, a] = pair["forward_gbps"], pair["back_gbps"]
    return ranks, latency, rate


def _usual(told, values):
    """What the run says is usual; of a run that judges none, the median."""
    return told if _finite(told) else float(numpy.nanmedian(values))


def _names(run, ranks):
    """Hosts where each has one rank and a short name, else ranks."""
    hosts = [run.environment.get("ranks/%d/host" % rank, "") for rank in ranks]
    if len(set(hosts)) == len(hosts) and all(0 < len(host) <= 9 for host in hosts):
        return hosts
    return ["rank %d" % rank for rank in ranks]


def _cells(canvas, run, ranks, ratios, texts):
    names = _names(run, ranks)
    shown = blocks(numpy.where(numpy.isnan(ratios), -1, ratios), _MOST_CELLS, _MOST_CELLS)
    width = (_WIDTH - _LEFT - _RIGHT) / len(shown)
    height = min(width, 44)
    group = len(ranks) / len(shown)  # ranks of a cell
    firsts = [int(group * cell) for cell in range(len(shown))]
    slow = {(pair["a"], pair["b"]) for pair in run.links["pairs"]
            if pair["standing"].startswith("slow")}
    for row, line in enumerate(shown):
        for column, ratio in enumerate(line):
            if row == column and group == 1:
                continue
            level = len(LEVELS) + 1 if ratio < 0 else int(numpy.searchsorted(LEVELS, ratio))
            x, y = _LEFT + column * width, _TOP + row * height
            ends = "%s → %s" % (names[firsts[row]], names[firsts[column]])
            canvas.box(x, y, width - 1, height - 1, "h%d" % level,
                       "%s: %s" % (ends, texts[row][column]) if group == 1 else ends)
            if group == 1 and tuple(sorted((ranks[row], ranks[column]))) in slow:
                canvas.add("path", d="M%.1f %.1fh%.1fv%.1fh-%.1fZ" % (
                    x + 1, y + 1, width - 3, height - 3, width - 3), class_="event")
            if len(ranks) <= _MOST_NUMBERS:
                canvas.text(x + width / 2, y + height / 2 + 4, texts[row][column], "label",
                            "middle")
    step = max(1, math.ceil(14 / height))
    for row in range(0, len(shown), step):
        canvas.text(_LEFT - 6, _TOP + (row + 0.5) * height + 4, names[firsts[row]], "tick", "end")
    widest = 7 * max(map(len, names))
    step = max(1, math.ceil(widest / width))
    for column in range(0, len(shown), step):
        canvas.text(_LEFT + (column + 0.5) * width, _TOP - 6, names[firsts[column]], "tick",
                    "middle")
    return _TOP + height * len(shown)


def _heat_map(run, slug, title, label, ranks, ratios, texts, alternative, headers, rows):
    canvas = Canvas(_WIDTH, 0)
    below = _cells(canvas, run, ranks, ratios, texts)
    canvas.text(0, 14, label, "label")
    canvas.height = below + 54
    heat_legend(canvas, below + 14)
    note = "A cell is a pair; its shade is the time over the usual. Framed: slow in both passes."
    if len(ranks) > _MOST_CELLS:
        note = "A cell shows the slowest of about %d pairs; its shade is the time over the usual " \
            "one." % math.ceil(len(ranks) / _MOST_CELLS) ** 2
    return Figure(slug, title, canvas.svg(title, alternative), alternative, note, headers, rows)


def _worst(run):
    found = ["rank %d and rank %d (%s)" % (pair["a"], pair["b"], pair["standing"].replace("_", " "))
             for pair in run.links["pairs"] if pair["standing"].startswith("slow")]
    return "Slow: %s." % ", ".join(found[:8]) if found else "No pair is slow."


def _rows(run):
    headers = ["pair", "half round trip", "95 %", "→", "←", "again", "again →", "again ←",
               "standing"]
    rows = []
    slowest = sorted(run.links["pairs"],
                     key=lambda pair: -pair["latency_ns"] if _finite(pair["latency_ns"]) else 0)
    for pair in slowest[:_MOST_ROWS]:
        rows.append(["%d – %d" % (pair["a"], pair["b"]), units.duration(pair["latency_ns"]),
                     "%s to %s" % (units.duration(pair["latency_low_ns"]),
                                   units.duration(pair["latency_high_ns"])),
                     units.bandwidth(pair["forward_gbps"]), units.bandwidth(pair["back_gbps"]),
                     units.duration(pair["retest_latency_ns"]),
                     units.bandwidth(pair["retest_forward_gbps"]),
                     units.bandwidth(pair["retest_back_gbps"]),
                     pair["standing"].replace("_", " ")])
    return headers, rows


def figures(run):
    if not run.links or not run.links["pairs"]:
        return []
    ranks, latency, rate = _matrices(run)
    if not numpy.isfinite(latency).any() or not numpy.isfinite(rate).any():
        return []
    headers, rows = _rows(run)
    usual_ns = _usual(run.links["usual_latency_ns"], latency)
    usual_gbps = _usual(run.links["usual_gbps"], rate)
    size = units.size(run.links["bytes"])
    with numpy.errstate(invalid="ignore", divide="ignore"):
        drawn = [
            ("latency", "Half round trips between ranks",
             "8 bytes; usual: %s" % units.duration(usual_ns), latency / usual_ns,
             [[units.duration(value) for value in line] for line in latency]),
            ("bandwidth", "Bandwidth between ranks",
             "messages of %s, row to column; usual: %s" % (size, units.bandwidth(usual_gbps)),
             usual_gbps / rate, [[units.bandwidth(value) for value in line] for line in rate])]
    found = []
    for name, title, label, ratios, texts in drawn:
        alternative = "%s of %d ranks, %s. %s" % (title, len(ranks), label, _worst(run))
        found.append(_heat_map(run, "links-%s-%s" % (name, run.key), title, label, ranks, ratios,
                               texts, alternative, headers, rows))
    return found
