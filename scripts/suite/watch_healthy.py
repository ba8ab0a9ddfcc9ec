"""Programs that are right, alone and under `lockstep watch`: nothing may be found, and what they
print and their exit code must be the same.

  scripts/watch_healthy DIR                   every program in DIR and below it, by mpirun
  scripts/watch_healthy --training=200        that many random training scripts of PyTorch
  scripts/watch_healthy DIR --state=FILE      begin again where FILE ends

Of OSU, IMB and Lockstep the programs get short arguments of their suite, of others --arguments.
They print times, so rows are compared by their first word and by how many words they have. What
training scripts print is compared whole. Each launch is bounded. A program tells nothing that is
not watched, or fails alone and in another way when it is watched. It is listed as `not run`.

Exit codes: 0 nothing was found, 1 something was, or a program behaved otherwise, 2 usage,
3 no program ran, or Ctrl-C ended it, 4 lockstep is missing.
"""
import contextlib
import csv
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter

import launches
from trials import torch_ranks

BOUND_S = 150
_NAME = "watch_healthy"
_RANKS_OF_TORCH = os.path.abspath(torch_ranks.__file__)
_TRAINING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "random_training.py")
_RANKS = (2, 3, 2, 4, 3)  # of training scripts, by turns
_IMB = "-npmin {ranks} -iter 5,5,5 -msglog 0:10 -time 1"
_BENCH = "--format=csv --no-progress -n "
# Of programs whose whole name matches, the first line: their arguments.
ARGUMENTS = (
    (r"osu_hello", ""),
    (r"osu_init", "-i 2"),
    (r"osu_i?barrier", "-i 20 -x 2"),
    (r"osu_.*", "-i 20 -x 2 -m 1:4096"),
    (r"IMB-MT", "-thread_level multiple -repeat 20 -warmup 2"),
    (r"IMB-P2P", "-msglog 0:10 -iter 200"),
    (r"IMB-.*", _IMB),
    (r"bench_(allgather|allreduce|broadcast|reduce_scatter|sendrecv)", _BENCH + "20 -e 64K"),
    (r"bench_ddp_step", _BENCH + "3 --model=resnet50"),
    (r"bench_.*", _BENCH + "20"),
)
FINDING = re.compile(r"^lockstep watch: (?:HUNG, )?(\w+) \((?:proved|suspected)[^)]*\): (.*)$",
                     re.M)
LAST_LINE = re.compile(r"^lockstep watch: \d+ ranks, (\d+) events, no finding(.*)$", re.M)


def arguments_of(name, options):
    if options.arguments is not None:
        return shlex.split(options.arguments)
    for names, words in ARGUMENTS:
        if re.fullmatch(names, name):
            return shlex.split(words.format(ranks=options.ranks))
    return []


def programs_below(folder):
    """Those that a compiler made, and no libraries."""
    for top, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(top, name)
            if ".so" in name or os.path.islink(path) or not os.access(path, os.X_OK):
                continue
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def training(seed, options):
    """By torchrun as it comes with PyTorch, and by a launcher that only sets its variables."""
    ranks = str(_RANKS[seed % len(_RANKS)])
    launcher = [_RANKS_OF_TORCH, ranks]
    if options.torchrun and seed % 2 == 0:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=" + ranks]
    return [options.python, *launcher, _TRAINING, str(seed)]


def launches_of(options):
    """[(name, command, whether all that it prints is the same each time)]"""
    found = []
    for path in programs_below(options.folder) if options.folder else ():
        words = [*launches.ranks_of(path, options.ranks), os.path.abspath(path),
                 *arguments_of(os.path.basename(path), options)]
        found.append((os.path.relpath(path, options.folder), words, False))
    for seed in range(options.seed, options.seed + options.training):
        found.append(("training %d" % seed, training(seed, options), True))
    return [each for each in found if re.search(options.names or "", each[0])]


# ---- launches

