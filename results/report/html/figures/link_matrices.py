"""Links between ranks: every pair in the shade of its time over the usual one. Two matrices, of
half round trips and of bandwidths."""

import math

import heat
import numpy
import units
from chart import Canvas
from units import positive

_WIDTH, _LEFT, _TOP, _RIGHT = 460, 74, 40, 12
_MOST_CELLS = 64  # a side
_MOST_NUMBERS = 6  # a side, where cells have room for them
_MOST_ROWS = 256


def figures(run):
    if not run.pairs:
        return []
    ranks, latency, rate = _matrices(run.pairs)
    if not numpy.isfinite(latency).any() or not numpy.isfinite(rate).any():
        return []
    usual_ns = _usual(run.links["usual_latency_ns"], latency)
    usual_gbps = _usual(run.links["usual_gbps"], rate)
    with numpy.errstate(invalid="ignore", divide="ignore"):
        return [
            _figure(run, "latency", "Half round trips between ranks",
                    "8 bytes, medians over rounds; usual: %s" % units.duration(usual_ns), ranks,
                    latency / usual_ns,
                    [[units.duration(value) for value in line] for line in latency]),
            _figure(run, "bandwidth", "Bandwidth between ranks",
                    "%s, row to column, medians over rounds; usual: %s" % (
                        units.size(run.links["bytes"]), units.bandwidth(usual_gbps)),
                    ranks, usual_gbps / rate,
                    [[units.bandwidth(value) for value in line] for line in rate])]


def _matrices(pairs):
    """Ranks that took part; ranks x ranks of half round trips (ns) and bandwidths (GB/s)."""
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
    return told if positive(told) else float(numpy.nanmedian(values))


def _figure(run, name, title, label, ranks, ratios, texts):
    alternative = "%s of %d ranks, %s. %s" % (title, len(ranks), label, _worst(run))
    note = "A cell is a pair; its shade is the time over the usual. Framed: slow in both passes."
    if len(ranks) > _MOST_CELLS:
        note = "A cell shows the slowest of about %d pairs; its shade is the time over the usual " \
            "one." % math.ceil(len(ranks) / _MOST_CELLS) ** 2
    matrix = _Matrix(run, ranks, heat.blocks(ratios, _MOST_CELLS, _MOST_CELLS), texts)
    matrix.draw(label)
    return matrix.canvas.figure("links-%s-%s" % (name, run.key), title, alternative, note,
                                *_table(run))


def _worst(run):
    found = ["rank %d and rank %d (%s)" % (pair["a"], pair["b"], pair["standing"].replace("_", " "))
             for pair in run.pairs if _is_slow(pair)]
    return "Slow: %s." % ", ".join(found[:8]) if found else "No pair is slow."


def _is_slow(pair):
    return pair["standing"].startswith("slow")


def _table(run):
    headers = ["pair", "half round trip", "95 %", "→", "←", "again", "again →", "again ←",
               "standing"]
    slowest = sorted(run.pairs,
                     key=lambda pair: -pair["latency_ns"] if positive(pair["latency_ns"]) else 0)
    return headers, [
        ["%d – %d" % (pair["a"], pair["b"]), units.duration(pair["latency_ns"]),
         "%s to %s" % (units.duration(pair["latency_low_ns"]),
                       units.duration(pair["latency_high_ns"])),
         units.bandwidth(pair["forward_gbps"]), units.bandwidth(pair["back_gbps"]),
         units.duration(pair["retest_latency_ns"]), units.bandwidth(pair["retest_forward_gbps"]),
         units.bandwidth(pair["retest_back_gbps"]), pair["standing"].replace("_", " ")]
        for pair in slowest[:_MOST_ROWS]]


def _names(run, ranks):
    """Hosts where each has one rank and a short name, else ranks."""
    hosts = [run.environment.get("ranks/%d/host" % rank, "") for rank in ranks]
    if len(set(hosts)) == len(hosts) and all(0 < len(host) <= 9 for host in hosts):
        return hosts
    return ["rank %d" % rank for rank in ranks]


class _Matrix:
    """The drawing; `cells`: a ratio each, of one pair or of the worst of a block."""

    def __init__(self, run, ranks, cells, texts):
        self.canvas = Canvas(_WIDTH, 0)
        self.ranks, self.cells, self.texts = ranks, cells, texts
        self.slow = {(pair["a"], pair["b"]) for pair in run.pairs if _is_slow(pair)}
        self.width = (_WIDTH - _LEFT - _RIGHT) / len(cells)
        self.height = min(self.width, 44)
        group = len(ranks) / len(cells)  # ranks of a cell
        names = _names(run, ranks)
        self.are_pairs = group == 1
        self.names = [names[int(group * cell)] for cell in range(len(cells))]
        self.widest_name = 7 * max(map(len, names))

    def draw(self, label):
        for row, levels in enumerate(heat.levels_of(self.cells)):
            for column, level in enumerate(levels):
                if row != column or not self.are_pairs:
                    self._cell(row, column, level)
        self._write_names()
        below = _TOP + self.height * len(self.cells)
        self.canvas.text(0, 14, label, "label")
        self.canvas.height = below + 54
        heat.legend(self.canvas, below + 14)

    def _cell(self, row, column, level):
        x, y = _LEFT + column * self.width, _TOP + row * self.height
        words = "%s → %s" % (self.names[row], self.names[column])
        if self.are_pairs:
            words += ": " + self.texts[row][column]
        self.canvas.box(x, y, self.width - 1, self.height - 1, "h%d" % level, words)
        if self.are_pairs and tuple(sorted((self.ranks[row], self.ranks[column]))) in self.slow:
            self.canvas.add("path", d="M%.1f %.1fh%.1fv%.1fh-%.1fZ" % (
                x + 1, y + 1, self.width - 3, self.height - 3, self.width - 3), class_="event")
        if len(self.ranks) <= _MOST_NUMBERS:
            self.canvas.text(x + self.width / 2, y + self.height / 2 + 4, self.texts[row][column],
                             "label", "middle")

    def _write_names(self):
        """As many as have room."""
        for row in range(0, len(self.names), max(1, math.ceil(14 / self.height))):
            self.canvas.text(_LEFT - 6, _TOP + (row + 0.5) * self.height + 4, self.names[row],
                             "tick", "end")
        for column in range(0, len(self.names), max(1, math.ceil(self.widest_name / self.width))):
            self.canvas.text(_LEFT + (column + 0.5) * self.width, _TOP - 6, self.names[column],
                             "tick", "middle")
