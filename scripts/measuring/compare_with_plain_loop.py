"""Does bench_allreduce tell the same truth as a plain MPI loop of OSU's shape?

Runs pairs of launches in turn (plain loop, bench_allreduce, and the other way round), takes from
both the median over iterations of the average over ranks (OSU's definition), and prints for each
size the ratio ours / plain with its 95 % confidence interval over the pairs. Single launches
scatter by 20 %, so pairs are added until every interval is narrow enough or --most is reached.
Beside it: how far the median of one launch is from the median of all (90th percentile of the
error) for either side, and below what a launch of either costs in wall time.

Exit code 0: at every size the interval contains or touches 1.00 and is within the stated width;
1: it does not; 3: --most pairs were not enough to tell.
"""
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import launches
import lockstep
import numpy

LARGE = 64 * 1024  # from here the interval must be within +-3 %, below within +-5 %


def mpirun(ranks):
    return ["timeout", "300"] + launches.mpirun("-np", str(ranks))


def plain(binary, ranks, first, last):
    text = subprocess.run(mpirun(ranks) + [binary, str(first), str(last)], check=True,
                          capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return {int(row[0]): float(row[1]) for row in rows}


def ours(binary, ranks, first, last):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.h5")
        command = [binary, "-b", str(first), "-e", str(last), "--output", path, "--no-progress"]
        subprocess.run(mpirun(ranks) + command, check=True, capture_output=True)
        with lockstep.open(path) as run:
            return {row["bytes"]: per_iteration(run.samples(row["case"]))
                    for row in run.rows("summary")}


def per_iteration(samples):
    """Median in microseconds of the average over ranks of exit - entry."""
    return float(numpy.nanmedian(samples.mean(axis=1))) / 1e3


def interval(ratios):
    """Median ratio and its distribution-free 95 % interval (sign test: order statistics)."""
    ordered = sorted(ratios)
    n = len(ordered)
    tail, k = 0.0, 0
    while tail + math.comb(n, k) / 2**n <= 0.025:
        tail += math.comb(n, k) / 2**n
        k += 1
    if k == 0:
        return statistics.median(ordered), 0.0, math.inf
    return statistics.median(ordered), ordered[k - 1], ordered[n - k]


def width(size):
    return 0.03 if size >= LARGE else 0.05


def narrow(size, low, high):
    return (high - low) / 2 <= width(size)


def main(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("--bench", default="bazel-bin/bench/bench_allreduce")
    parser.add_argument("--plain", default="bazel-bin/bench/peers/plain_allreduce")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--first", type=int, default=8)
    parser.add_argument("--last", type=int, default=16 << 20)
    parser.add_argument("--least", type=int, default=15, help="pairs of launches at least")
    parser.add_argument("--most", type=int, default=60, help="pairs of launches at most")
    options = parser.parse_args(arguments)
    medians = {"plain": {}, "ours": {}}  # side -> bytes -> one a launch
    seconds = {"plain": [], "ours": []}
    for pair in range(options.most):
        order = ["plain", "ours"] if pair % 2 == 0 else ["ours", "plain"]
        for side in order:
            run, binary = (plain, options.plain) if side == "plain" else (ours, options.bench)
            begin = time.monotonic()
            for size, value in run(binary, options.ranks, options.first, options.last).items():
                medians[side].setdefault(size, []).append(value)
            seconds[side].append(time.monotonic() - begin)
        wide = [size for size in medians["ours"]
                if not narrow(size, *interval(ratios(medians, size))[1:])]
        print(f"pair {pair + 1}: {len(wide)} sizes not narrow enough yet", file=sys.stderr)
        if pair + 1 >= options.least and not wide:
            break
    code = report(medians)
    print(f"wall time of a launch, median: ours {statistics.median(seconds['ours']):.2f} s, "
          f"plain {statistics.median(seconds['plain']):.2f} s")
    return code


def ratios(medians, size):
    return [a / b for a, b in zip(medians["ours"][size], medians["plain"][size])]


def error(values):
    """90th percentile of the relative distance of one launch's median from that of all."""
    middle = statistics.median(values)
    return float(numpy.percentile([abs(value / middle - 1) for value in values], 90))


def report(medians):
    print(f"{'bytes':>10} {'ours':>11} {'ours/plain':>10} {'95 % interval':>16} {'pairs':>6} "
          f"{'error ours':>11} {'plain':>7}  verdict")
    worst = 0
    for size in sorted(medians["ours"]):
        of = ratios(medians, size)
        middle, low, high = interval(of)
        # "Touches": a true ratio of 1.00 within the rounding of the figures themselves.
        if low - 0.005 <= 1.0 <= high + 0.005:
            verdict = "same" if narrow(size, low, high) else "not resolved"
        else:
            verdict = "DIFFERENT"
        worst = max(worst, {"same": 0, "not resolved": 1, "DIFFERENT": 2}[verdict])
        print(f"{size:>10} {statistics.median(medians['ours'][size]):>8.2f} us {middle:>10.3f} "
              f"{f'{low:.3f} .. {high:.3f}':>16} {len(of):>6} "
              f"{100 * error(medians['ours'][size]):>9.1f} % "
              f"{100 * error(medians['plain'][size]):>5.1f} %  {verdict}")
    return {0: 0, 1: 3, 2: 1}[worst]
