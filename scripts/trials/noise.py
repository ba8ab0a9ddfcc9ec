"""What a busy machine does to a launch: loops that want its processors, and processes that get none
for a moment."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid

import launches

_MARK = "LOCKSTEP_TRIAL_MARK"


class BusyLoops:
    """So many children that only compute, and end with this process however it ends."""

    def __init__(self, count):
        self._children = [subprocess.Popen(
            [sys.executable, "-c", "while True: pass"],
            preexec_fn=launches.die_with_parent()) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self._children:
            child.kill()
            child.wait()


class Mark:
    """Finds the processes of one launch again, which got `environment`."""

    def __init__(self):
        self._mark = uuid.uuid4().hex
        self.environment = dict(os.environ, **{_MARK: self._mark})

    def is_of(self, variables):
        """Whether a process with this environment is of the launch."""
        return variables.get(_MARK.encode()) == self._mark.encode()

    def processes(self):
        """(role, rank, pid) of all that live; a role of "other" has no rank."""
        for pid, variables in launches.processes():
            if not self.is_of(variables) or not launches.is_alive(pid):
                continue
            rank = int(variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMI_RANK", -1)))
            worker = b"LOCKSTEP_WORKER" in variables
            yield ("other" if rank < 0 else "worker" if worker else "agent"), rank, pid

    def outliving_mpirun(self):
        """The mpirun of which no rank lives, or None. It waits for ever (Open MPI 4.1, PMIx 4.2: a
        mutex in PMIx_server_finalize) if a rank died while it connected to it."""
        living = list(self.processes())
        if any(rank >= 0 for _, rank, _ in living):
            return None
        return next((pid for _, _, pid in living if launches.program_of(pid) == "orterun"), None)


def _is_stopped(pid):
    return launches.state_of(pid) == "T"


def _stop_comes(pid):
    """Another stop came meanwhile: a fault of the launch's, which is to last."""
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        pending = re.search(r"^ShdPnd:\s*(\w+)", file.read(), re.M)
    return int(pending[1], 16) >> (signal.SIGSTOP - 1) & 1


class Stops:
    """While it is entered, one process of a role ("agent", "worker") of the launch after the other
    is stopped, for up to `longest` seconds each; none is, if that is 0. What a fault stopped stays
    so."""

    def __init__(self, mark, role, longest, generator):
        self._mark, self._role, self._longest = mark, role, longest
        self._generator = generator
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._stop_some)
        self.count = 0

    def __enter__(self):
        if self._longest > 0:
            self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _stop_some(self):
        while not self._over.wait(self._generator.uniform(0, self._longest)):
            running = [pid for role, _, pid in self._mark.processes()
                       if role == self._role and not _is_stopped(pid)]
            if not running:
                continue
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                self._stop(self._generator.choice(running))

    def _stop(self, pid):
        os.kill(pid, signal.SIGSTOP)
        while not _is_stopped(pid):  # one that gets no processor takes its time
            if not launches.is_alive(pid):
                return
            time.sleep(0.001)
        self.count += 1
        self._over.wait(self._generator.uniform(0, self._longest))
        if not _stop_comes(pid):
            os.kill(pid, signal.SIGCONT)
