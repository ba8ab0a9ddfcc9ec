"""Do the stated 95 % intervals of the median cover the long-run median?

Repeats the default sweep (100 times in one launch unless told otherwise), pools all samples of all
sweeps into the long-run median of each size, and prints how many of the sweeps' intervals contain
it. The interval speaks for the launch it comes from: with --launches=N the sweeps are spread over
N launches, whose differences (placement of the processors above all) it does not claim to cover.

Nor does it claim to cover another placement in the same launch. So sweeps are told apart by the
cache line that their file has, and each placement has a long-run median of its own. Sweeps in which
the processors moved are counted, not judged. Placements of fewer than 20 sweeps are not judged.

With --between the interval over launches is asked. Random subsets of the launches are tabulated as
`lockstep run` does, and each interval should contain the median of the launches outside the subset.
That median is uncertain itself, so it is contained less often than the long-run median is covered.
How often is said: what 90 % coverage comes to with so many launches outside. Subsets overlap, so
their share is rough.

Exit code 0: at least 90 % at every size and placement, or with --between what 90 % comes to;
1: not so.
"""
import glob
import math
import os
import random
import statistics
import subprocess
import tempfile
import typing

import launches
import lockstep
import numpy
from lockstep import digits

from measuring import sweep_options

LEAST = 0.9  # of the intervals
FEWEST = 20  # sweeps of a placement that is judged
APART = 1.5  # cache lines that differ by this factor are of two placements
_PROGRAM = "check_coverage"
_CONFIDENCE = 0.95


class Sweep(typing.NamedTuple):
    """One size in one sweep: its interval, all its times, and the cache line before its rounds."""
    low: float
    high: float
    durations: typing.Any
    line_least: float = math.nan
    line_most: float = math.nan


def launch(options, path, sweeps):
    command = launches.mpirun(
        "-np", str(options.ranks), options.bench, "-b", str(options.minbytes), "-e",
        str(options.maxbytes), "--output", path, "--no-progress",
        f"--benchmark_repetitions={sweeps}")
    subprocess.run(["timeout", "3000"] + command, check=True, stdout=subprocess.DEVNULL)


def sweeps_of(path):
    """{bytes: [Sweep]} of one launch with several of them."""
    found = {}
    with lockstep.open(path) as run:
        for row in run.rows("summary"):
            longest = run.samples(row["case"]).max(axis=1)
            found.setdefault(row["bytes"], []).append(Sweep(
                row["interval_low_ns"], row["interval_high_ns"], longest[~numpy.isnan(longest)],
                row.get("line_least_ns", math.nan), row.get("line_most_ns", math.nan)))
    return found


def earlier(options):
    """The files of --runs."""
    inside = os.path.join(options.runs, "*.h5")
    found = sorted(glob.glob(inside)) if os.path.isdir(options.runs) else [options.runs]
    if not found:
        launches.fail(_PROGRAM, 2, f"{options.runs}: no .h5 file in it; name a folder of runs")
    return found


