"""What does lockstep watch cost a program of many short calls?

DIR holds osu_allreduce (OSU), as its project builds it. Launches follow each other in pairs: alone
and under lockstep watch, and the other way round. For each size the difference of their mean times
of a call is printed, with its 95 % confidence interval over the pairs.

With --split a third launch of each group has a watcher that is stopped while the program runs. So
what the calls themselves cost is told from what the watcher takes of the processors. Its ring must
hold all calls: 4,000,000 events of a rank.

With --calls, and without DIR, one rank makes calls that wait for nobody. Its processor time of each
is printed, alone and watched: the least over --pairs launches.

Exit code 0: below 4 KiB at most --bound more, and from there on no more; 1: more; 3: too few pairs
to tell; 2: no osu_allreduce in DIR, or a launch failed.
"""
import contextlib
import datetime
import glob
import math
import os
import signal
import subprocess
import sys
import time

import launches
from lockstep import digits

from measuring import peers, sweep_options
from measuring.compare_with_osu import figure_of, interval, machine

LARGE = 4096  # bytes: from here on a call takes so long that nothing is to be measured
EVENTS = 8    # of each iteration of OSU's loop: a barrier and an allreduce, on both ranks
RING = 4_000_000
_PROGRAM = "watch_overhead"
_CODES = {"within": 0, "MORE": 1, "not resolved": 3}


def launch(path, options):
    return [*launches.mpirun("-np", str(options.ranks)), path, "-T", "mpi_float",
            "-m", f"{options.minbytes}:{options.maxbytes}", "-i", str(options.iters), "-x", "1000"]


def mean_times(text):
    """{bytes: nanoseconds}, the mean over iterations and ranks."""
    osu = next(peer for peer in peers.PEERS if peer.program == "osu_allreduce")
    return {size: us * 1e3 for size, us in peers.times(
        peers.dataclasses.replace(osu, columns=(0, 1)), text).items()}


def checked(words, code, output, said):
    """What it printed."""
    if code != 0:
        line = (said.strip() or output.strip() or "it said nothing").splitlines()[0]
        launches.fail(_PROGRAM, 2, f"{' '.join(words)} ended with exit code {code}: {line}; "
                                   "run it alone")
    return output


def output_of(words):
    done = subprocess.run(["timeout", "300", *words], check=False, capture_output=True, text=True)
    return checked(words, done.returncode, done.stdout, done.stderr)


def _children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return file.read().split()
    except OSError:
        return []


