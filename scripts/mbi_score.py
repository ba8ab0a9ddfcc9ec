"""Compiles every program of the MPI Bugs Initiative in a folder, runs it under `lockstep watch`,
and prints the table of the papers: a row a class, then the programs that were judged wrongly.

  scripts/mbi_score DIR                      all programs of DIR, some 40 minutes
  scripts/mbi_score DIR --sample=150         that many of them, drawn by --seed
  scripts/mbi_score DIR --state=FILE         begin again where FILE ends
  scripts/mbi_score DIR --mpi=mpich          with mpicc.mpich and mpiexec.mpich

DIR holds the .c files that the suite's generators write. Each program is bounded in time. A program
counts as found when anything was said of it. `class` counts those whose class was said, too. One
that does not compile, that the launcher does not start, or that no watcher saw, is neither found
nor missed.

Exit codes: 0 the table was printed, 2 usage, 3 Ctrl-C ended it, 4 MPI or lockstep is missing.
"""
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import launches

CLASSES = {
    "deadlock": "CallMatching", "unsafe_order": "CallMatching",
    "call_mismatch": "CallMatching", "missing_call": "CallMatching",
    "lost_message": "CallMatching", "tag_mismatch": "TagMatching",
    "communicator_mismatch": "CommunicatorMatching", "root_mismatch": "RootMatching",
    "operator_mismatch": "OperatorMatching", "datatype_mismatch": "DatatypeMatching",
    "truncation": "DatatypeMatching", "invalid_communicator": "InvalidCommunicator",
    "invalid_datatype": "InvalidDatatype", "invalid_operator": "InvalidOperator",
    "invalid_root": "InvalidRoot", "invalid_rank": "InvalidSrcDest", "invalid_tag": "InvalidTag",
    "invalid_count": "InvalidOtherArg", "invalid_argument": "InvalidOtherArg",
    "unfinished_request": "MissingWait", "never_started": "MissingStart",
    "started_twice": "MissingWait", "request_leak": "RequestLeak",
    "communicator_leak": "CommunicatorLeak", "datatype_leak": "TypeLeak",
    "operator_leak": "OperatorLeak", "group_leak": "GroupLeak", "message_race": "MessageRace",
}
# What wrappers of calls can't see: it needs every access to memory.
UNSEEN = ("LocalConcurrency", "GlobalConcurrency")
# {MPI: (compiler, launcher)}
MPIS = {"openmpi": ("mpicc", launches.mpirun(*launches.SHARING)),
        "mpich": ("mpicc.mpich", ["mpiexec.mpich"])}
NOT_WATCHED = "no program of MPI, gloo or NCCL was seen"  # as watch says it
ITS_LINE = "lockstep watch: "  # how a line of it begins
QUIET_S = 3  # after a finding, how long a program may go on
BOUND_S = 40


def parse_header(text):
    """(ranks, the class of the error or None) of a program of the suite."""
    test = text[text.index("BEGIN_MBI_TESTS"):]
    ranks = int(re.search(r"mpirun -np (\d+)", test)[1])
    outcome = re.search(r"\| *(OK|ERROR: *(\w+))", test)
    return ranks, outcome[2]


def classes_of(causes):
    return sorted({CLASSES.get(cause, cause) for cause in causes})


def table(rows):
    """rows: {"name", "expected", "causes", "not_run"} -> the lines of the table."""
    broken = collections.Counter(row["not_run"] for row in rows if row.get("not_run"))
    rows = [row for row in rows if not row.get("not_run")]
    classes = collections.OrderedDict()
    for row in sorted(rows, key=lambda row: row["expected"] or ""):
        entry = classes.setdefault(row["expected"] or "right programs", [0, 0, 0])
        entry[0] += 1
        entry[1] += bool(row["causes"])
        entry[2] += row["expected"] in classes_of(row["causes"])
    lines = ["%-22s %8s %8s %8s" % ("class", "programs", "found", "class")]
    for name, (programs, found, right) in classes.items():
        lines.append("%-22s %8d %8d %8s" % (name, programs, found,
                                            "" if name == "right programs" else right))
    lines += ["%-22s %8d" % entry for entry in sorted(broken.items())]
    return lines + [""] + summary("all classes", rows) + summary(
        "without concurrency in memory", [row for row in rows if row["expected"] not in UNSEEN])


def summary(name, rows):
    count = collections.Counter((bool(row["expected"]), bool(row["causes"])) for row in rows)
    true, missed = count[True, True], count[True, False]
    false, quiet = count[False, True], count[False, False]
    precision = true / (true + false) if true + false else 0
    recall = true / (true + missed) if true + missed else 0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    return ["%s: TP %d, FP %d, TN %d, FN %d; precision %.3f, recall %.3f, F1 %.3f" % (
        name, true, false, quiet, missed, precision, recall, f1)]


