"""A random rank of a program under `lockstep watch` ends or stops at a random moment: is it named
with what happened, or honestly nobody, is the result file whole, and is nothing left behind?

  scripts/watched_kills --trials=100 --seed=1        some 20 minutes
  scripts/watched_kills --ends=stop,exit --trials=10
  scripts/watched_kills --seed=1 --only=27,42        two of those trials again

The programs know nothing of Lockstep: one in C calls MPI, one in Python trains over gloo, where
PyTorch is installed. A watcher stands around the launcher, or one beside each rank. A rank is
killed, stopped, aborted or made to crash by a signal; or it calls exit() or _exit() itself.

  nobody else is accused  each finding names the rank, and a cause that fits its end
  a stopped rank is told  where the program was in its steps
  the file is whole       where something was said, `lockstep show` reads it
  the launcher's own code is passed on by a watcher around it
  nothing is left         of processes, and of the watchers' folders

Exit codes: 0 all trials passed, 1 one did not, 2 usage, 3 no rank was ended,
4 a program is missing.
"""
import contextlib
import fcntl
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import launches
import lockstep
from launches import choices, needed_program
from trials import torch_ranks
from trials.noise import Mark
from trials.random_kills import check_numbers, conclude, numbers
from trials.watched_programs import C_PROGRAM, PYTHON_PROGRAM

ENDS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "abort": signal.SIGABRT,
        "crash": signal.SIGSEGV, "exit": signal.SIGUSR1, "_exit": signal.SIGUSR2}
PROGRAMS = ("mpi", "torch")
WAYS = ("around", "each")
# What the end of a rank may be called. A rank of PyTorch that left in order lacks a call.
CAUSES = {"stop": {"stopped_rank"}, "exit": {"lost_rank", "missing_call", "aborted"},
          "_exit": {"lost_rank", "missing_call", "aborted"}}
ENDED = {"lost_rank", "aborted"}
TRIAL_SECONDS = 400  # only bounds a hang
ENDING_SECONDS = 100  # of a launch from its strike on, where nothing has to be told
OUTLIVING_SECONDS = 30  # that an mpirun stays without a rank, which it does for ever
# Around the launcher: its exit code goes to a file, and SIGTERM to it.
KEEPS_CODE = """"$@" & launcher=$!
trap 'kill -TERM $launcher' TERM
wait $launcher; code=$?
if kill -0 $launcher 2> /dev/null; then wait $launcher; code=$?; fi
echo $code > "$0"
exit $code
"""
SAID = re.compile(r"^lockstep watch: (?:HUNG, )?(\w+) \((\w+)[^)]*\): (.*)$", re.M)
SHOWN = re.compile(r"lockstep watch: lockstep show (\S+)")


def plan(options, generator, number, folder):
    program = generator.choice(options.suites)
    ranks = generator.randint(2, 3)
    way = generator.choice(WAYS) if program == "mpi" else "around"
    return {"number": number, "program": program, "way": way, "ranks": ranks,
            "rank": generator.randrange(ranks), "end": generator.choice(options.ends),
            "begun": number % 3 != 0, "moment_s": generator.uniform(0, 3),
            "folder": os.path.join(folder, str(number))}


def words_of(trial, options, folder):
    """The command, and the file in which the launcher's exit code will be."""
    code = os.path.join(trial["folder"], "code")
    watch = [needed_program("watched_kills", "lockstep"), "watch", "--"]
    ranks = str(trial["ranks"])
    if trial["program"] == "torch":
        launch = [options.python, os.path.abspath(torch_ranks.__file__), ranks,
                  os.path.join(folder, "train.py")]
    else:
        program = os.path.join(folder, "program")
        launch = launches.ranks_of(program, trial["ranks"])
        if trial["way"] == "each":
            return [*launch, *watch, program]
        launch = [*launch, program]
    return [*watch, "sh", "-c", KEEPS_CODE, code, *launch]


def victim_of(trial, mark):
    """The process of the rank that is no watcher, or nothing."""
    for pid, variables in launches.processes():
        if not mark.is_of(variables) or not launches.is_alive(pid):
            continue
        rank = variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMI_RANK"))
        if trial["program"] == "torch":
            rank = variables.get(b"RANK")
        wanted = "python" if trial["program"] == "torch" else "program"
        if rank is not None and int(rank) == trial["rank"] \
                and launches.program_of(pid).startswith(wanted):
            return pid
    return None


