"""Compares `lockstep sampler` with PyTorch on this machine: the indices, and the time for them.

In turn, --repeat times: our sampler (the whole command, start to end), `torch.randperm(n)` and a
slice of it, and the real DistributedSampler's list. Shows the median of each and the ratio; with
other programs running, compare the processor time (user + system) rather than the wall time.

Exit code 0: the indices agree; 1: they do not; 2: usage; 4: PyTorch or lockstep is missing.
"""
import resource
import shutil
import statistics
import subprocess
import sys
import time

import launches
from lockstep import digits


def fnv(indices):
    """First five and a sum of the indices, in the form of `lockstep sampler --format=fnv`."""
    value = 1469598103934665603
    for index in indices:
        for byte in int(index).to_bytes(8, "little"):
            value = (value ^ byte) * 1099511628211 & (1 << 64) - 1
    return f"{len(indices)} {value:016x} {[int(i) for i in indices[:5]]}"


def timed(work):
    """(result, wall seconds, processor seconds of this process and its ended children)."""
    def processor():
        used = [resource.getrusage(who)
                for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in used)
    before, start = processor(), time.monotonic()
    result = work()
    return result, time.monotonic() - start, processor() - before


def ours(lockstep, options):
    command = [lockstep, "sampler", f"--samples={options.samples}", f"--ranks={options.ranks}",
               f"--rank={options.rank}", "--torch=" + options.torch, "--format=fnv"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def randperm(torch, options):
    generator = torch.Generator()
    generator.manual_seed(0)
    return torch.randperm(options.samples, generator=generator)[options.rank::options.ranks].clone()


def version_of(torch):
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def real_sampler(options):
    from torch.utils.data import DistributedSampler
    return list(iter(DistributedSampler(range(options.samples), num_replicas=options.ranks,
                                        rank=options.rank)))


def parse(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("--lockstep", default=shutil.which("lockstep"), metavar="FILE",
                        help="The lockstep in question (default: that of the PATH)")
    parser.add_argument("--samples", type=int, default=10**8, metavar="COUNT",
                        help="Samples of the dataset (default 10^8)")
    parser.add_argument("--ranks", type=int, default=1024, metavar="COUNT",
                        help="Number of ranks (default 1024)")
    parser.add_argument("--rank", type=int, default=0, metavar="RANK",
                        help="The rank whose indices are printed (here: compared; default 0)")
    parser.add_argument("--rounds", type=int, default=5, metavar="COUNT",
                        help="Rounds, in each of which all works take their turn (default 5)")
    parser.add_argument("--no-list", action="store_true",
                        help="Without the list of PyTorch's sampler")
    launches.renamed(parser, repeat="--rounds")
    return parser.parse_args(arguments)


def measure(works, repeat):
    """What each work gave, and the medians of its times [wall, processor]; works take turns."""
    results, times = {}, {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            results[name], *spent = timed(work)
            times[name].append(spent)
    return results, {name: [statistics.median(kind) for kind in zip(*both)]
                     for name, both in times.items()}


def main(arguments):
    options = parse(arguments)
    if options.samples < 1 or options.rounds < 1 or not 0 <= options.rank < options.ranks:
        print("compare_sampler: --samples and --rounds from 1, --rank below --ranks",
              file=sys.stderr)
        return 2
    try:
        import torch
    except ImportError:
        print("compare_sampler: python3-torch is not installed; apt install python3-torch",
              file=sys.stderr)
        return 4
    if not options.lockstep:
        print("compare_sampler: no lockstep on the PATH; run scripts/install or give --lockstep",
              file=sys.stderr)
        return 4
    options.torch = "2.6" if version_of(torch) >= (2, 6) else "1.13"
    works = {"lockstep": lambda: ours(options.lockstep, options),
             "randperm[rank::world]": lambda: randperm(torch, options)}
    if not options.no_list:
        works["DistributedSampler"] = lambda: real_sampler(options)
    results, medians = measure(works, options.rounds)
    wall, processor = medians["lockstep"]
    print(f"n={options.samples} world={options.ranks} rank={options.rank} "
          f"torch {torch.__version__}, "
          f"medians of {options.rounds}")
    for name, (its_wall, its_processor) in medians.items():
        print(f"{name:>22}: {digits.figure(its_wall):>8} s wall ({its_wall / wall:5.1f}x), "
              f"{digits.figure(its_processor):>8} s processor "
              f"({its_processor / processor:5.1f}x)")
    listed = fnv(results.get("DistributedSampler") or results["randperm[rank::world]"].tolist())
    padded = options.samples % options.ranks != 0
    if listed != results["lockstep"] and not (options.no_list and padded):
        print(f"the indices differ: PyTorch {listed}, lockstep {results['lockstep']}")
        return 1
    return 0
