"""Commands that tests start. None outlives its test, what hangs is told, and no shared memory of a
launcher that was killed is left."""
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid

MARK = "LOCKSTEP_TEST_MARK"
BOUND_S = 250  # only bounds a hang; in processor time, too
_JOB = b"OMPI_MCA_ess_base_jobid="  # Open MPI's number of a launch, in the environment of ranks
_STACK_S = 30
# By a runtime that keeps what was freed, takes large parts of memory, and begins late.
SANITIZED = bool({"ASAN_OPTIONS", "TSAN_OPTIONS"} & os.environ.keys())


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # it ended, or belongs to another user
        return b""


def _stat(pid):
    """Words of proc(5) from the state on; none: it is gone."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def state_of(pid):
    """"S", "T", "Z" … (proc(5)); "": it is gone."""
    words = _stat(pid)
    return words[0].decode() if words else ""


def processor_seconds(pid):
    """What it, and what it has reaped, got of processors; 0: it is gone."""
    return sum(map(int, _stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")


def job_of(variables):
    """Of a process with this environment, a list of bytes: its launch's number; None: no rank."""
    found = [int(each[len(_JOB):]) for each in variables if each.startswith(_JOB)]
    return found[0] if found else None


def remove_segments(jobs):
    """What ranks of these launches shared. mpirun removes it, where nobody kills mpirun."""
    for job in jobs:
        for path in glob.glob(f"/dev/shm/vader_segment.*.{job:x}.*"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)


def _stack(pid):
    words = ["gdb", "-batch", "-ex", "thread apply all backtrace 12", "-p", str(pid)]
    try:
        said = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=_STACK_S, check=False, errors="replace").stdout
    except subprocess.TimeoutExpired:
        return "  gdb got no stack\n"
    return "".join(f"  {line}\n" for line in said.splitlines() if line.startswith("#"))


class Started(subprocess.Popen):
    """A command. When its block fails, or is not over after BOUND_S, what its processes do is told
    and all of them are killed; a block that was not over then raises TimeoutError. Processes that
    wait for a processor have up to thrice that: while they get some, until they got BOUND_S of
    it."""

    def __init__(self, words, env=None, **how):
        self._mark = uuid.uuid4().hex
        self.hung = False
        self._jobs = set()  # launches of which processes were seen
        self._waited_s = 0
        self._is_over = threading.Event()
        self._bound = threading.Thread(target=self._watch, daemon=True)
        super().__init__(words, env=dict(env or os.environ, **{MARK: self._mark}), **how)
        self._bound.start()

    def __exit__(self, failure, *more):
        self._is_over.set()
        self._bound.join()
        if failure and not self.hung:
            self._end(failure.__name__)
        if failure:
            self.tell(*(each.read() for each in (self.stdout, self.stderr)
                        if each and not each.closed))
        super().__exit__(failure, *more)
        remove_segments(self._jobs)
        if self.hung:
            raise TimeoutError(f"{self.args} was not over after {self._waited_s} s")

    def tell(self, *said):
        for text in said:
            print(f"said: {text}", file=sys.stderr)

    def until(self, condition):
        while not condition():
            if self.hung:
                raise TimeoutError
            time.sleep(0.01)

    def processes(self):
        """Pids of this command and of all that it has started and that live."""
        mark = f"{MARK}={self._mark}".encode()
        pids = []
        for path in glob.glob("/proc/[0-9]*/environ"):
            variables = _read(path).split(b"\0")
            if mark in variables:
                pids.append(int(path.split("/")[2]))
                if job := job_of(variables):
                    self._jobs.add(job)
        return pids

    def processor_s(self):
        """Seconds of it that all these processes got."""
        return sum(map(processor_seconds, self.processes()))

    def _watch(self):
        got_s, before_s = 0, -BOUND_S
        # One that hangs may still look around now and then.
        while before_s + BOUND_S / 100 < got_s < BOUND_S and self._waited_s < 3 * BOUND_S:
            if self._is_over.wait(BOUND_S):
                return
            self._waited_s += BOUND_S
            before_s, got_s = got_s, self.processor_s()
        self.hung = True
        self._end(f"not over after {self._waited_s} s")

    def _end(self, why):
        pids = self.processes()
        print(f"{why}: {len(pids)} processes of {self.args}", file=sys.stderr)
        for pid in pids:
            command = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace")
            waits = {_read(path).decode() for path in glob.glob(f"/proc/{pid}/task/*/wchan")}
            print(f"process {pid}, {state_of(pid)}, in {waits}: {command}", file=sys.stderr)
            if shutil.which("gdb"):
                print(_stack(pid), end="", file=sys.stderr)
        self.kill_all()

    def kill_all(self):
        """Also what they start meanwhile."""
        pids = self.processes()
        for _ in range(600):  # one that waits for a device may not end at all
            # A process that is in execve(2) has no environment to be known by.
            pids = pids or ([self.pid] if self.poll() is None else [])
            if not pids:
                break
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
            pids = self.processes()


def run(words, **how):
    """As subprocess.run() that captures text."""
    with Started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                 **how) as command:
        output, said = command.communicate()
        if command.hung:
            command.tell(output, said)
    return subprocess.CompletedProcess(words, command.returncode, output, said)
