"""Figures as a person reads them: no more digits than are known.

The twin of FormatFigure, FormatChange and FormatInterval in core/base/units.h. What files hold
stays exact. A page has thousands of figures, so these functions call little.
"""

from __future__ import annotations

_INFINITY = float("inf")
_NOT_KNOWN = float("nan")
_USUAL_DIGITS = 3
_MOST_DIGITS = 7
_STEPS_OF_HALF_WIDTH = 3
_EXACT = 15


def _place(value: float, digits: int) -> int:
    """The power of ten of the first digit, once the value is rounded to so many."""
    text = "%.*e" % (digits - 1, value if value > 0 else -value)
    return int(text[digits + (digits > 1) + 1:])


def _last_place(value: float, half_width: float) -> int:
    """The power of ten of the last digit that is known."""
    if not 0 < half_width < _INFINITY:
        return 0 if value == 0 else _place(value, _USUAL_DIGITS) - (_USUAL_DIGITS - 1)
    step = _place(half_width / _STEPS_OF_HALF_WIDTH, _EXACT)
    if value == 0:
        return step
    finest = _place(value, _MOST_DIGITS) - (_MOST_DIGITS - 1)
    return step if step > finest else finest


def _rounded(value: float, last: int) -> str:
    if last > 0:
        step = 10.0**last  # halves away from zero, as in C++
        value = (value + step / 2) // step * step if value > 0 else \
            -((step / 2 - value) // step * step)
    text = "%.*f" % (-last if last < 0 else 0, value)
    return text if text[0] != "-" or text.strip("-0.") else text[1:]


def half_width_of_step(step: float) -> float:
    """Of a figure that has no digit below `step`, a power of ten."""
    return _STEPS_OF_HALF_WIDTH * step


def figure(value: float, half_width: float = _NOT_KNOWN) -> str:
    """The last digit is a power of ten of at most a third of `half_width`, half of the interval:
    "25900" for 25948.3 and 2335. Three digits where it is no positive number; seven at most, one
    at least; "-" for what is not finite."""
    if not -_INFINITY < value < _INFINITY:
        return "-"
    last = _last_place(value, half_width)
    if half_width > 0 and value != 0 and 10.0**last > (value if value > 0 else -value):
        last = _place(value, 1)
    return _rounded(value, last)


def change(value: float, half_width: float = _NOT_KNOWN) -> str:
    """The same with its sign; one far within its interval is "+0"."""
    if not -_INFINITY < value < _INFINITY:
        return "-"
    text = _rounded(value, _last_place(value, half_width))
    return text if text[0] == "-" else "+" + text


def interval(low: float, high: float, between: str = " to ") -> str:
    """Its ends, with the digits of the figure in it."""
    if not -_INFINITY < low <= high < _INFINITY:
        return "-"
    half_width = (high - low) / 2
    return figure(low, half_width) + between + figure(high, half_width)
