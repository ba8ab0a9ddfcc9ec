"""Do the stated 95 % intervals of the median cover the long-run median?

Repeats the default sweep (100 times in one launch unless told otherwise), pools all samples of all
sweeps into the long-run median of each size, and prints how many of the sweeps' intervals contain
it. The interval speaks for the launch it comes from: with --launches=N the sweeps are spread over
N launches, whose differences (placement of the processors above all) it does not claim to cover.

Exit code 0: at least 90 % at every size from 1 KiB and 80 % below; 1: not so.
"""
import os
import subprocess
import tempfile

import launches
import lockstep
import numpy

from measuring import sweep_options


def sweeps(options, path):
    """{bytes: [(low, high, durations)]} of one launch with several sweeps."""
    command = launches.mpirun(
        "-np", str(options.ranks), options.bench, "-b", str(options.minbytes), "-e",
        str(options.maxbytes), "--output", path, "--no-progress",
        f"--benchmark_repetitions={options.sweeps // options.launches}")
    subprocess.run(["timeout", "3000"] + command, check=True, stdout=subprocess.DEVNULL)
    found = {}
    with lockstep.open(path) as run:
        for row in run.rows("summary"):
            longest = run.samples(row["case"]).max(axis=1)
            interval = (row["interval_low_ns"], row["interval_high_ns"],
                        longest[~numpy.isnan(longest)])
            found.setdefault(row["bytes"], []).append(interval)
    return found


def main(arguments):
    parser = launches.parser(__doc__)
    sweep_options.add_to(parser, most="64M")
    parser.add_argument("--sweeps", type=int, default=100, metavar="COUNT",
                        help="Sweeps, over all launches together (default 100)")
    parser.add_argument("--launches", type=int, default=1, metavar="COUNT",
                        help="Launches of each command (default 1)")
    options = parser.parse_args(arguments)
    pooled = {}
    with tempfile.TemporaryDirectory() as folder:
        for launch in range(options.launches):
            path = os.path.join(folder, f"{launch}.h5")
            for size, rows in sweeps(options, path).items():
                pooled.setdefault(size, []).extend(rows)
            os.unlink(path)
    return report(pooled)


def report(pooled):
    good = True
    print(f"{'bytes':>10} {'long-run median':>16} {'covered':>8} {'sweeps':>7} {'half width':>11}")
    for size, rows in sorted(pooled.items()):
        truth = numpy.median(numpy.concatenate([durations for _, _, durations in rows]))
        covered = sum(low <= truth <= high for low, high, _ in rows)
        width = numpy.median([(high - low) / 2 / truth for low, high, _ in rows])
        good = good and covered >= (0.9 if size >= 1024 else 0.8) * len(rows)
        print(f"{size:>10} {truth / 1e3:>13.2f} us {100 * covered / len(rows):>6.0f} % "
              f"{len(rows):>7} {100 * width:>9.1f} %")
    return 0 if good else 1
