"""Numbers as a person reads them; what is no number is a dash."""

import math

_DASH = "–"


def positive(*values):
    """They are measured, so something can be drawn of them."""
    return all(math.isfinite(value) and value > 0 for value in values)


def without_common_start(names):
    """Without the beginning that all have, up to a slash."""
    while len(names) > 1 and all("/" in name for name in names) and \
            len({name.split("/")[0] for name in names}) == 1:
        names = [name.split("/", 1)[1] for name in names]
    return names


def _significant(value):
    """Three digits, no exponent."""
    if value == 0:
        return "0"
    decimals = max(0, 2 - int(math.floor(math.log10(abs(value)) + 1e-9)))
    text = "%.*f" % (decimals, value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value, steps, units):
    if value is None or not math.isfinite(value):
        return _DASH
    size, name = steps[0], units[0]
    for step, unit in zip(steps, units):
        if abs(value) >= 0.9995 * step:
            size, name = step, unit
    return "%s %s" % (_significant(value / size), name)


def duration(ns):
    return _scaled(ns, (1, 1e3, 1e6, 1e9), ("ns", "µs", "ms", "s"))


def seconds(value):
    return duration(value * 1e9)


def size(count):
    return _scaled(count, (1, 2.0**10, 2.0**20, 2.0**30), ("B", "KiB", "MiB", "GiB"))


def bandwidth(gbps):
    """GB/s, of 1e9 bytes, as nccl-tests counts."""
    if gbps is None or not math.isfinite(gbps) or gbps <= 0:
        return _DASH
    return _scaled(gbps * 1e9, (1e3, 1e6, 1e9), ("kB/s", "MB/s", "GB/s"))


def plain(value):
    if value is None or not math.isfinite(value):
        return _DASH
    return _significant(value)


def percent(value):
    if value is None or not math.isfinite(value):
        return _DASH
    return "%.1f %%" % value if abs(value) < 9.95 else "%.0f %%" % value


def change(share):
    """Of a time: 0.08 is 8 % more."""
    return _DASH if share is None else "%+.1f %%" % (100 * share)


def part(value, units):
    if units == "ns":
        return duration(value)
    return plain(value) + (" " + units if units else "")


def precision(low, median, high):
    """Half the interval in percent of the median."""
    if not median > 0 or not math.isfinite(high - low):
        return _DASH
    return percent(50 * (high - low) / median)


def precision_of(case):
    """By the rounds alone; older files have no other interval than that with the drift."""
    low, high = case.get("rounds_low_ns", math.nan), case.get("rounds_high_ns", math.nan)
    if not math.isfinite(high - low):
        low, high = case["interval_low_ns"], case["interval_high_ns"]
    return precision(low, case["median_ns"], high)


def interval(low, high, form):
    """"1.2 to 1.3"; one dash where there is none."""
    known = low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
    return "%s to %s" % (form(low), form(high)) if known else _DASH


def ranks(numbers):
    """"rank 1", "ranks 0, 2", "ranks 0–5, 7"."""
    if not numbers:
        return "no rank"
    numbers = sorted(map(int, numbers))
    parts, begin = [], 0
    for end in range(1, len(numbers) + 1):
        if end < len(numbers) and numbers[end] == numbers[end - 1] + 1:
            continue
        some = numbers[begin:end]
        parts += ["%d–%d" % (some[0], some[-1])] if len(some) > 2 else map(str, some)
        begin = end
    return "rank%s %s" % ("s" if len(numbers) > 1 else "", ", ".join(parts))