def wrong(rows):
    """Programs that were judged wrongly, a line each."""
    lines = []
    for row in sorted(rows, key=lambda row: row["name"]):
        if row.get("not_run"):
            lines.append("%s %s" % (row["not_run"], row["name"]))
            continue
        said = ", ".join(row["causes"]) or "nothing"
        if row["expected"] and not row["causes"]:
            lines.append("missed %s (%s)%s" % (row["name"], row["expected"],
                                               ", out of time" if row["late"] else ""))
        elif row["causes"] and not row["expected"]:
            lines.append("false alarm %s: %s" % (row["name"], said))
        elif row["causes"] and row["expected"] not in classes_of(row["causes"]):
            lines.append("other class %s (%s): %s" % (row["name"], row["expected"], said))
    return lines


def watch(lockstep, mpi, source, folder):
    """Compiles and runs one program; its row."""
    name = os.path.basename(source)[:-2]
    with open(source, encoding="utf-8") as file:
        ranks, expected = parse_header(file.read())
    row = {"name": name, "expected": expected, "causes": [], "late": False, "not_run": ""}
    program = os.path.join(folder, name)
    compiler, launcher = MPIS[mpi]
    built = subprocess.run([compiler, "-g", "-w", "-o", program, source], check=False,
                           capture_output=True, text=True)
    if built.returncode:
        row["not_run"] = "not compiled"
        return row
    findings = program + ".findings"
    command = [*lockstep, "watch", "--on-hang=kill", "--races", "--leaks",
               "--findings=" + findings, "--", *launcher, "-np", str(ranks), program]
    with open(program + ".out", "w", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   start_new_session=True, cwd=folder)
        row["late"] = not wait(process, findings)
    if os.path.exists(findings):
        with open(findings, encoding="utf-8") as file:
            row["causes"] = sorted({line.split("\t")[0] for line in file})
    with open(program + ".out", encoding="utf-8", errors="replace") as file:
        row["not_run"] = why_not_judged(row["causes"], row["late"], file.read())
    for leftover in (program, findings, program + ".out"):
        if os.path.exists(leftover):
            os.remove(leftover)
    return row


def why_not_judged(causes, late, said):
    """Of a launch and what it said, or ""."""
    if causes:
        return ""
    if NOT_WATCHED in said:
        return "not started"
    return "" if late or ITS_LINE in said else "not watched"


def wait(process, findings):
    """True when it ended by itself. It is ended some time after it was found out, or at a bound."""
    end, found = time.monotonic() + BOUND_S, None
    while process.poll() is None:
        now = time.monotonic()
        if found is None and os.path.exists(findings):
            found = now
        if now > end or (found and now > found + QUIET_S) or launches.leaving.is_set():
            stop(process)
            return now <= end
        time.sleep(0.05)
    return True


def stop(process):
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def sources_of(options):
    names = sorted(name for name in os.listdir(options.folder) if name.endswith(".c"))
    if options.names:
        names = [name for name in names if re.search(options.names, name)]
    if options.sample and options.sample < len(names):
        names = sorted(random.Random(options.seed).sample(names, options.sample))
    return [os.path.join(options.folder, name) for name in names]


def run(options, rows, folder):
    done = {row["name"] for row in rows}
    left = [([options.lockstep], options.mpi, source, folder) for source in sources_of(options)
            if os.path.basename(source)[:-2] not in done]
    for row in launches.in_threads(options.jobs, watch, left):
        rows.append(row)
        if options.state:
            with open(options.state, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        if len(rows) % 50 == 0:
            print("%d of %d" % (len(rows), len(left) + len(done)), file=sys.stderr)


def parse(arguments):
    parser = launches.parser(__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("folder", metavar="DIR", help="folder of the programs")
    parser.add_argument("--lockstep", metavar="FILE", default=os.path.join(
        here, "..", "bazel-bin", "cli", "lockstep"),
                        help="The lockstep in question (default: below bazel-bin)")
    parser.add_argument("--mpi", choices=sorted(MPIS), default="openmpi", metavar="NAME",
                        help="The MPI in question (openmpi or mpich; default openmpi)")
    parser.add_argument("--sample", type=int, default=0, metavar="COUNT",
                        help="How many of the programs, drawn by --seed (default: all)")
    parser.add_argument("--seed", type=int, default=1, metavar="SEED",
                        help="Seed of all that is random (default 1)")
    parser.add_argument("--names", metavar="TEXT",
                        help="Programs whose names match this regular expression (default: all)")
    parser.add_argument("--jobs", type=int, default=2, metavar="COUNT",
                        help="Threads that run trials (default 2)")
    parser.add_argument("--state", metavar="FILE",
                        help="File of the rows so far (its programs are not run again)")
    launches.renamed(parser, only="--names")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if not os.path.isdir(options.folder):
        print("mbi_score: %s is no folder; name the one of its programs" % options.folder,
              file=sys.stderr)
        return 2
    compiler, launcher = MPIS[options.mpi]
    for program in (compiler, launcher[0], options.lockstep):
        if not shutil.which(program):
            print("mbi_score: %s is missing" % program, file=sys.stderr)
            return 4
    rows = []
    if options.state and os.path.exists(options.state):
        with open(options.state, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
    folder = tempfile.mkdtemp(prefix="mbi_score-")
    try:
        run(options, rows, folder)
    finally:
        shutil.rmtree(folder)
    print("\n".join(table(rows) + [""] + wrong(rows)))
    return 0
