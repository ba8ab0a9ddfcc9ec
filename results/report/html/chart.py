"""Charts as SVG text. Colours are CSS variables of page.css, so that one drawing serves the light
and the dark page and print; series differ by dash and marker too."""

import collections
import itertools
import math
import re

from markupsafe import escape

# A drawing with all that the page says about it. `alternative` tells in words what is seen,
# `headers` and `rows` are its numbers; `wide` ones scroll sideways on a phone.
Figure = collections.namedtuple(
    "Figure", "slug title svg alternative note headers rows wide", defaults=(False,))

DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 3", "10 4")
SERIES = len(DASHES)
LETTER = 7.6  # about as wide as a letter where a phone enlarges them
_ids = itertools.count(1)


def number(value):
    """A coordinate."""
    return ("%.1f" % value).rstrip("0").rstrip(".")


class Linear:
    def __init__(self, low, high, start, end, form):
        self.low, self.high = low, high if high > low else low + 1
        self.start, self.end, self.form = start, end, form

    def __call__(self, value):
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        for factor in (1, 2, 2.5, 5, 10):
            if (self.high - self.low) / (factor * step) <= 5:
                step *= factor
                break
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        # No unit is needed to say nothing: "0", and not "0 ns" beside "200 ms".
        return [(k * step, re.sub(r"^0 \w+$", "0", self.form(k * step)))
                for k in range(first, last + 1)]


class Log:
    """With ticks at powers of `base`, thinned to at most eight."""

    def __init__(self, low, high, start, end, form, base=10):
        self.low, self.high = low, high if high > low else 2 * low
        self.start, self.end, self.form, self.base = start, end, form, base

    def __call__(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        first = math.ceil(math.log(self.low, self.base) - 1e-9)
        last = math.floor(math.log(self.high, self.base) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / 8))
        powers = [float(self.base) ** k for k in range(first, last + 1, step)]
        if len(powers) < 2:
            powers = sorted({self.low, math.sqrt(self.low * self.high), self.high})
        return [(power, self.form(power)) for power in powers]

    def thin(self, least):
        """Leaves ticks out until they are so far apart that their words do not touch."""
        ticks = self.ticks()
        while len(ticks) > 2 and abs(self(ticks[1][0]) - self(ticks[0][0])) < least:
            ticks = ticks[::2]
        self.ticks = lambda: ticks


class Canvas:
    """An SVG under construction: width and height in its own units, of which a phone shows 400."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.items = []

    def add(self, element, content=None, **attributes):
        words = "".join(' %s="%s"' % (name.rstrip("_").replace("_", "-"),
                                      number(value) if isinstance(value, float) else escape(value))
                        for name, value in attributes.items() if value is not None)
        if content is None:
            self.items.append("<%s%s/>" % (element, words))
        else:
            self.items.append("<%s%s>%s</%s>" % (element, words, content, element))

    def text(self, x, y, content, class_="label", anchor=None, title=None):
        inner = escape(content) if title is None else "%s<title>%s</title>" % (escape(content),
                                                                              escape(title))
        self.add("text", inner, x=float(x), y=float(y), class_=class_, text_anchor=anchor)

    def line(self, x1, y1, x2, y2, class_):
        self.add("path", d="M%s %sL%s %s" % tuple(map(number, (x1, y1, x2, y2))), class_=class_)

    def box(self, x, y, width, height, class_, title=None):
        inner = None if title is None else "<title>%s</title>" % escape(title)
        self.add("rect", inner, x=float(x), y=float(y), width=float(max(width, 0.4)),
                 height=float(height), class_=class_)

    def svg(self, title, description):
        here = next(_ids)
        return ('<svg viewBox="0 0 %s %s" role="img" aria-labelledby="t%d d%d" '
                'xmlns="http://www.w3.org/2000/svg"><title id="t%d">%s</title>'
                '<desc id="d%d">%s</desc>%s</svg>' %
                (number(self.width), number(self.height), here, here, here, escape(title), here,
                 escape(description), "".join(self.items)))

    def figure(self, slug, title, alternative, note, headers, rows, wide=False):
        return Figure(slug, title, self.svg(title, alternative), alternative, note, headers, rows,
                      wide)


def upright_grid(canvas, x, top, bottom, words_at, main=None, first="middle"):
    """Lines from top to bottom, the one at `main` as an axis; `first`: the anchor of the word 0."""
    for value, label in x.ticks():
        is_main = main is not None and abs(value - main) < 1e-9
        canvas.line(x(value), top, x(value), bottom, "axis" if is_main else "grid")
        canvas.text(x(value), words_at, label, "tick", "middle" if value else first)


def axes(canvas, x, y, x_title, y_title):
    """Grid and labels; y runs upwards from y.start to y.end."""
    for value, label in y.ticks():
        at = y(value)
        canvas.line(x.start, at, x.end, at, "grid")
        canvas.text(x.start - 5, at + 4, label, "tick", "end")
    for value, label in x.ticks():
        at = x(value)
        canvas.line(at, y.start, at, y.start + 4, "axis")
        fits = at + 4 * len(label) < canvas.width
        canvas.text(at if fits else canvas.width, y.start + 17, label, "tick",
                    "middle" if fits else "end")
    canvas.line(x.start, y.start, x.end, y.start, "axis")
    canvas.text(x.end, y.start + 33, x_title, "label", "end")
    canvas.text(0, y.end - 10, y_title, "label")


def marker(canvas, series, x, y, title):
    """The shape tells the series where its colour does not."""
    shapes = {
        0: "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z", 1: "M-3 -3h6v6h-6Z", 2: "M0 -4l4 7h-8Z",
        3: "M0 -4l4 4l-4 4l-4 -4Z", 4: "M0 4l4 -7h-8Z", 5: "M-4 -1h3v-3h2v3h3v2h-3v3h-2v-3h-3Z"}
    canvas.add("path", "<title>%s</title>" % escape(title), d=shapes[series % SERIES],
               class_="mark s%d" % (series % SERIES),
               transform="translate(%s %s)" % (number(x), number(y)))


def polyline(points):
    return "M" + "L".join("%s %s" % (number(x), number(y)) for x, y in points)


def curve(canvas, series, points, class_="line"):
    canvas.add("path", d=polyline(points), class_="%s s%d" % (class_, series % SERIES),
               stroke_dasharray=DASHES[series % SERIES] or None)


def band(canvas, series, lows, highs):
    if len(lows) > 1:
        canvas.add("path", d=polyline(lows + highs[::-1]) + "Z", class_="band s%d" % series)
    elif lows:  # a single case: an upright line
        curve(canvas, series, [lows[0], highs[0]])


def legend(canvas, x, y, names, width):
    """Rows of line, marker and name; returns the y below them."""
    at = x
    for series, name in enumerate(names):
        need = 34 + LETTER * len(name)
        if at > x and at + need > x + width:
            at, y = x, y + 17
        curve(canvas, series, [(at, y - 4), (at + 24, y - 4)])
        marker(canvas, series, at + 12, y - 4, name)
        canvas.text(at + 29, y, name)
        at += need + 8
    return y + 8