def stop(process):
    """The whole launch: a launcher that is told to end may leave ranks that hang."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)


def launch(words, folder):
    """{"code": None where it was out of time, "out", "said"}"""
    environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    with tempfile.TemporaryFile("w+", errors="replace") as out, \
            tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=said,
                                   start_new_session=True, cwd=folder, env=environment)
        try:
            launches.await_that(
                lambda: process.poll() is not None or launches.leaving.is_set(), BOUND_S)
            code = process.poll()
        finally:
            if process.returncode is None:
                stop(process)
        texts = []
        for file in (out, said):
            file.seek(0)
            texts.append(file.read())
    return {"code": code, "out": texts[0], "said": texts[1]}


def run(name, words, exact, lockstep):
    with tempfile.TemporaryDirectory(prefix="watch_healthy-") as folder:
        alone = launch(words, folder)
        watched = None
        if alone["code"] is not None:
            watched = launch([lockstep, "watch", "--", *words], folder)
    return dict(judge(alone, watched, exact), name=name)


# ---- the judgement: pure

def last_of(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def shape(text):
    """Its rows: a first word (all times are one, and all ids of runs), and how many others."""
    rows = Counter()
    for line in text.splitlines():
        words = next(csv.reader([line])) if "," in line else line.split()
        if words:
            first = re.sub(r"^(-?\d+\.\d+\S*|[0-9a-f]{8})$", "figure", words[0])
            rows["%s and %d more" % (first, len(words) - 1)] += 1
    return rows


def rows_of(text, exact):
    return Counter(text.splitlines()) if exact else shape(text)


def difference(alone, watched, exact):
    """A row that one of them has more often, or ""."""
    one, other = rows_of(alone, exact), rows_of(watched, exact)
    for more, less, where in ((one, other, "alone"), (other, one, "watched")):
        for row in more - less:
            return "only %s: %s" % (where, row)
    return ""


def judge(alone, watched, exact):
    """One that fails alone may fail in another way when it is watched."""
    if watched is None:
        return {"why": "", "not_run": "alone it was out of time", "events": 0}
    row = judge_watched(alone, watched, exact)
    if alone["code"] != 0 and row["why"]:
        row["not_run"] = "alone it ended with exit code %d: %s" % (
            alone["code"], last_of(alone["said"] + alone["out"]))
        row["why"] = ""
    return row


def judge_watched(alone, watched, exact):
    last = LAST_LINE.search(watched["said"])
    wrong = ["%s: %s" % each for each in FINDING.findall(watched["said"])]
    row = {"why": "", "not_run": "", "events": int(last[1]) if last else 0}
    if not wrong and last is None:
        row["not_run"] = "not watched: " + last_of(watched["said"])
    elif last and last[2]:
        row["not_run"] = "not watched whole"
    if watched["code"] is None:
        wrong.append("watched it was out of time")
    elif watched["code"] != alone["code"]:
        wrong.append("watched it ended with exit code %d: %s" % (watched["code"],
                                                                 last_of(watched["said"])))
    else:
        wrong.append(difference(alone["out"], watched["out"], exact))
    row["why"] = "; ".join(filter(None, wrong))
    if row["why"]:
        row["not_run"] = ""
    return row


def table(rows):
    wrong = [row for row in rows if row["why"]]
    idle = [row for row in rows if row["not_run"]]
    lines = ["WRONG %s: %s" % (row["name"], row["why"]) for row in wrong]
    lines += ["not run %s: %s" % (row["name"], row["not_run"]) for row in idle]
    right = len(rows) - len(wrong) - len(idle)
    return lines + ["%d of %d are as they are alone, and nothing was found; %d events; %d wrong, "
                    "%d not run" % (right, len(rows), sum(row["events"] for row in rows),
                                    len(wrong), len(idle))]


def exit_code(rows):
    if any(row["why"] for row in rows):
        return 1
    return 0 if any(not row["not_run"] for row in rows) else 3


# ---- the command

def has_torchrun(python):
    """Whether the torchrun of this Python's PyTorch works: that of version 1 may not."""
    said = subprocess.run([python, "-c", "import torch; print(torch.__version__)"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        launches.fail(_NAME, 2, "%s has no PyTorch: %s; name another one by --python"
                      % (python, last_of(said.stderr)))
    print("PyTorch", said.stdout.strip(), flush=True)
    return not said.stdout.startswith("1.")


def parse(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("folder", metavar="DIR", nargs="?", help="Folder of the programs")
    parser.add_argument("--lockstep", metavar="FILE",
                        help="The lockstep in question (default: beside this command)")
    parser.add_argument("--arguments", metavar="TEXT",
                        help="Arguments of every program (default: short ones of its suite)")
    parser.add_argument("--ranks", type=int, default=2, metavar="COUNT",
                        help="Number of ranks (of a program; default 2)")
    parser.add_argument("--training", type=int, default=0, metavar="COUNT",
                        help="Random training scripts of PyTorch (default 0)")
    parser.add_argument("--seed", type=int, default=1, metavar="SEED",
                        help="Seed of all that is random (the first script's; default 1)")
    parser.add_argument("--jobs", type=int, default=1, metavar="COUNT",
                        help="Threads that run trials (default 1)")
    parser.add_argument("--python", default=sys.executable, metavar="FILE",
                        help="The Python that has PyTorch (default: this one)")
    parser.add_argument("--names", metavar="TEXT",
                        help="Programs whose names match this regular expression (default: all)")
    parser.add_argument("--state", metavar="FILE",
                        help="File of the rows so far (its programs are not run again)")
    options = parser.parse_args(arguments)
    if options.folder is None and options.training <= 0:
        parser.error("nothing to run; name a folder, or --training=200")
    if options.folder is not None and not os.path.isdir(options.folder):
        parser.error("%s is no folder; name the one of the programs" % options.folder)
    return options


def lockstep_of(options):
    lockstep = options.lockstep or launches.program_beside("lockstep")
    if lockstep is None or not shutil.which(lockstep):
        launches.fail(_NAME, 4, "no lockstep beside this script or on the PATH; build it, or name "
                                "it by --lockstep")
    return os.path.abspath(lockstep)


def main(arguments):
    options = parse(arguments)
    lockstep = lockstep_of(options)
    options.torchrun = options.training > 0 and has_torchrun(options.python)
    state = launches.JsonLines(options.state) if options.state else None
    rows = [json.loads(line) for line in state.lines] if state else []
    done = {row["name"] for row in rows}
    left = [(*each, lockstep) for each in launches_of(options) if each[0] not in done]
    launches.end_in_order()
    for row in launches.in_threads(options.jobs, run, left):
        rows.append(row)
        if state:
            state.append(row)
        word = row["why"] or row["not_run"] or "as alone"
        print("%d of %d %s: %s" % (len(rows), len(left) + len(done), row["name"], word),
              flush=True)
    print("\n".join(table(rows)))
    return exit_code(rows)
