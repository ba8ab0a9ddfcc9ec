#!/usr/bin/env python3
"""Faults that agents apply, on real ranks: they bite, heal, are told, and leave nothing behind.

Arguments: the groups to run. LOCKSTEP_TEST_SEED repeats a run.
"""
import glob
import json
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "testing"))
import run_stress  # noqa: E402
from run_stress import started  # noqa: E402

AS_ROOT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(1, 10**6)))
A_DAY = 86400
LOOP = """ranks = 2
[workload]
kind = "all_reduce_loop"
rounds = {rounds}
compute_us = 1000
"""


def expect_pass(outcome, number):
    print(outcome.output)
    assert outcome.code == 0, f"exit code {outcome.code}: {outcome.errors}"
    assert len(outcome.cases) == number, f"{len(outcome.cases)} cases, expected {number}"
    for case in outcome.cases:
        assert case["verdict"] == "pass", case
        assert all(fault["fired"] for fault in case["faults"]), case["faults"]


def environment():
    """What a rank lacks is found, with the rank; what needs nothing of it is not disturbed."""
    outcome = run_stress.run(2, "--scenario=environment/*", "-T", "3", f"--seed={SEED}")
    expect_pass(outcome, 13)
    assert "segment" not in outcome.errors
    # Open MPI meets the small /dev/shm and says so; without the fault it has nothing to say.
    small = run_stress.run(2, "--scenario=environment/small_shm", "--backend=mpi", "-T", "5")
    expect_pass(small, 1)
    said = small.errors + small.output  # mpirun cannot always find the words for it
    assert "not enough space for /dev/shm" in said or "show_help" in said, small.errors
    healthy = run_stress.scenario("own/healthy", LOOP.format(rounds=5))
    whole = run_stress.run(2, f"--scenario={healthy}", "--backend=mpi")
    expect_pass(whole, 1)
    said = whole.errors + whole.output
    assert "/dev/shm" not in said and "show_help" not in said, said


def not_permitted():
    """Where it cannot be done, the fault did not fire, and one line says what is needed."""
    forbid = ["unshare", "--user", "--map-root-user", "sh", "-c",
              'echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$@"', "sh"]
    if subprocess.run(forbid + ["true"], check=False).returncode != 0:
        print("skipped: no user namespaces here, in which mount namespaces could be forbidden")
        return
    outcome = run_stress.run(2, "--scenario=environment/small_shm", through=forbid)
    case = outcome.cases[0]
    assert outcome.code == 3 and case["verdict"] == "unknown", outcome.output
    assert "the fault did not fire: shm_full of rank 0" in case["why"], case
    assert "mount namespaces are needed" in case["why"], case
    assert not case["faults"][0]["fired"] and case["faults_fired"] == 0, case


THROTTLED = """[[fault]]
kind = "cpu_throttle"
rank = 1
share = 0.05
at = "iteration:0"
"""


def slow():
    """A rank short of processor time is slower, and never called hung or stopped."""
    outcome = run_stress.run(2, "--scenario=stragglers/cpu_*", "-T", "5", f"--seed={SEED}")
    expect_pass(outcome, 3)
    assert not any(case["findings"] for case in outcome.cases)
    # A slice of 1 ms in 20 ms: about a round a period.
    plain = run_stress.scenario("own/plain", LOOP.format(rounds=150))
    slowed = run_stress.scenario("own/slowed", LOOP.format(rounds=150) + THROTTLED)
    both = run_stress.run(2, f"--scenario={plain}", f"--scenario={slowed}", "-T", "10")
    expect_pass(both, 2)
    seconds = [both.named(name)[0]["seconds"] for name in ("own/plain", "own/slowed")]
    print(f"150 rounds: {seconds[0]} s, throttled {seconds[1]} s")
    # A stop in the middle of slices is a stop.
    stop = THROTTLED + '[[fault]]\nkind = "stop"\nrank = 1\nat = "iteration:20"\n'
    stopped = run_stress.scenario(
        "own/stopped", LOOP.format(rounds=60) + stop +
        '[expect.any]\nranks = ["hung", "stopped"]\ncause = "rank_stopped"\nculprits = [1]\n')
    expect_pass(run_stress.run(2, f"--scenario={stopped}", "-T", "10"), 1)


