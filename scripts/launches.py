"""What the programs of scripts/ share: how they read their arguments, find the suite's binaries,
start launches, see what is left of them, and remember what is over."""

import argparse
import concurrent.futures
import ctypes
import errno
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback

SCRIPTS = os.path.dirname(os.path.realpath(__file__))
TREE = os.path.dirname(SCRIPTS)
# Of binaries: in bazel-bin, in what a test sees, and in an installed copy.
ROOMS = ("", "bench", "stress", "cli", "cli/fuzz", "bin")
# Where programs that import launches find Python's reader: in the tree, and installed.
sys.path[1:1] = [os.path.join(TREE, "results", "python"), os.path.join(SCRIPTS, "python")]
SKIPPED = 77  # exit code: not possible on this machine
INTERRUPTED = 3  # exit code: by Ctrl-C, before all was done
DEFECT = 10  # exit code: of Lockstep; 1 would be a verdict
# For mpirun: ranks share processors, so who waits lets others work.
SHARING = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
OPEN_MPI = ["mpirun", *SHARING]
# `lockstep` becomes some of these programs, and says what was typed: `lockstep matrix`.
_TYPED = os.environ.pop("LOCKSTEP_COMMAND", None)
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class _Parser(argparse.ArgumentParser):

    def error(self, message):
        self.exit(2, f"{self.prog}: {one_line(message)}; see {self.prog} --help\n")


class _Renamed(argparse.Action):
    """Of an earlier version: refused, with today's name."""

    def __call__(self, this, namespace, values, option_string=None):
        this.error(f"{option_string} is called {self.const} now")


def parser(description):
    """Errors are one line; a part of an option's name is no option."""
    made = _Parser(prog=_TYPED, description=description, allow_abbrev=False, add_help=False,
                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("-h", "--help", action="help", help="Print this help message and exit")
    return made


def renamed(of, **names):
    """Old spellings of options: renamed(parser, budget="--time-budget"); `_` is a dash."""
    for old, now in names.items():
        dashes = "-" if len(old) == 1 else "--"
        of.add_argument(dashes + old.replace("_", "-"), action=_Renamed, const=now, nargs="?",
                        help=argparse.SUPPRESS)


def parse_with_command(by, arguments):
    """Options and a `command`, the words behind the first --. argparse drops a second -- there."""
    options = by.parse_args(arguments)
    if "--" in arguments:
        options.command = arguments[arguments.index("--") + 1:]
    return options


def choices(allowed):
    """Of an argument: words of these, comma-separated."""
    def parse(text):
        words = text.split(",")
        for word in words:
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(allowed)}")
        return words
    return parse


_UNITS = {"": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "m": 60, "min": 60, "h": 3600}


def seconds(text):
    """Of an argument: a time as all programs read it, such as 20, 1.5s, 250ms or 2m."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?)([a-z]*)", text)
    if not found or found[2] not in _UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a duration; write seconds such as 20, "
                                         "1.5s, 250ms or 2m")
    return float(found[1]) * _UNITS[found[2]]


def one_line(text):
    """A terminal shows it and does not obey it: control characters as in C."""
    return "".join(each if each >= " " and each != "\x7f" else
                   each.encode("unicode_escape").decode() for each in str(text).rstrip("\n"))


def fail(program, code, message):
    try:
        print(f"{_TYPED or program}: {one_line(message)}", file=sys.stderr)
    except OSError:  # nobody reads it; the exit code is left
        _discard(2)
    sys.exit(code)


# Of a write to what an error does not name. What Python could not write at once it has forgotten,
# so that a second try tells nothing.
_NOT_TAKEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE, errno.EBADF)


def _discard(descriptor):
    """What is still to be written there is lost, and tells nothing more."""
    opened = os.open(os.devnull, os.O_WRONLY)
    os.dup2(opened, descriptor)
    os.set_inheritable(descriptor, True)


def _interrupt_once(_number, _frame):
    """A second Ctrl-C changes nothing: by then, what was started is being ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def load_reader():
    """The reader of run files. OSError where what it needs is not installed."""
    try:
        import lockstep
    except (ImportError, ValueError) as error:  # ValueError: of another version of numpy
        raise OSError(f"h5py or numpy cannot be loaded ({one_line(error)}), and result files need "
                      "them; apt-get install python3-h5py, or pip install h5py") from None
    return lockstep


def need_reader():
    """For programs that import it on top: before they do."""
    try:
        load_reader()
    except OSError as error:
        fail(os.path.basename(sys.argv[0]), 4, error)


def run(main):
    """A program whose `main` takes the arguments and gives the exit code. What the machine refuses,
    as an output that is full or that nobody reads, is one line and exit code 4; Ctrl-C is one
    line, too. What no line is for is a defect, and no verdict."""
    try:
        _run(main)
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        sys.exit(DEFECT)


def _run(main):
    program = os.path.basename(sys.argv[0])
    if sys.stderr is None:
        _discard(2)  # also for what it starts
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)
    if sys.stdout is None:
        fail(program, 4, "standard output is closed; redirect it, if need be to /dev/null")
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt_once)
    try:
        try:
            code = main(sys.argv[1:])
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
    except KeyboardInterrupt:
        fail(program, INTERRUPTED, "interrupted")
    except OSError as error:
        what = error.filename or _lost_output()
        if what is None and error.errno not in _NOT_TAKEN:
            raise
        what = what or "an output"
        remedy = "let somebody read it" if error.errno == errno.EPIPE else "free space there"
        fail(program, 4, f"{what}: {error.strerror}; {remedy}, or choose another place")
    sys.exit(code)


