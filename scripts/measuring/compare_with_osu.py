"""Does bench_allreduce tell the same truth as the benchmarks that lie in a folder?

DIR holds osu_allreduce (OSU), IMB-MPI1 (Intel), all_reduce_perf (nccl-tests, on GPUs), benchmark
(gloo) or plain_allreduce (bazel-bin/bench/peers), as their projects build them. Launches follow
each other in pairs (theirs, ours, and the other way round). For each size the ratio ours / theirs
is printed with its 95 % confidence interval over the pairs. Single launches scatter by 20 %, so
pairs are added until every interval tells enough or --most is reached. Beside it: how far the
figure of one launch is from the median of all (90th percentile of the error) for either side and
for our `% of limit`, and below what a launch of either costs in wall time. `theirs/theirs` is the
same interval of their program against itself, over pairs of successive launches: where that one is
too wide, the machine is too restless to tell two programs apart.

They stamp with MPI_Wtime, and what they time contains one look at that clock. Ours reads the
processor's counter. Both are timed in each pair (bazel-bin/bench/peers/clock_cost), and what
theirs costs more is taken off their figure, where the loops are the same.

The goal: at every size the interval contains 1.00 and no end of it is further from 1.00 than 3 %
(below 64 KiB: 5 %). Our error is no larger than theirs, and that of `% of limit` at most half of
it.

Exit code 0: so it is; 1: it is not; 3: --most pairs were not enough to tell, or the loops differ,
so that only the ratio is told; 2: nothing in DIR, or a program failed.
"""
import datetime
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

import launches
import lockstep
import numpy
from lockstep import digits

from measuring import peers, sweep_options

LARGE = 64 * 1024  # from here the interval must be within +-3 %, below within +-5 %
_CODES = {"same": 0, "ratio only": 1, "not resolved": 1, "unsteady": 2, "DIFFERENT": 2}
_PROGRAM = "compare_with_osu"


def output_of(words):
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[0]
        launches.fail(_PROGRAM, 2, f"{' '.join(words)} ended with exit code {done.returncode}: "
                                   f"{said}; run it alone")
    return done.stdout


def theirs(peer, path, options):
    words, folder = peers.command(peer, path, options.ranks, options.minbytes, options.maxbytes)
    with folder:
        return peers.times(peer, output_of(words))


def clock_excess(options):
    """So much longer, in microseconds, a look at MPI_Wtime takes than a stamp of ours."""
    words = output_of(["timeout", "60", *launches.mpirun("-np", "1"), options.clock_cost])
    theirs_ns, ours_ns = map(float, words.split())
    return (theirs_ns - ours_ns) / 1e3


