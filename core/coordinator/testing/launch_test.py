#!/usr/bin/env python3
"""Runs scenarios of launch_probe under mpirun (`terminate`: without it) and looks at what is left.

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
# Until an agent that is stopped is lost: no healthy one waits so long for a processor.
LOST_SECONDS = 12
# (scenario, ranks, exit code of mpirun; of `terminate` the signal; variables)
GROUPS = {
    "talk": [("talk", 2, 0, {}), ("talk", 4, 0, {}), ("large", 2, 0, {}), ("crashed", 2, 1, {})],
    "watch": [("stopped", 2, 0, {}), ("silent", 3, 0, {}), ("allocating", 1, 0, {}),
              ("stubborn", 2, 0, {})],
    "late": [("agent_late", 3, 0, {"LOCKSTEP_LOST_SECONDS": "600"}), ("successor_late", 3, 0, {}),
             ("dismissed_late", 2, 0, {}), ("agent_taken_for_lost", 2, 0, {})],
    "kill": [("killed", 2, 0, {}), ("killed", 4, 0, {}),
             # Who is left saves between the launcher's SIGTERM and its SIGKILL.
             ("follower_killed", 3, 137, {"OMPI_MCA_odls_base_sigkill_timeout": "10"}),
             ("coordinator_killed", 3, 137, {"OMPI_MCA_odls_base_sigkill_timeout": "10"}),
             ("coordinator_stopped", 3, 1, {"LOCKSTEP_LOST_SECONDS": str(LOST_SECONDS)}),
             ("terminate", 3, signal.SIGTERM, {}), ("terminate", 3, signal.SIGINT, {}),
             ("terminate", 3, signal.SIGHUP, {})],
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


def await_none_left(value):
    deadline = time.monotonic() + 60
    while marked_processes(value) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not marked_processes(value), "no process is left"


def collect(process, scenario, value):
    try:
        return process.communicate(timeout=250)[0]  # bounds a hang
    except subprocess.TimeoutExpired:
        for pid in marked_processes(value):
            os.kill(pid, signal.SIGKILL)
        sys.exit(f"{scenario} hangs; output: {process.communicate()[0]}")


def start_agent(rank, ranks, value, *arguments, lost_seconds=600):
    """As mpirun would. Agents take the time from its SIGTERM to its SIGKILL for theirs."""
    environment = dict(os.environ, LOCKSTEP_TEST_MARK=value, PMIX_NAMESPACE=value,
                       OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_LOCAL_RANK=str(rank),
                       OMPI_COMM_WORLD_SIZE=str(ranks), OMPI_COMM_WORLD_LOCAL_SIZE=str(ranks),
                       OMPI_MCA_odls_base_sigkill_timeout="60",
                       LOCKSTEP_LOST_SECONDS=str(lost_seconds))
    return subprocess.Popen([PROBE, *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, env=environment)


def tell_to_end(ranks, number, seed):
    """Every agent hears the signal, in any order. An mpirun would kill those that save slowly."""
    chance = random.Random(seed)
    value = str(uuid.uuid4())
    agents = [start_agent(rank, ranks, value, "terminate", str(seed)) for rank in range(ranks)]
    outputs = ["".join(await_line(agents[0], "running"))] + [""] * (ranks - 1)
    time.sleep(chance.random() / 2)  # a moment that is drawn: any is right
    for agent in chance.sample(agents, ranks):
        agent.send_signal(number)
    for rank, agent in enumerate(agents):
        outputs[rank] += collect(agent, "terminate", value)
    codes = [agent.returncode for agent in agents]
    print(f"{number.name} np={ranks} seed={seed}: exit codes {codes}\n", *outputs, sep="")
    assert codes == [3] * ranks, "the coordinator saves, and dismisses the others with its code"
    assert "done terminate" in outputs[0]
    await_none_left(value)


def orphan_path(seed):
    return os.path.join(os.environ.get("TEST_TMPDIR", "/tmp"), f"orphan-{os.getpid()}-{seed}")


def agent_stopped_at_the_end(scenario, ranks, seed):
    """Agent 1 is stopped, by the probe, before the coordinator ends. An mpirun would end them all
    before it goes on."""
    value = str(uuid.uuid4())
    orphan = orphan_path(seed)
    lost_seconds = LOST_SECONDS if scenario == "agent_taken_for_lost" else 600
    agents = [start_agent(rank, ranks, value, scenario, str(seed), orphan,
                          lost_seconds=lost_seconds) for rank in range(ranks)]
    agents[0].wait()
    if scenario == "successor_late":
        time.sleep(5)  # others could lose patience
    agents[1].send_signal(signal.SIGCONT)
    outputs = [collect(agent, scenario, value) for agent in agents]
    print(*outputs, sep="")
    if scenario == "agent_taken_for_lost":
        assert "rank 1 leaves because nothing was heard of it" in outputs[1]
        assert not os.path.exists(f"{orphan}.1"), "it judges nobody"
    elif scenario == "successor_late":  # it is waited for, not left out
        check_legacy(orphan, ranks)
        assert [agent.returncode for agent in agents[1:]] == [1] * (ranks - 1), "the successor's"
    else:
        assert [agent.returncode for agent in agents] == [3] * ranks
        assert not os.path.exists(f"{orphan}.1"), "who was dismissed succeeds nobody"
    await_none_left(value)


def run(scenario, ranks, expected, variables, seed):
    value = str(uuid.uuid4())
    environment = dict(os.environ, LOCKSTEP_TEST_MARK=value, **variables)
    orphan = orphan_path(seed)
    words = command(scenario, ranks, seed, orphan, variables.get("MANY_FILES"))
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment)
    text = collect(process, scenario, value)
    print(f"{scenario} np={ranks} {variables} seed={seed}: exit code {process.returncode}\n{text}")
    assert process.returncode == expected, "the exit code"
    assert "FAILED" not in text
    wanted = {"coordinator_killed": "coordinator (rank 0) is gone",
              "coordinator_stopped": "coordinator (rank 0) is not heard of any more"}
    assert wanted.get(scenario, f"done {scenario}") in text
    if scenario in ("coordinator_killed", "coordinator_stopped"):
        check_legacy(orphan, ranks)
    await_none_left(value)


def main():
    seed = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(10**9)))
    print(f"LOCKSTEP_TEST_SEED={seed}")
    for group in sys.argv[1:]:
        for index, (scenario, ranks, expected, variables) in enumerate(GROUPS[group]):
            if scenario == "terminate":
                tell_to_end(ranks, expected, seed + index)
            elif scenario in ("successor_late", "dismissed_late", "agent_taken_for_lost"):
                agent_stopped_at_the_end(scenario, ranks, seed + index)
            else:
                run(scenario, ranks, expected, variables, seed + index)


main()