def _lost_output():
    """"standard output" if it takes nothing; then nothing more is said there."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard(1)
        return "standard output"
    return None


def command(name):
    """The path of another program of scripts/."""
    return os.path.join(SCRIPTS, name)


def installed_name(name):
    """Debian has a `stress` and a `fuzz` of others."""
    return "lockstep-" + name if name in ("stress", "fuzz") else name


def program_in(folders, name, rooms=ROOMS):
    """The first executable of this name, built or installed, in a room of the folders, or None."""
    for path in (os.path.join(folder, room, spelled) for folder in folders for room in rooms
                 for spelled in (name, installed_name(name))):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return None


def program_beside(name):
    """Beside the command as it was typed (a test has links to it), built, installed, or None."""
    typed = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0])))
    folders = [typed, os.path.join(typed, "bazel-bin"), os.path.join(TREE, "bazel-bin"),
               os.path.dirname(TREE)]
    return program_in(folders, name) or shutil.which(installed_name(name))


def needed_program(of, name):
    found = program_beside(name)
    if found is None:
        sys.exit(f"{of}: no {name} beside this script or on the PATH; build or install it")
    return found


def end_in_order():
    """When the program is told to end: not before folders are removed and children are stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def seeded(seed):
    """A source of random numbers, whose seed is told."""
    seed = random.randrange(10**6) if seed is None else seed
    print(f"seed {seed}", flush=True)
    end_in_order()
    return random.Random(seed)


# Once it is set, what threads run is to end, too.
leaving = threading.Event()


def in_threads(jobs, work, items):
    """work(*item) of each item as it is done, by so many threads. Nothing else begins when the
    program ends."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = [pool.submit(work, *item) for item in items]
        try:
            for task in concurrent.futures.as_completed(tasks):
                yield task.result()
        except BaseException:
            leaving.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_as(words, **how):
    """The exit code of a command that gets the signals which this program gets meanwhile."""
    # A pipe tells of them: Python handles a signal that comes just before a wait after it.
    told, tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    before = {number: signal.signal(number, lambda *_: None)
              for number in (signal.SIGTERM, signal.SIGINT)}
    waked = signal.set_wakeup_fd(tell)
    try:
        job = subprocess.Popen(words, **how)
        ended = os.pidfd_open(job.pid)
        while ended not in select.select([told, ended], [], [])[0]:
            for number in os.read(told, 1):
                job.send_signal(number)
        os.close(ended)
        return job.wait()
    finally:
        signal.set_wakeup_fd(waked)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(told)
        os.close(tell)


def mpirun(*words):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", *root, *words]


def launcher_of(program):
    """What starts ranks of a program on this host, sharing processors, without their number: of the
    MPI that the program was built for. None: Open MPI's."""
    if program is not None:
        with open(program, "rb") as file:
            if b"libmpich.so" in file.read():  # Hydra shares processors without being told
                return ["mpiexec.mpich" if shutil.which("mpiexec.mpich") else "mpiexec"]
    return OPEN_MPI


def ranks_of(program, ranks):
    """The words before a program that start that many ranks of it on this host."""
    first, *rest = launcher_of(program)
    return [*(mpirun() if first == "mpirun" else [first]), *rest, "-n", str(ranks)]


def die_with_parent(number=signal.SIGKILL):
    """For preexec_fn: the child gets this signal when the process that starts it ends."""
    return lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, number)


def variables_of(pid):
    """The environment of a process; nothing of one that ended or is another user's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return dict(one.split(b"=", 1) for one in file.read().split(b"\0") if b"=" in one)
    except OSError:
        return {}


def processes():
    """[(pid, its environment)] of all processes."""
    return [(int(name), variables_of(name)) for name in os.listdir("/proc") if name.isdigit()]


def program_of(pid):
    """The name of a process's program; "" of one that ended or is another user's."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def state_of(pid):
    """"S", "T", "Z" … (proc(5)); "X": it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def is_alive(pid):
    return state_of(pid) not in "ZX"


def await_that(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def sync_folder(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def version_of(lockstep):
    """Of the program at that path; None without one."""
    if lockstep is None:
        return None
    said = subprocess.run([lockstep, "--version"], stdout=subprocess.PIPE, text=True, check=False)
    return said.stdout.strip().partition(" ")[2]


def other_versions(versions):
    """A sentence where there are several, else ""."""
    versions = sorted(set(versions))
    return "measured by different versions of Lockstep: " + ", ".join(versions) \
        if len(versions) > 1 else ""


class JsonLines:
    """A file of JSON lines that a crash or a reboot leaves whole. A line is written at once and is
    on the disk before anything depends on it; what a crash left half written is cut off."""

    def __init__(self, path):
        self.path = path
        self._file = open(path, "a+b", buffering=0)
        sync_folder(os.path.dirname(path) or ".")
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        self._half_begins = whole if whole < len(content) else None
        self.lines = content[:whole].splitlines()  # that were there

    def append(self, line):
        data = json.dumps(line, sort_keys=True).encode() + b"\n"
        if self._half_begins is not None:
            self._file.truncate(self._half_begins)
            self._half_begins = None
        if self._file.write(data) != len(data):
            raise OSError("%s: could not be written whole; free space there" % self.path)
        os.fsync(self._file.fileno())

    def close(self):
        self._file.close()