def ours(peer, options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.h5")
        output_of(["timeout", "300", *launches.mpirun("-np", str(options.ranks)), options.bench,
                   f"--backend={peer.backend}", "-b", str(options.minbytes),
                   "-e", str(options.maxbytes), "--output", path, "--no-progress"])
        with lockstep.open(path) as run:
            return {row["bytes"]: (per_iteration(run.samples(row["case"]), peer.figure),
                                   row["percent_of_limit"]) for row in run.rows("summary")}


def per_iteration(samples, figure):
    """Microseconds: over iterations, of the average over ranks of exit - entry."""
    over = numpy.nanmedian if figure == "median" else numpy.nanmean
    return float(over(samples.mean(axis=1))) / 1e3


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


def narrow(peer, size, low, high):
    """No end is too far from 1.00; where only the ratio is told, from the interval's middle."""
    if not peer.same_loop:
        return (high - low) / 2 <= width(size)
    return max(high - 1, 1 - low) <= width(size)


def ratios(figures, size):
    return [a / b for a, b in zip(figures["ours"][size], figures["theirs"][size])]


def control(figures, size):
    """Their successive launches against each other: each launch in one ratio."""
    launched = figures["theirs"][size]
    return [a / b for a, b in zip(launched[::2], launched[1::2])]


def error(values):
    """90th percentile of the relative distance of one launch's figure from the median of all."""
    middle = statistics.median(values)
    return float(numpy.percentile([abs(value / middle - 1) for value in values], 90))


def verdict(peer, size, low, high):
    if not peer.same_loop:
        return "ratio only"
    if not low <= 1.0 <= high:
        return "DIFFERENT"
    return "same" if narrow(peer, size, low, high) else "not resolved"


def steadiness(ours_error, theirs_error, limit_error):
    """What the goal for the errors of one launch says; NaN: there is no limit."""
    missed = ["the median"] if ours_error > theirs_error else []
    # A limit that is not known reaches no goal.
    missed += [] if limit_error <= theirs_error / 2 else ["% of limit"]
    return "unsteady: " + " and ".join(missed) if missed else "steady"


def figure_of(values):
    """The median, with the digits that its interval supports."""
    middle, low, high = interval(values)
    return digits.figure(middle, (high - low) / 2)


def percent(share):
    """Tenths below 100 %."""
    if not math.isfinite(share):
        return "-"
    step = digits.half_width_of_step(0.1 if share < 0.9995 else 1)
    return digits.figure(100 * share, step) + " %"


def row_of(peer, figures, size):
    """(cells, verdict) of a size."""
    of = ratios(figures, size)
    middle, low, high = interval(of)
    word = verdict(peer, size, low, high)
    errors = [error(figures[side][size]) for side in ("ours", "theirs", "limit")]
    steady = steadiness(*errors) if peer.same_loop else ""
    cells = [str(size), figure_of(figures["ours"][size]),
             digits.figure(middle, (high - low) / 2), digits.interval(low, high, " .. "),
             str(len(of)), digits.interval(*interval(control(figures, size))[1:], " .. "),
             *map(percent, errors)]
    cells.append(", ".join(part for part in (word, steady) if part))
    return cells, word if steady in ("", "steady") else max(word, "unsteady", key=_CODES.get)


_HEAD = ("bytes", "ours/us", "ours/theirs", "95 % interval", "pairs", "theirs/theirs", "error ours",
         "theirs", "of limit", "verdict")


def report(peer, figures):
    """Prints the table, as a page can hold it; the worst verdict."""
    rows = [row_of(peer, figures, size) for size in sorted(figures["ours"])]
    widths = [max(map(len, column)) for column in zip(_HEAD, *(cells for cells, _ in rows))]
    for cells in (_HEAD, ["-" * some for some in widths], *(cells for cells, _ in rows)):
        print("| " + " | ".join(cell.rjust(some) for cell, some in zip(cells, widths)) + " |")
    return max((word for _, word in rows), key=_CODES.get)


def add(figures, side, found, clock):
    """A launch's figures, of ours with the limit of each size, of theirs without `clock`."""
    for size, value in found.items():
        if side == "ours":
            value, limit = value
            figures["limit"].setdefault(size, []).append(limit)
        else:
            value -= clock
        figures[side].setdefault(size, []).append(value)


def open_sizes(peer, figures):
    """Sizes of which more pairs can still tell something."""
    found = []
    for size in figures["ours"]:
        _, low, high = interval(ratios(figures, size))
        if verdict(peer, size, low, high) != "DIFFERENT" and not narrow(peer, size, low, high):
            found.append(size)
    return found


def measure(peer, path, options):
    """({side or "limit": {bytes: one a launch}}, {side: seconds of each launch}, microseconds taken
    off theirs in each pair)."""
    figures = {"theirs": {}, "ours": {}, "limit": {}}
    seconds = {"theirs": [], "ours": []}
    clocks = []
    for pair in range(options.most):
        clocks.append(clock_excess(options) if peer.same_loop else 0.0)
        for side in ("theirs", "ours") if pair % 2 == 0 else ("ours", "theirs"):
            begin = time.monotonic()
            found = theirs(peer, path, options) if side == "theirs" else ours(peer, options)
            seconds[side].append(time.monotonic() - begin)
            add(figures, side, found, clocks[-1])
        both = set(figures["ours"]) & set(figures["theirs"])
        figures = {side: {size: of[size] for size in both} for side, of in figures.items()}
        if not both:
            launches.fail(_PROGRAM, 2, f"{path} prints no size that ours has; "
                                       "look at -b and -e")
        wide = open_sizes(peer, figures)
        print(f"{peer.program}: pair {pair + 1}: {len(wide)} sizes not narrow enough yet",
              file=sys.stderr)
        if pair + 1 >= options.least and not wide:
            break
    return figures, seconds, clocks


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
    return f"{os.cpu_count()} processors, {model[1] if model else platform.machine()}"


def main(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("folder", metavar="DIR", help="folder of the other benchmarks")
    sweep_options.add_to(parser, most="16M")
    parser.add_argument("--clock-cost", default="bazel-bin/bench/peers/clock_cost", metavar="FILE",
                        help="The clock_cost that times clocks (default: below bazel-bin)")
    parser.add_argument("--least", type=int, default=20, metavar="COUNT",
                        help="Pairs of launches, at least (default 20)")
    parser.add_argument("--most", type=int, default=60, metavar="COUNT",
                        help="Pairs of launches, at most (default 60)")
    options = parser.parse_args(arguments)
    found = peers.found_in(options.folder)
    if not found:
        names = ", ".join(peer.program for peer in peers.PEERS)
        launches.fail(_PROGRAM, 2, f"{options.folder}: none of {names} lies there; build one, or "
                                   "name its folder")
    print(f"{datetime.date.today()}, {machine()}, {options.ranks} ranks, "
          f"Lockstep {launches.version_of(options.bench)}")
    worst = "same"
    for peer, path in found:
        figures, seconds, clocks = measure(peer, path, options)
        print(f"\n{peer.program} ({peer.backend}, {peer.figure} over iterations)")
        worst = max(worst, report(peer, figures), key=_CODES.get)
        print(f"wall time of a launch, median: ours {figure_of(seconds['ours'])} s, "
              f"theirs {figure_of(seconds['theirs'])} s")
        if peer.same_loop:
            print("taken off theirs for MPI_Wtime, median: "
                  f"{figure_of([1e3 * us for us in clocks])} ns")
    return {0: 0, 1: 3, 2: 1}[_CODES[worst]]