def _ended(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def output_with_stopped_watcher(words, ranks):
    """The watcher is stopped when all ranks have made their files, until its command has ended. Its
    other child, which tidies up after it, outlives the command."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as watcher:
        files = f"/dev/shm/lockstep-watch-{watcher.pid}-*/*.watch"
        launches.await_that(lambda: len(glob.glob(files)) >= ranks or watcher.poll() is not None,
                            60)
        with contextlib.suppress(ProcessLookupError):
            watcher.send_signal(signal.SIGSTOP)
        try:
            launches.await_that(lambda: any(map(_ended, _children(watcher.pid))), 300)
        finally:
            watcher.send_signal(signal.SIGCONT)
        output, said = watcher.communicate(timeout=300)
    return checked(words, watcher.returncode, output, said)


def measure(path, options):
    """{side: {bytes: [nanoseconds, one a launch]}}"""
    plain = launch(path, options)
    watched = [options.lockstep, "watch", "--", *plain]
    sides = {"alone": lambda: output_of(plain), "watched": lambda: output_of(watched)}
    if options.split:
        sides["stopped"] = lambda: output_with_stopped_watcher(watched, options.ranks)
    found = {side: {} for side in sides}
    begin = time.monotonic()
    for pair in range(options.pairs):
        order = list(sides) if pair % 2 == 0 else list(sides)[::-1]
        for side in order:
            for size, ns in mean_times(sides[side]()).items():
                found[side].setdefault(size, []).append(ns)
        print(f"pair {pair + 1} of {options.pairs}, {time.monotonic() - begin:.0f} s",
              file=sys.stderr)
    return found


def differences(found, size, side):
    return [b - a for a, b in zip(found["alone"][size], found[side][size])]


def signed_interval(values):
    """Median and its interval, as of ratios; that of too few has no lower end."""
    middle, low, high = interval(values)
    return middle, low if math.isfinite(high) else -math.inf, high


def verdict(size, low, high, bound_ns):
    if not math.isfinite(high):
        return "not resolved"
    most = bound_ns if size < LARGE else 0
    return "within" if low <= most else "MORE"


def report(found, options):
    """Prints the table; the worst verdict."""
    split = f" {'of it calls':>11}" if options.split else ""
    print(f"{'bytes':>9} {'alone/ns':>9} {'more/ns':>8} {'95 % interval':>18}{split}  verdict")
    words = []
    for size in sorted(found["alone"]):
        middle, low, high = signed_interval(differences(found, size, "watched"))
        words.append(verdict(size, low, high, options.bound * 1e9))
        calls = ""
        if options.split:
            calls = f" {figure_of(differences(found, size, 'stopped')):>11}"
        print(f"{size:>9} {figure_of(found['alone'][size]):>9} "
              f"{digits.figure(middle, (high - low) / 2):>8} "
              f"{digits.interval(low, high, ' .. '):>18}{calls}  {words[-1]}")
    return max(words, key=list(_CODES).index)


def announce(options, ranks):
    print(f"{datetime.date.today()}, {machine()}, {ranks} rank{'s' * (ranks != 1)}, load "
          f"{os.getloadavg()[0]:.1f}, Lockstep {launches.version_of(options.lockstep)}")


def calls(options):
    """Prints the table of --calls."""
    program = os.path.join(os.path.dirname(options.lockstep), os.pardir, "watch", "preload",
                           "call_costs")
    plain = [*launches.mpirun("-np", "1"), os.path.normpath(program)]
    announce(options, 1)
    least = {}
    for _ in range(options.pairs):
        for side, words in enumerate((plain, [options.lockstep, "watch", "--", *plain])):
            for line in output_of(words).splitlines():
                name, _, ns = line.rpartition(": ")
                here = least.setdefault(name, [math.inf, math.inf])
                here[side] = min(here[side], float(ns))
    print(f"{'of one rank, processor time':<45} {'alone/ns':>9} {'watched/ns':>10}")
    for name, (alone, watched) in least.items():
        print(f"{name:<45} {digits.figure(alone):>9} {digits.figure(watched):>10}")


def main(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("folder", metavar="DIR", nargs="?", help="Folder of osu_allreduce")
    parser.add_argument("--lockstep", default="bazel-bin/cli/lockstep", metavar="FILE",
                        help="The lockstep in question (default: below bazel-bin)")
    parser.add_argument("--ranks", type=int, default=2, metavar="COUNT",
                        help="Number of ranks (default 2)")
    parser.add_argument("-b", "--minbytes", type=sweep_options.size, default=8, metavar="BYTES",
                        help="Smallest size (a power of two; default 8)")
    parser.add_argument("-e", "--maxbytes", type=sweep_options.size, default=64 << 10,
                        metavar="BYTES", help="Largest size (a power of two; default 64K)")
    parser.add_argument("-n", "--iters", type=int, default=10000, metavar="COUNT",
                        help="Fixed number of iterations (of each size; default 10000)")
    parser.add_argument("--pairs", type=int, default=20, metavar="COUNT",
                        help="Pairs of launches (default 20)")
    parser.add_argument("--bound", type=launches.seconds, default=60e-9, metavar="TIME",
                        help="What a call below 4 KiB may cost (default 60ns)")
    parser.add_argument("--split", action="store_true",
                        help="Tell the cost of the calls from that of the watcher")
    parser.add_argument("--calls", action="store_true",
                        help="Processor time of single calls instead")
    options = parser.parse_args(arguments)
    if options.calls == (options.folder is not None):
        launches.fail(_PROGRAM, 2, "give DIR, the folder of osu_allreduce, or --calls")
    if options.calls:
        calls(options)
        return 0
    paths = [path for peer, path in peers.found_in(options.folder)
             if peer.program == "osu_allreduce"]
    if not paths:
        launches.fail(_PROGRAM, 2, f"{options.folder}: no osu_allreduce lies there; build it, or "
                                   "name its folder")
    sizes = (options.maxbytes // options.minbytes).bit_length()
    if options.split and sizes * (options.iters + 1000) * EVENTS // 2 > RING:
        launches.fail(_PROGRAM, 2, f"--iters={options.iters}: {sizes} sizes are more calls than a "
                                   "stopped watcher's ring holds; take fewer")
    announce(options, options.ranks)
    return _CODES[report(measure(paths[0], options), options)]