def strike(trial, mark, launcher, log, began):
    """When the victim was struck, and its process: every third time since the launch began, else
    since its first step."""
    while trial["begun"] and launcher.poll() is None:
        with open(log, encoding="utf-8", errors="replace") as file:
            if "in its steps" in file.read() or time.monotonic() > began + TRIAL_SECONDS / 2:
                break
        time.sleep(0.01)
    time.sleep(trial["moment_s"])
    while launcher.poll() is None and time.monotonic() < began + TRIAL_SECONDS:
        pid = victim_of(trial, mark)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, ENDS[trial["end"]])
                return time.monotonic() - began, pid
        time.sleep(0.002)
    return None, None


def must_be_told(trial):
    """A rank that was stopped in its steps."""
    return trial["end"] == "stop" and trial.get("begun")


def settle(trial, mark, launcher, log, began, struck):
    """Until all is over. A launch with a stopped rank stays; when that was said, it is ended. An
    mpirun that stays without a rank is killed: whether it was."""
    enough = TRIAL_SECONDS - 40
    if not must_be_told(trial):
        enough = min(enough, (struck or 0) + ENDING_SECONDS)
    told_to_end, ranks_until, killed = False, time.monotonic(), False
    while launcher.poll() is None or list(mark.processes()):
        passed = time.monotonic() - began
        if passed > TRIAL_SECONDS:
            break
        mpirun = mark.outliving_mpirun()
        if mpirun is None:
            ranks_until = time.monotonic()
        elif time.monotonic() > ranks_until + OUTLIVING_SECONDS:
            with contextlib.suppress(ProcessLookupError):
                os.kill(mpirun, signal.SIGKILL)
                killed = True
        with open(log, encoding="utf-8", errors="replace") as file:
            said = trial["end"] == "stop" and "stopped_rank" in file.read()
        if (said or passed > enough) and not told_to_end and launcher.poll() is None:
            told_to_end = True
            launcher.terminate()
        time.sleep(0.05)
    return killed


def run(trial, options, folder):
    mark = Mark()
    os.makedirs(trial["folder"])
    log = os.path.join(trial["folder"], "log")
    before = set(glob.glob("/dev/shm/lockstep-watch-*") + glob.glob("/tmp/lockstep-flight-*"))
    with open(log, "w", encoding="utf-8") as file:
        began = time.monotonic()
        launcher = subprocess.Popen(words_of(trial, options, folder), stdin=subprocess.DEVNULL,
                                    stdout=file, stderr=file, env=mark.environment,
                                    cwd=trial["folder"])
        pids, victim, outlived = {launcher.pid}, None, False
        try:
            struck, victim = strike(trial, mark, launcher, log, began)
            pids.update(pid for _, _, pid in mark.processes())
            outlived = settle(trial, mark, launcher, log, began, struck)
        finally:
            left = list(mark.processes())
            for _, _, pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if victim is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
        code = launcher.wait(timeout=30)
    with open(log, encoding="utf-8", errors="replace") as file:
        said = file.read()
    ours = re.compile("lockstep-(watch|flight)-(%s)-" % "|".join(map(str, sorted(pids))))
    after = glob.glob("/dev/shm/lockstep-watch-*") + glob.glob("/tmp/lockstep-flight-*")
    files = [path for path in after
             if path not in before and ours.search(path) and not is_held(path)]
    own_code = os.path.join(trial["folder"], "code")
    launchers_own = None
    if os.path.exists(own_code):
        with open(own_code, encoding="utf-8") as file:
            launchers_own = int(file.read() or -1)
    return {"struck_s": struck, "code": code, "launchers_own": launchers_own, "said": said,
            "findings": SAID.findall(said), "left": [f"{role} {pid}" for role, _, pid in left],
            "left_files": files, "file": read(said, trial["folder"]), "outlived": outlived}