class JumpingClock:
    """The time of day of every process that is given `path` jumps by years, both ways."""

    def __init__(self):
        self.path = os.path.join(run_stress.DIRECTORY, "offset")
        self._over = threading.Event()
        self._jump(10 * 365 * 86400)
        self._thread = threading.Thread(target=self._run)

    def _jump(self, seconds):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(struct.pack("=q", int(seconds * 10**9)))

    def _run(self):
        years = random.Random(SEED)
        while not self._over.wait(0.02):
            self._jump(years.choice((9, 10, 11)) * 365 * 86400)

    def __enter__(self):
        os.environ["LOCKSTEP_CLOCK_OFFSET"] = self.path
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        del os.environ["LOCKSTEP_CLOCK_OFFSET"]


def clock():
    """Nothing is judged by the time of day: neither a rank's nor that of those who judge."""
    expect_pass(run_stress.run(2, "--scenario=stragglers/clock_jump", "-T", "3"), 1)
    names = ["isolation/kill_mid_bucket", "isolation/stop_first_collective",
             "isolation/throw_at_time", "stragglers/stop_shorter_than_deadline",
             "stragglers/sleep_longer_than_deadline", "uneven_inputs/case4"]
    output = os.path.join(run_stress.DIRECTORY, "jumping.h5")
    with JumpingClock():
        outcome = run_stress.run(2, *[f"--scenario={name}" for name in names], "-T", "5",
                                 output=output)
    expect_pass(outcome, len(names))
    year = time.gmtime().tm_year
    with open(output, "rb") as file:
        text = file.read()
    future = [str(year + more).encode() for more in (8, 9, 10, 11)]
    assert any(year in text for year in future), "the clock of those who judge did jump"
    for case in outcome.cases:
        assert 0 <= case["seconds"] < A_DAY, case  # a jump is years
        if "longer_than_deadline" in case["name"]:
            assert 4.9 <= case["detected_after_seconds"] < A_DAY, case
        elif case["findings"]:
            assert 0 <= case["detected_after_seconds"] < A_DAY, case


HELD = """ranks = 2
[workload]
kind = "script"
rank.0 = ["sleep 60s"]
rank.1 = ["sleep 60s"]
[[fault]]
kind = "shm_full"
ranks = [0, 1]
bytes = 0
at = "iteration:0"
[[fault]]
kind = "cpu_hog"
rank = 1
processes = 2
at = "iteration:0"
[[fault]]
kind = "cpu_throttle"
rank = 0
share = 0.5
at = "iteration:0"
"""


def names_of(pids):
    names = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                names.append((file.read().strip(), pid))
        except OSError:
            continue
    return sorted(names)


def agent_of(rank, pids):
    """The agent is no worker, and none of its companions, which keep its environment."""
    for name, pid in names_of(pids):
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
        worker = any(variable.startswith(b"LOCKSTEP_WORKER=") for variable in variables)
        if name == "stress" and not worker and b"OMPI_COMM_WORLD_RANK=%d" % rank in variables:
            return pid
    raise AssertionError(f"no agent of rank {rank} among {names_of(pids)}")


def mounts():
    with open("/proc/self/mounts", encoding="utf-8") as file:
        return sorted(file)


def killed():
    """kill -9 of the coordinator, or of another agent: all that was injected goes with it."""
    path = run_stress.scenario("own/held", HELD)
    for rank in (0, 1):
        before = mounts()
        output = os.path.join(run_stress.DIRECTORY, f"killed{rank}.h5")
        words = ["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none", run_stress.STRESS,
                 f"--scenario={path}", "-T", "50", f"--output={output}"]
        with started.Started(words, env=AS_ROOT, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL) as mpirun:
            wanted = {"lockstep-hog", "lockstep-slow", "lockstep-shm"}
            mpirun.until(lambda: wanted <= {name for name, _ in names_of(mpirun.processes())})
            os.kill(agent_of(rank, mpirun.processes()), signal.SIGKILL)
            mpirun.wait()
            mpirun.until(lambda: not mpirun.processes())
        assert mounts() == before


