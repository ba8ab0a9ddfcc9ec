"""What is really a speed: builds what it needs, runs it in pairs, and judges it by its bounds.

Tests assert no time, because they run on machines that are busy; these bounds hold on one that is
quiet. Each line ends in "within", "BEYOND" or "unclear". Exit codes: 0 all within; 5 one is beyond
its bounds; 3 one is unclear; 4 something could not be built or run.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

import launches
from launches import TREE

_TARGETS = ["//bench/self:speeds", "//bench:bench_allreduce", "//bench:bench_ddp_step",
            "//bench:bench_sharding", "//bench/peers:libslow_allreduce.so", "//results:large_run",
            "//cli:lockstep"]
_MOST_LAUNCHES = 24
_PAGE_SECONDS = 3.0  # of a processor, for the page of 10,000 cases

sys.path.insert(0, TREE)


def program(name):
    return os.path.join(TREE, "bazel-bin", name)


def say(name, value, verdict):
    print("%s: %s: %s" % (name, value, verdict), flush=True)
    return verdict


def within(good):
    return "within" if good else "BEYOND"


def launch(binary, *arguments, ranks=2, environment=None):
    from bench.testing.launch import Launch
    done = Launch(program(binary), list(arguments), ranks=ranks, environment=environment).finish()
    if done.code != 0:
        raise RuntimeError("%s: exit code %d: %s" % (binary, done.code, done.err.strip()[-200:]))
    return done


def overlap_of_buckets(folder):
    """Eight buckets travel beside the computing, one cannot."""
    import lockstep
    import numpy
    model = os.path.join(folder, "layers.json")
    params = [{"name": "layer%d" % layer, "shape": [256, 128], "dtype": "f32"}
              for layer in range(8)]
    with open(model, "w", encoding="utf-8") as file:
        json.dump({"name": "layers", "params": params, "ready_order": list(range(7, -1, -1)),
                   "buffers": []}, file)
    done = launch("bench/bench_ddp_step", "--model=" + model, "--backend=gloo", "-n", "15",
                  "--bucket-cap-mb=0.1,100", "--compute-ms=30")
    with lockstep.open(done.path) as run:
        many, one = (float(numpy.median(run.part("ddp_step/layers/cap:" + cap, "overlap")))
                     for cap in ("0.1", "100"))
    return say("overlap of eight buckets, and of one", "%.2f and %.2f (bounds 0.4 from below, 0.1 "
               "from above)" % (many, one), within(many > 0.4 and one < 0.1))


def products_take_their_time(folder):
    import lockstep
    import numpy
    model = os.path.join(folder, "layers.json")
    done = launch("bench/bench_ddp_step", "--model=" + model, "--backend=gloo", "-n", "9",
                  "--compute-ms=30", "--compute=matmul")
    with lockstep.open(done.path) as run:
        computed = float(numpy.median(run.part(0, "forward_ns") + run.part(0, "backward_ns"))) / 1e6
    return say("products asked to take 30 ms", "%.1f ms (bounds 15 and 60)" % computed,
               within(15 < computed < 60))


def slow_decoder(_):
    """A rank that decodes 20 times as slowly costs the other one its time."""
    import lockstep
    done = launch("bench/bench_sharding", "--samples=128", "--batch=8", "--slow-down=20",
                  "--slow-rank=1", "--decode-passes=8", "-n", "12")
    with lockstep.open(done.path) as run:
        load, waited = (run.part(1, name).mean(axis=0) for name in ("load_ns", "waited_ns"))
        usual, step = (run.samples(case).sum() for case in (0, 1))
    good = load[1] > 1.5 * load[0] and waited[0] > waited[1] and step > 1.1 * usual
    return say("a decoder slowed down 20 times", "loads %.1f x, steps %.1f x (bounds 1.5 and 1.1 "
               "from below)" % (load[1] / load[0], step / usual), within(good))


def slow_rank_is_named(folder):
    """`lockstep compare` on launches in turn, in one of which a rank is 5 % slower."""
    for count in range(1, _MOST_LAUNCHES + 1):
        for side, slow in (("base", {}), ("slow", {
                "LD_PRELOAD": program("bench/peers/libslow_allreduce.so"), "SLOW_PERCENT": "5"})):
            launch("bench/bench_allreduce", "-b", "64K", "-e", "64K", "-n", "2000",
                   "--no-progress", "--output=%s/%s/%d.h5" % (folder, side, count),
                   environment=slow)
        if count < 8 or count % 4 != 0:
            continue
        done = subprocess.run([program("cli/lockstep"), "compare", "--format=json",
                               folder + "/base", folder + "/slow"], stdout=subprocess.PIPE,
                              check=False)
        (case,) = json.loads(done.stdout)["cases"]
        ranks = {one["rank"] for one in case["slower_ranks"]}
        if case["verdict"] != "ambiguous" and ranks:
            return say("a rank slower by 5 %", "%s, ranks %s named after %d launches a side" % (
                case["verdict"], sorted(ranks), count),
                       within(case["verdict"] == "slower" and ranks == {1}))
    return say("a rank slower by 5 %", "not decided by %d launches a side" % _MOST_LAUNCHES,
               "unclear")


def page_of_many_cases(folder):
    run, page = os.path.join(folder, "large.h5"), os.path.join(folder, "large.html")
    subprocess.run([program("results/large_run"), run, "10000"], check=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program("cli/lockstep"), "report", run, "--output", page], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return say("the page of 10,000 cases", "%.1f s of a processor (bound %.0f)" % (
        spent, _PAGE_SECONDS), within(spent < _PAGE_SECONDS))


def speeds(seconds):
    done = subprocess.run([program("bench/self/speeds"), str(seconds)], check=False)
    verdicts = {0: "within", 3: "unclear", 5: "BEYOND"}
    if done.returncode not in verdicts:
        raise RuntimeError("speeds: exit code %d" % done.returncode)
    return verdicts[done.returncode]


def main(arguments):
    parser = launches.parser(__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pair-time", type=launches.seconds, default=5, metavar="TIME",
                        help="Time of each pair of works (default 5)")
    parser.add_argument("--no-build", action="store_true", help="Take what is in bazel-bin")
    launches.renamed(parser, seconds="--pair-time")
    options = parser.parse_args(arguments)
    try:
        if not options.no_build:
            subprocess.run(["bazel", "build", "--show_result=0", *_TARGETS], cwd=TREE, check=True,
                           stdin=subprocess.DEVNULL)
        with tempfile.TemporaryDirectory() as folder:
            verdicts = [speeds(options.pair_time)] + [judge(folder) for judge in (
                overlap_of_buckets, products_take_their_time, slow_decoder, page_of_many_cases,
                slow_rank_is_named)]
    except (OSError, RuntimeError, ImportError, subprocess.CalledProcessError) as error:
        print("benchmarks: %s" % error, file=sys.stderr)
        return 4
    counts = ", ".join("%d %s" % (verdicts.count(one), one)
                       for one in ("within", "BEYOND", "unclear"))
    worst = 5 if "BEYOND" in verdicts else 3 if "unclear" in verdicts else 0
    print("%s: %s" % ({0: "PASS", 3: "UNKNOWN", 5: "SLOW"}[worst], counts))
    return worst