def is_held(path):
    """A watcher that lives has it: one in another container may have the number of one of ours."""
    lock = os.path.join(path, "lock") if os.path.isdir(path) else path.partition("_")[0] + "_lock"
    try:
        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def read(said, folder):
    """The result file that was named, as far as it is judged; None without one."""
    named = SHOWN.search(said)
    if not named:
        return None
    path = os.path.join(folder, named[1])
    shown = subprocess.run([needed_program("watched_kills", "lockstep"), "show", path],
                           capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if shown.returncode != 0:
        return {"damage": shown.stderr.strip()}
    with lockstep.open(path) as opened:
        return {"damage": "", "complete": opened.complete,
                "findings": [(finding.cause, finding.culprits) for finding in opened.findings]}


# ---- the judgement: pure

def wrong_file(seen):
    file = seen["file"]
    if not seen["findings"]:
        return ""
    if file is None:
        return "something was found, and no file was named"
    if file["damage"]:
        return f"the file cannot be read: {file['damage']}"
    told = sorted(cause for cause, _, _ in seen["findings"])
    if sorted(cause for cause, _ in file["findings"]) != told:
        return f"the file has {file['findings']}, and {told} were told"
    return ""


def wrong_finding(trial, seen):
    known = CAUSES.get(trial["end"], ENDED)
    for cause, _, text in seen["findings"]:
        if seen["struck_s"] is None:
            return f"nobody was struck: {cause}: {text}"
        if cause not in known:
            return f"another cause: {cause}: {text}"
        if not re.match(r".*?\brank %d\b" % trial["rank"], text.split(";")[0].split(" waits")[0]):
            return f"another rank: {cause}: {text}"
    for cause, culprits in (seen["file"] or {}).get("findings", []):
        if list(culprits) != [trial["rank"]]:
            return f"the file blames {culprits}: {cause}"
    return ""


def judge(trial, seen):
    """Why the trial failed, or ""."""
    if seen["left"] or seen["left_files"]:
        return f"left over: {', '.join(seen['left'] + seen['left_files'])}"
    own = seen["launchers_own"]
    if own is not None and seen["code"] != own and trial["end"] != "stop":
        return f"exit code {seen['code']}, and the launcher's was {own}"
    if must_be_told(trial) and seen["struck_s"] and not seen["findings"]:
        return "a stopped rank was not told"
    return wrong_finding(trial, seen) or wrong_file(seen)


# ---- the table

def show(trial, why, seen):
    struck = "never" if seen["struck_s"] is None else f"{seen['struck_s']:.2f} s"
    causes = ", ".join(cause for cause, _, _ in seen["findings"]) or "nobody named"
    print(f"{trial['number']:3} {trial['program']:5} {trial['way']:6} {trial['end']:5} rank "
          f"{trial['rank']} of {trial['ranks']} at {struck:7}: "
          f"{'FAILED: ' + why if why else 'ok'}; {causes}; exit code {seen['code']}"
          f"{'; mpirun outlived its ranks' if seen['outlived'] else ''}", flush=True)
    if why:
        print("      | " + "\n      | ".join(seen["said"].splitlines()[-25:]), flush=True)


def prepare(options, folder):
    """Writes and compiles the programs."""
    if "torch" in options.suites:
        with open(os.path.join(folder, "train.py"), "w", encoding="utf-8") as file:
            file.write(PYTHON_PROGRAM)
    if "mpi" not in options.suites:
        return
    source = os.path.join(folder, "program.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(C_PROGRAM)
    compiler = "mpicc.openmpi" if shutil.which("mpicc.openmpi") else "mpicc"
    if not shutil.which(compiler):
        launches.fail("watched_kills", 4, "no mpicc on the PATH; install Open MPI")
    subprocess.run([compiler, "-g", "-O1", "-o", os.path.join(folder, "program"), source],
                   check=True)


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False).returncode == 0


def main(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("--trials", type=int, default=100, metavar="COUNT",
                        help="Number of random trials (default 100)")
    parser.add_argument("--seed", type=int, default=None, metavar="SEED",
                        help="Seed of all that is random (default: a new one, printed)")
    parser.add_argument("--only", type=numbers, default=None, metavar="COUNT",
                        help="Numbers of the trials to run")
    parser.add_argument("--suites", type=choices(PROGRAMS), default=None, metavar="WORD",
                        help="What is launched (%s)" % ", ".join(PROGRAMS))
    parser.add_argument("--ends", type=choices(ENDS), default=list(ENDS), metavar="WORD",
                        help="How ranks end (%s)" % ", ".join(ENDS))
    parser.add_argument("--python", default=sys.executable, metavar="FILE",
                        help="The Python that has PyTorch (default: this one)")
    options = parser.parse_args(arguments)
    check_numbers(parser, options)
    if options.suites is None:
        options.suites = list(PROGRAMS if has_torch(options.python) else PROGRAMS[:1])
    generator = launches.seeded(options.seed)
    whys, struck, unnamed = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="lockstep-watched-") as folder:
        prepare(options, folder)
        for number in range(options.trials):
            trial = plan(options, generator, number, folder)
            if number not in (options.only or {number}):
                continue
            seen = run(trial, options, folder)
            whys.append(judge(trial, seen))
            show(trial, whys[-1], seen)
            struck += seen["struck_s"] is not None
            unnamed += not seen["findings"]
    line, code = conclude(whys, struck, "ends", f"in {unnamed} nobody was named")
    print(line)
    return code
