"""Figures as a person reads them: no more digits than are known.

The twin of FormatFigure and FormatInterval in core/base/units.h. What files hold stays exact.
"""

from __future__ import annotations

import math

_USUAL_DIGITS = 3
_MOST_DIGITS = 7
_STEPS_OF_HALF_WIDTH = 3
_EXACT = 15


def _place(value: float, digits: int) -> int:
    """The power of ten of the first digit, once the value is rounded to so many."""
    return int("{:.{}e}".format(value, digits - 1).partition("e")[2])


def _last_place(value: float, half_width: float) -> int:
    known = math.isfinite(half_width) and half_width > 0
    if not known:
        return 0 if value == 0 else _place(value, _USUAL_DIGITS) - (_USUAL_DIGITS - 1)
    step = _place(half_width / _STEPS_OF_HALF_WIDTH, _EXACT)
    return step if value == 0 else max(step, _place(value, _MOST_DIGITS) - (_MOST_DIGITS - 1))


def _rounded(value: float, last: int) -> str:
    step = 10.0 ** max(0, last)
    if last > 0:
        value = math.copysign(math.floor(abs(value) / step + 0.5) * step, value)
    text = "{:.{}f}".format(value, max(0, -last))
    return text if text.strip("-0.") else text.lstrip("-")


def figure(value: float, half_width: float = math.nan) -> str:
    """The last digit is a power of ten of at most a third of `half_width`, half of the interval:
    "25900" for 25948.3 and 2335. Three digits where it is no positive number, never more than seven,
    and one at least; "-" for what is not finite."""
    if not math.isfinite(value):
        return "-"
    last = _last_place(value, half_width)
    return _rounded(value, last if value == 0 else min(last, _place(value, 1)))


def change(value: float, half_width: float = math.nan) -> str:
    """The same with its sign; one far within its interval is "+0"."""
    if not math.isfinite(value):
        return "-"
    text = _rounded(value, _last_place(value, half_width))
    return text if text.startswith("-") else "+" + text


def interval(low: float, high: float, between: str = " to ") -> str:
    """Its ends, with the digits of the figure in it."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "-"
    half_width = (high - low) / 2
    return (_rounded(low, _last_place(low, half_width)) + between
            + _rounded(high, _last_place(high, half_width)))