def measured(options):
    """[sweeps_of a launch]; a file goes when it is read."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.launches):
            path = os.path.join(folder, f"{number}.h5")
            launch(options, path, 1 if options.between else options.sweeps // options.launches)
            found.append(sweeps_of(path))
            os.unlink(path)
    return found


def interval_over_launches(medians):
    """95 % interval of the median of at least six independent values (Hettmansperger and Sheather
    1986), as core/stats has it."""
    ordered = sorted(medians)
    n = len(ordered)
    outer, beyond = 1.0, 0.0
    for k in range(n // 2 + 1):
        beyond += math.comb(n, k) / 2**n
        inner = 1 - 2 * beyond
        if inner < _CONFIDENCE:
            break
        outer = inner
    part = (outer - _CONFIDENCE) / (outer - inner)
    inward = (n - k) * part / (k + (n - 2 * k) * part)
    low, high = ordered[k - 1], ordered[n - k]
    return (low + inward * (ordered[k] - low), high - inward * (high - ordered[n - k - 1]))


def contained(medians, of, draws, chance):
    """How many of so many random subsets of `of` launches contain the median of the others."""
    count = 0
    for _ in range(draws):
        inside = set(chance.sample(range(len(medians)), of))
        low, high = interval_over_launches([medians[i] for i in inside])
        others = [one for i, one in enumerate(medians) if i not in inside]
        count += low <= statistics.median(others) <= high
    return count


def comes_to(coverage, of, others):
    """How often intervals over `of` launches contain the median of `others` launches, when they
    cover the long-run median so often: both medians are uncertain (as normal ones are)."""
    normal = statistics.NormalDist()
    quantile = normal.inv_cdf((1 + coverage) / 2)
    return 2 * normal.cdf(quantile / math.sqrt(1 + of / others)) - 1


def main(arguments):
    parser = launches.parser(__doc__)
    sweep_options.add_to(parser, most="64M")
    parser.add_argument("--sweeps", type=int, default=100, metavar="COUNT",
                        help="Sweeps, over all launches together (default 100)")
    parser.add_argument("--launches", type=int, default=0, metavar="COUNT",
                        help="Launches of each command (default 1; with --between 30)")
    parser.add_argument("--between", action="store_true",
                        help="Check the interval over launches; each has one sweep")
    parser.add_argument("--of", type=int, default=8, metavar="COUNT",
                        help="Launches of a subset, at least 6 (default 8)")
    parser.add_argument("--subsets", type=int, default=1000, metavar="COUNT",
                        help="Random subsets (default 1000)")
    parser.add_argument("--runs", default="", metavar="FOLDER",
                        help="Files of earlier launches, which are read instead of measuring")
    options = parser.parse_args(arguments)
    options.launches = options.launches or (30 if options.between else 1)
    paths = earlier(options) if options.runs else []
    count = len(paths) or options.launches
    if options.between and not 6 <= options.of < count:
        launches.fail(_PROGRAM, 2, f"--of={options.of} of {count} launches; choose 6 or more, and "
                                   "fewer than there are launches")
    found = [sweeps_of(path) for path in paths] if paths else measured(options)
    if options.between:
        return report_between(found, options)
    pooled = {}
    for sizes in found:
        for size, rows in sizes.items():
            pooled.setdefault(size, []).extend(rows)
    return report(pooled)


def placements(sweeps):
    """[(cache line, sweeps)] of those in which it did not change, shortest first; a line that is
    not known is a placement of its own, with NaN."""
    still = sorted((sweep for sweep in sweeps if not sweep.line_most > APART * sweep.line_least),
                   key=lambda sweep: (not math.isnan(sweep.line_least), sweep.line_least))
    groups = []
    for sweep in still:
        line = sweep.line_least
        same = groups and (math.isnan(line) or line <= APART * groups[-1][-1].line_least)
        if same:
            groups[-1].append(sweep)
        else:
            groups.append([sweep])
    return [(statistics.median(sweep.line_least for sweep in group), group) for group in groups]


def covered(sweeps):
    """(long-run median, how many intervals contain it, median half width)"""
    truth = float(numpy.median(numpy.concatenate([sweep.durations for sweep in sweeps])))
    inside = sum(sweep.low <= truth <= sweep.high for sweep in sweeps)
    width = float(numpy.median([(sweep.high - sweep.low) / 2 / truth for sweep in sweeps]))
    return truth, inside, width


def report(pooled):
    good = True
    print(f"{'bytes':>10} {'cache line':>10} {'long-run median':>16} {'covered':>8} {'sweeps':>7} "
          f"{'half width':>11}")
    for size, sweeps in sorted(pooled.items()):
        groups = placements(sweeps)
        for line, group in groups:
            truth, inside, width = covered(group)
            judged = len(group) >= FEWEST or len(group) == len(sweeps)
            good = good and (not judged or inside >= LEAST * len(group))
            told = "-" if math.isnan(line) else f"{line:.0f} ns"
            print(f"{size:>10} {told:>10} {digits.figure(truth / 1e3, width * truth / 1e3):>13} us "
                  f"{100 * inside / len(group):>6.0f} % {len(group):>7} {100 * width:>9.1f} %"
                  f"{'' if judged else '  too few'}")
        if moved := len(sweeps) - sum(len(group) for _, group in groups):
            print(f"{size:>10} {'moved':>10} {'':>16} {'':>8} {moved:>7}")
    return 0 if good else 1


def report_between(found, options):
    least = comes_to(LEAST, options.of, len(found) - options.of)
    good = True
    print(f"{options.subsets} random subsets of {options.of} of {len(found)} launches; "
          f"{100 * LEAST:.0f} % coverage comes to {100 * least:.0f} % of them\n"
          f"{'bytes':>10} {'median':>12} {'contained':>10} {'+- of all':>11}")
    for size in sorted(set.intersection(*map(set, found))):
        medians = [covered(sizes[size])[0] for sizes in found]
        share = contained(medians, options.of, options.subsets, random.Random(1)) / options.subsets
        good = good and share >= least
        low, high = interval_over_launches(medians)
        middle = statistics.median(medians)
        half = (high - low) / 2
        print(f"{size:>10} {digits.figure(middle / 1e3, half / 1e3):>9} us {100 * share:>8.0f} % "
              f"{100 * half / middle:>9.1f} %")
    return 0 if good else 1
