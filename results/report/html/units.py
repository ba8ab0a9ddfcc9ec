"""Numbers as a person reads them; what is no number is a dash."""

import math

from lockstep import digits

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


def _figure(value, half_width=math.nan):
    """Zeros at the end are digits that an interval supports, or nothing."""
    text = digits.figure(value, half_width)
    return text if half_width > 0 or "." not in text else text.rstrip("0").rstrip(".")


def _scaled(value, steps, units, half_width=math.nan):
    if value is None or not math.isfinite(value):
        return _DASH
    size, name = steps[0], units[0]
    for step, unit in zip(steps, units):
        if abs(value) >= 0.9995 * step:
            size, name = step, unit
    return "%s %s" % (_figure(value / size, half_width / size), name)


def duration(ns, half_width=math.nan):
    return _scaled(ns, (1, 1e3, 1e6, 1e9), ("ns", "µs", "ms", "s"), half_width)


def seconds(value):
    return duration(value * 1e9)


def size(count):
    return _scaled(count, (1, 2.0**10, 2.0**20, 2.0**30), ("B", "KiB", "MiB", "GiB"))


def bandwidth(gbps, half_width=math.nan):
    """GB/s, of 1e9 bytes, as nccl-tests counts."""
    if gbps is None or not math.isfinite(gbps) or gbps <= 0:
        return _DASH
    return _scaled(gbps * 1e9, (1e3, 1e6, 1e9), ("kB/s", "MB/s", "GB/s"), half_width * 1e9)


def plain(value, half_width=math.nan):
    if value is None or not math.isfinite(value):
        return _DASH
    return _figure(value, half_width)


def percent(value):
    if value is None or not math.isfinite(value):
        return _DASH
    if abs(value) < 999.5:
        return "%.1f %%" % value if abs(value) < 9.95 else "%.0f %%" % value
    return digits.figure(value) + " %"


def change(share, half_width=math.nan):
    """Of a time: 0.08 is 8 % more. Tenths at most."""
    if share is None:
        return _DASH
    finest = digits.half_width_of_step(0.1 if abs(share) < 0.995 else 1)
    known = 100 * half_width if half_width > 0 else 0
    return digits.change(100 * share, max(known, finest)) + " %"


def change_of(effect):
    """With the digits that its interval supports."""
    return change(effect["estimate"], half_of(effect["low"], effect["high"]))


def part(one):
    half = half_of(one.low, one.high)
    if one.units == "ns":
        return duration(one.median, half)
    return plain(one.median, half) + (" " + one.units if one.units else "")


def half_of(low, high):
    """NaN where there is no interval."""
    return math.nan if low is None or high is None else (high - low) / 2


def median_of(case):
    return duration(case["median_ns"], _half_width_of(case))


def bus_bandwidth_of(case):
    """As uncertain as the median."""
    return bandwidth(case["bus_gbps"], _share_of(case) * case["bus_gbps"])


def limit_of(case):
    value = case["percent_of_limit"]
    if value is None or not math.isfinite(value):
        return _DASH
    low, high = case.get("limit_low", math.nan), case.get("limit_high", math.nan)
    half = max(high - value, value - low)
    finest = digits.half_width_of_step(1 if value >= 9.95 else 0.1)
    return digits.figure(value, half if half > finest else finest) + " %"


def _half_width_of(case):
    """Half the interval of the rounds, its longer side; in older files, of the other."""
    median = case["median_ns"]
    low, high = case.get("rounds_low_ns", math.nan), case.get("rounds_high_ns", math.nan)
    if not math.isfinite(high - low):
        low, high = case["interval_low_ns"], case["interval_high_ns"]
    return max(high - median, median - low)


def _share_of(case):
    """Half the interval, as a share of the median."""
    return _half_width_of(case) / case["median_ns"] if case["median_ns"] > 0 else math.nan


def precision_of(case):
    share = _share_of(case)
    return percent(100 * share) if math.isfinite(share) else _DASH


def interval(low, high):
    """"1.2 to 1.3"; one dash where there is none."""
    known = low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
    return digits.interval(low, high) if known else _DASH


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
