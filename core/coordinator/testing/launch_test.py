#!/usr/bin/env python3
"""Runs scenarios of launch_probe under mpirun and looks at what is left behind.

Arguments: the group to run. LOCKSTEP_TEST_SEED repeats a run.
"""
import os
import random
import signal
import subprocess
import sys
import time
import uuid

PROBE = "core/coordinator/testing/launch_probe"
# (scenario, ranks, exit code of mpirun, variables)
GROUPS = {
    "talk": [("talk", 2, 0, {}), ("talk", 4, 0, {}), ("large", 2, 0, {}), ("crashed", 2, 1, {})],
    "watch": [("stopped", 2, 0, {}), ("silent", 3, 0, {}), ("allocating", 1, 0, {}),
              ("stubborn", 2, 0, {})],
    "kill": [("killed", 2, 0, {}), ("killed", 4, 0, {}), ("follower_killed", 3, 137, {}),
             ("coordinator_killed", 3, 137, {}),
             ("coordinator_stopped", 3, 1, {"LOCKSTEP_LOST_SECONDS": "2"}),
             ("terminate", 3, None, {})],
    "mpi": [("mpi", 2, 0, {}), ("mpi", 4, 0, {}), ("mpi_killed", 2, 3, {}),
            ("mpi_killed", 3, 3, {})],
    "meet": [("talk", 2, 0, {"LOCKSTEP_MEET": "mpi"}), ("mpi", 3, 0, {"LOCKSTEP_MEET": "mpi"}),
             ("mpi_killed", 2, 3, {"LOCKSTEP_MEET": "mpi"})],
    # An agent of many ranks: its files have numbers above the limit that the launcher gave.
    "files": [("talk", 2, 0, {"MANY_FILES": "1"}), ("killed", 2, 0, {"MANY_FILES": "1"})],
}
RECORD_BYTES = 24


def marked_processes(mark):
    """Live processes (zombies have no environment) that were started with this mark."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


_MANY_FILES = "for i in $(seq 100); do exec {file}</dev/null; done; ulimit -Sn 64; exec \"$@\""


def command(scenario, ranks, seed, orphan, many_files):
    return ["mpirun", "-np", str(ranks), "--oversubscribe", "--bind-to", "none", "--mca",
            "mpi_yield_when_idle", "1",
            # mpirun kills a second after it told them to end; what they save then may take longer.
            *(["--mca", "odls_base_sigkill_timeout", "20"] if scenario == "terminate" else []),
            *(["bash", "-c", _MANY_FILES, "bash"] if many_files else []),
            PROBE, scenario, str(seed), orphan]


def await_line(process, line):
    seen = []
    for text in process.stdout:
        seen.append(text)
        if text.strip() == line:
            return seen
    sys.exit(f"no line '{line}' in: {''.join(seen)}")


def check_legacy(orphan, ranks):
    """What the successor saved of all who live: whole records, consecutive from 0."""
    with open(f"{orphan}.0", "rb") as file:
        assert file.read() == b"4 1 1\n", "nothing is known of the coordinator"
    for rank in range(1, ranks):
        with open(f"{orphan}.{rank}", "rb") as file:
            state = file.readline()
            data = file.read()
        assert state == b"0 1 1\n", f"rank {rank}: ran, and rank 1 succeeded: {state}"
        assert data and len(data) % RECORD_BYTES == 0, f"rank {rank}: {len(data)} bytes"
        for i in range(len(data) // RECORD_BYTES):
            at = i * RECORD_BYTES
            assert int.from_bytes(data[at:at + 8], "little") == i, f"rank {rank}: record {i}"


def run(scenario, ranks, expected, variables, seed):
    mark = f"LOCKSTEP_TEST_MARK={uuid.uuid4()}"
    name, value = mark.split("=")
    environment = dict(os.environ, **variables, **{name: value})
    orphan = os.path.join(os.environ.get("TEST_TMPDIR", "/tmp"), f"orphan-{os.getpid()}-{seed}")
    words = command(scenario, ranks, seed, orphan, variables.get("MANY_FILES"))
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment)
    output = []
    if scenario == "terminate":
        output = await_line(process, "running")
        time.sleep(seed % 500 / 1000)  # a moment that is drawn: any is right
        process.send_signal(signal.SIGTERM)
    try:
        output.append(process.communicate(timeout=250)[0])  # bounds a hang
    except subprocess.TimeoutExpired:
        for pid in marked_processes(value):
            os.kill(pid, signal.SIGKILL)
        sys.exit(f"{scenario} hangs; output: {process.communicate()[0]}")
    text = "".join(output)
    print(f"{scenario} np={ranks} {variables} seed={seed}: exit code {process.returncode}\n{text}")
    assert expected is None or process.returncode == expected, "the exit code"
    assert "FAILED" not in text
    wanted = {"coordinator_killed": "coordinator (rank 0) is gone", "terminate": "saved",
              "coordinator_stopped": "coordinator (rank 0) is not heard of any more"}
    assert wanted.get(scenario, f"done {scenario}") in text
    if scenario in ("coordinator_killed", "coordinator_stopped"):
        check_legacy(orphan, ranks)
    deadline = time.monotonic() + 60
    while marked_processes(value) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not marked_processes(value), "no process is left"


def main():
    seed = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(10**9)))
    print(f"LOCKSTEP_TEST_SEED={seed}")
    for group in sys.argv[1:]:
        for index, (scenario, ranks, expected, variables) in enumerate(GROUPS[group]):
            run(scenario, ranks, expected, variables, seed + index)


main()
