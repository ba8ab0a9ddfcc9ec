"""What curves over the size of a message share: the plot, and which cases have a curve."""

import collections
import math

import units
from chart import Canvas, Log, axes, band, curve, legend, marker

_WIDTH, _LEFT, _RIGHT = 460, 62, 12
_PLOT = 230  # height of the plot

Series = collections.namedtuple("Series", "name cases")  # cases: rows of /summary by size


def series_of(runs):
    """{operation: [Series]}: of sizes and of single buckets; steps and sequences have no curve."""
    panels = collections.OrderedDict()
    for run in runs:
        of = run.label() if len(runs) > 1 else ""
        for case in filter(lambda case, run=run: _has_curve(run, case), run.cases):
            name = "%s %s" % (case["model"], case["operation"]) if case["model"] else _variant(case)
            panel = panels.setdefault(case["operation"], collections.OrderedDict())
            panel.setdefault((of, case["backend"], case["ranks"], name), []).append(case)
    return {operation: _named(found) for operation, found in panels.items()}


def _has_curve(run, case):
    measured = case["iterations"] > 0 and case["bytes"] > 0 and case["median_ns"] > 0
    sequence = case["model"] and case["bucket"] < 0
    return measured and not sequence and not run.parts.get(case["case"])


def _variant(case):
    """The name of a case without its size: what a curve has in common."""
    sizes = {str(case["bytes"]), units.size(case["bytes"]).replace(" ", "")}
    return "/".join(word for word in case["name"].split("/") if word not in sizes)


def _named(found):
    """Names of series with what differs among them only."""
    columns = list(zip(*found))
    differ = [len(set(column)) > 1 for column in columns]
    differ[-1] = differ[-1] or not any(differ)
    variants = sorted(set(columns[-1]))
    short = dict(zip(variants, units.without_common_start(variants)))
    series = []
    for key, cases in found.items():
        words = [("%d ranks" % word if place == 2 else short.get(word, str(word)))
                 for place, word in enumerate(key) if differ[place]]
        series.append(Series(" ".join(words), sorted(cases, key=lambda case: case["bytes"])))
    return series


class SizePlot:
    """A legend, an axis of sizes, and an upright axis: `y_scale` of where that starts and ends."""

    def __init__(self, series, y_scale, y_title):
        self.series, self.names = series, [one.name for one in series]
        self.cases = [case for one in series for case in one.cases]
        self.canvas = Canvas(_WIDTH, 0)
        top = legend(self.canvas, 4, 14, self.names, _WIDTH - 8) + 24
        self.canvas.height = top + _PLOT + 42
        sizes = [case["bytes"] for case in self.cases]
        self.x = Log(min(sizes), max(sizes), _LEFT, _WIDTH - _RIGHT, units.size, base=2)
        self.x.thin(58)
        self.y = y_scale(top + _PLOT, top)
        axes(self.canvas, self.x, self.y, "bytes of a message", y_title)

    def points(self, cases, value_of):
        return [(self.x(case["bytes"]), self.y(value_of(case))) for case in cases]

    def band(self, place, low_of, high_of):
        """From edge to edge of the plot where nothing is known."""
        cases = self.series[place].cases
        band(self.canvas, place,
             self.points(cases, lambda case: self._within(low_of(case), self.y.low)),
             self.points(cases, lambda case: self._within(high_of(case), self.y.high)))

    def _within(self, value, unknown):
        return unknown if math.isnan(value) else min(self.y.high, max(self.y.low, value))

    def curves(self, value_of, words_of):
        """A curve a series; a marker a case, which says the words."""
        for place, one in enumerate(self.series):
            points = self.points(one.cases, value_of)
            curve(self.canvas, place, points)
            for case, point in zip(one.cases, points):
                marker(self.canvas, place, *point, "%s: %s" % (case["name"], words_of(case)))

    def table(self):
        headers = ["case", "median", "± 95 %", "bus bandwidth", "of this host's limit", "verdict"]
        rows = [[case["name"], units.median_of(case), units.precision_of(case),
                 units.bus_bandwidth_of(case), units.limit_of(case),
                 case["verdict"]] for case in self.cases]
        return headers, rows
