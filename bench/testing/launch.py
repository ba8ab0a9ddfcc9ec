"""Starts benchmarks under mpirun for tests, and looks for what they left behind."""
import contextlib
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, os.path.abspath(os.path.join(__file__, "../../../results/python")))
import lockstep  # pylint: disable=wrong-import-position
sys.path.insert(0, os.path.abspath(os.path.join(__file__, "../../../core/base/testing")))
import started  # pylint: disable=wrong-import-position

MARK = started.MARK
LOOK_S = 20  # between two looks at a launcher that may hang
LOOKS = 3    # that find it alone and idle before it is ended
MOST_BUDGET_S = 640


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def with_enough_time(launched, too_short, budget_s):
    """launched(time budget), again with twice the budget while that was too short to tell
    anything: starting alone may take longer on a busy machine."""
    while too_short(done := launched(budget_s)):
        print(f"a time budget of {budget_s} s was too short")
        if budget_s >= MOST_BUDGET_S:
            raise AssertionError(f"even a time budget of {budget_s} s was too short")
        budget_s = min(2 * budget_s, MOST_BUDGET_S)
    return done


def hangs_alone(looks, pid):
    """Whether the last looks, (live processes of the launch, what this one has had of processors),
    found the process alone and idle."""
    last = looks[-LOOKS:]
    return len(last) == LOOKS and all(look == ([pid], last[0][1]) for look in last)


class Launch:
    """One mpirun of a benchmark, started by the command `through`, marked so that its processes can
    be found."""

    def __init__(self, binary, arguments, ranks=2, environment=None, through=()):
        self.mark = uuid.uuid4().hex
        self.jobs = set()
        self._began = time.monotonic()
        self._was_hit = False
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.path = os.path.join(folder, "run.h5")
        env = dict(os.environ, **(environment or {}))
        env[MARK] = self.mark
        root = ["--allow-run-as-root"] if through or os.geteuid() == 0 else []
        command = [*through, "mpirun", "--oversubscribe", "--bind-to", "none", "--mca",
                   "mpi_yield_when_idle", "1", "-np", str(ranks), *root, binary, *arguments]
        if not any(word.startswith("--output") for word in arguments):
            command += ["--output", self.path]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)

    def finish(self):
        """Waits; afterwards code, out, err hold what it said.

        Open MPI 4.1.4's mpirun can wait for its own mutex for ever after its processes ended
        (PMIx_server_finalize), and is ended then. It can also crash there, within libgcc. The code
        is the one that the file holds then.
        """
        looks, failed = [], False
        while not hangs_alone(looks, self.process.pid):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.out, self.err = self.process.communicate(timeout=LOOK_S)
                failed = self.process.returncode == -signal.SIGSEGV
                break
            looks.append((self.processes(), started.processor_seconds(self.process.pid)))
        else:
            failed = True
            self.process.kill()
            self.out, self.err = self.process.communicate()
        self.code = self.process.returncode
        if failed:
            print(f"mpirun ended by signal {-self.code}; the exit code is that of the file")
            self.code = int(self.attribute("exit_code"))
        started.remove_segments(self.jobs)
        return self

    def processes(self, worker=None):
        """Live processes of this launch: pids; only workers or only agents if asked."""
        needle = f"{MARK}={self.mark}".encode()
        found = []
        for entry in glob.glob("/proc/[0-9]*"):
            try:
                with open(entry + "/environ", "rb") as file:
                    variables = file.read().split(b"\0")
                with open(entry + "/stat") as file:
                    state = file.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if needle not in variables or state == "Z":
                continue
            if job := started.job_of(variables):
                self.jobs.add(job)
            is_worker = any(v.startswith(b"LOCKSTEP_WORKER=") for v in variables)
            if worker is None or worker == is_worker:
                found.append(int(entry.rsplit("/", 1)[1]))
        return found

    def workers_by_rank(self):
        """{rank: pid} of the live workers."""
        ranks = {}
        for pid in self.processes(worker=True):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
            except OSError:
                continue
            for variable in variables:
                if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                    ranks[int(variable.split(b"=")[1])] = pid
        return ranks

    def await_workers(self, ranks=2, computed_seconds=0.0):
        """Waits until the worker of each rank is there, and has computed so long; {rank: pid}."""
        while self.process.poll() is None:
            workers = self.workers_by_rank()
            computed = map(started.processor_seconds, workers.values())
            if len(workers) == ranks and min(computed) >= computed_seconds:
                return workers
            time.sleep(0.05)
        raise AssertionError(f"no {ranks} workers that computed for {computed_seconds} s")

    def leftovers(self):
        """Processes still there long after the end. Shared memory is unnamed: it goes with them."""
        deadline = time.monotonic() + 60
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left

    def outcomes(self):
        """{rank: outcome} of the launch, from the file."""
        with lockstep.open(self.path) as run:
            return {row["rank"]: row["outcome"] for row in run.rows("verdicts/outcomes")
                    if row["case"] == lockstep.LAUNCH}

    def note_hit(self, budget_s):
        """The test has hurt the run; within the time budget it was not over for sure."""
        self._was_hit = time.monotonic() < self._began + budget_s

    def may_have_missed(self):
        """Whether the run may have been over before the test hurt it."""
        return not self._was_hit

    def was_over_before(self):
        """Whether the run came to its end with all ranks before the test hurt it."""
        finished = set(self.outcomes().values()) == {"finished"}
        return self.may_have_missed() and self.attribute("complete") and finished

    def attribute(self, name):
        with lockstep.open(self.path) as run:
            return getattr(run, name)