def outlived():
    """Verdicts that were told outlive the coordinator: its successor writes them, but not over the
    file of another run."""
    quick = run_stress.scenario("own/quick", LOOP.format(rounds=3).replace("= 2", "= 3", 1))
    gone = run_stress.scenario("own/gone", LOOP.format(rounds=9).replace("= 2", "= 3", 1) + """
[[fault]]
kind = "exit"
rank = 2
at = "iteration:2"
[expect.any]
cause = "rank_exited"
culprits = [2]
""")
    held = run_stress.scenario("own/held", HELD.replace("= 2", "= 3", 1).replace(
        'rank.1 = ["sleep 60s"]', 'rank.1 = ["sleep 60s"]\nrank.2 = ["sleep 60s"]'))
    path = os.path.join(run_stress.DIRECTORY, "outlived")
    # A successor has until mpirun's SIGKILL, which follows its SIGTERM.
    words = ["mpirun", "-np", "3", "--oversubscribe", "--bind-to", "none", "--mca",
             "odls_base_sigkill_timeout", "10", run_stress.STRESS,
             *(f"--scenario={one}" for one in (quick, gone, held)), "-T", "50",
             f"--output={path}.h5", f"--verdicts={path}.json"]
    with started.Started(words, env=AS_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                         text=True) as mpirun:
        mpirun.until(lambda: "lockstep-hog" in {name for name, _ in names_of(mpirun.processes())})
        with open(path + ".h5", "w", encoding="utf-8") as file:
            file.write("of another run")
        os.kill(agent_of(0, mpirun.processes()), signal.SIGKILL)
        said = mpirun.communicate()[1]
    assert "rank 1's agent took its place" in said, said
    with open(path + ".json", encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    assert [case["name"] for case in cases] == ["own/quick", "own/gone", "own/held"], cases
    assert [case["verdict"] for case in cases[:2]] == ["pass", "pass"], cases
    assert cases[1]["findings"][0]["culprits"] == [2] and cases[1]["faults"][0]["fired"], cases[1]
    assert cases[2]["verdict"] != "pass", cases[2]
    with open(path + ".h5", encoding="utf-8") as file:
        assert file.read() == "of another run"
    (found,) = glob.glob(path + "-*.h5")
    assert f"The run is in {found} instead" in said, said


def refused():
    """One line that names the file, the line, the key and the remedy; exit code 2."""
    wrong = {
        'kind = "cpu_throttle"\nshare = 2\nat = "init"': "share = 0.1",
        'kind = "memory_pressure"\nat = "init"': "key fault[0].bytes: missing",
        'kind = "clock_jump"\nby = "soon"\nat = "init"': 'by = "1h"',
        'kind = "cpu_hog"\nbytes = 3\nat = "init"': "bytes",
        'kind = "environment"\nvariables = ["A=b"]\nat = "iteration:1"': 'at = "init"',
        'kind = "environment"\nvariables = ["A"]\nat = "init"': "NAME=VALUE",
        'kind = "fd_exhaustion"\ndescriptors = -1\nat = "init"': "descriptors = 2",
    }
    for text, part in wrong.items():
        path = run_stress.scenario(
            "own/wrong", LOOP.format(rounds=2) + f"[[fault]]\nrank = 1\n{text}\n")
        outcome = run_stress.run(0, f"--scenario={path}", "--backend=sim")
        lines = [line for line in outcome.errors.splitlines()
                 if line.startswith("lockstep-stress: ")]
        assert outcome.code == 2 and len(lines) == 1 and part in lines[0], outcome.errors
    path = run_stress.scenario("own/throttled", LOOP.format(rounds=2) + THROTTLED)
    outcome = run_stress.run(0, f"--scenario={path}", "--backend=sim")
    assert outcome.code == 2 and "needs real processes" in outcome.errors, outcome.errors


GROUPS = {"clock": clock, "environment": environment, "killed": killed,
          "not_permitted": not_permitted, "outlived": outlived, "refused": refused, "slow": slow}


def main():
    print(f"LOCKSTEP_TEST_SEED={SEED}")
    for group in sys.argv[1:]:
        GROUPS[group]()


main()
