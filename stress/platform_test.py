#!/usr/bin/env python3
"""A library that cannot be loaded in one case, on real ranks: verdicts of other cases stand. Over a
fake NCCL on the host."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "testing"))
import run_stress  # noqa: E402
from run_stress import started  # noqa: E402

FAKE = os.path.abspath("core/comm/nccl/testing/libfake_nccl_22809.so")
AS_ROOT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
HEALTHY = 'ranks = 2\n[workload]\nkind = "all_reduce_loop"\nrounds = 3\n'
NO_LIBRARY = """[[fault]]
kind = "environment"
ranks = {ranks}
variables = ["LOCKSTEP_NCCL_LIBRARY=/nonexistent/libnccl.so.2"]
at = "init"
[expect.any]
ranks = {outcomes}
"""
# Until a process is ended from outside.
HELD = """ranks = 2
[workload]
kind = "script"
rank.0 = ["barrier world"]
rank.1 = ["sleep 600s", "barrier world"]
[[fault]]
kind = "cpu_hog"
rank = 1
at = "iteration:0"
[expect.any]
ranks = [["hung", "failed"], "killed"]
cause = "rank_killed"
culprits = [1]
"""


def run(*paths):
    outcome = run_stress.run(2, "--backend=nccl", f"--nccl-library={FAKE}", "-T", "600",
                             *(f"--scenario={path}" for path in paths))
    print(outcome.output, outcome.errors)
    return outcome


def verdicts(outcome):
    return {case["name"]: case["verdict"] for case in outcome.cases}


def by_a_fault():
    """What a scenario asks for is judged; what it does not expect is unknown; the rest is run."""
    healthy = run_stress.scenario("own/healthy", HEALTHY)
    meant = run_stress.scenario("own/meant", HEALTHY + NO_LIBRARY.format(
        ranks="[1]", outcomes='["hung", "failed"]\nculprits = [1]'))
    unmeant = run_stress.scenario("own/unmeant", HEALTHY + NO_LIBRARY.format(
        ranks="[1]", outcomes='"finished"'))
    everywhere = run_stress.scenario("own/everywhere", HEALTHY + NO_LIBRARY.format(
        ranks="[0, 1]", outcomes='"failed"'))
    outcome = run(meant, healthy)
    assert outcome.code == 0, outcome.code
    assert verdicts(outcome) == {"own/meant": "pass", "own/healthy": "pass"}, outcome.cases
    outcome = run(everywhere, unmeant, healthy)
    assert outcome.code == 3, outcome.code
    assert verdicts(outcome) == {"own/everywhere": "unknown", "own/unmeant": "unknown",
                                 "own/healthy": "pass"}, outcome.cases
    for name in ("own/everywhere", "own/unmeant"):
        why = outcome.named(name)[0]["why"]
        assert "could not run it: --nccl-library: NCCL can't be loaded" in why, why
        assert f"{name}: rank " in outcome.output, outcome.output
    nothing = run(everywhere)
    assert nothing.code == 4 and not nothing.cases, nothing.code
    assert "--nccl-library: NCCL can't be loaded" in nothing.errors, nothing.errors


def variables_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def is_hog(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip() == "lockstep-hog"
    except OSError:
        return False


def worker_of(rank, pids):
    """Companions of agents keep the variables of the agent, which is no worker."""
    for pid in pids:
        variables = variables_of(pid)
        worker = any(variable.startswith(b"LOCKSTEP_WORKER=") for variable in variables)
        if worker and b"OMPI_COMM_WORLD_RANK=%d" % rank in variables and not is_hog(pid):
            return pid
    raise AssertionError(f"no worker of rank {rank}")


def by_the_machine():
    """A library that is removed while the first case runs."""
    link, path = (os.path.join(run_stress.DIRECTORY, name) for name in ("libnccl.so.2", "gone"))
    os.symlink(FAKE, link)
    held = run_stress.scenario("own/held", HELD)
    healthy = run_stress.scenario("own/healthy", HEALTHY)
    words = ["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none", run_stress.STRESS,
             "--backend=nccl", f"--nccl-library={link}", f"--scenario={held}",
             f"--scenario={healthy}", "-T", "600", f"--output={path}.h5",
             f"--verdicts={path}.json"]
    with started.Started(words, env=AS_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True) as mpirun:
        mpirun.until(lambda: any(map(is_hog, mpirun.processes())))
        os.unlink(link)
        os.kill(worker_of(1, mpirun.processes()), signal.SIGKILL)
        out, err = mpirun.communicate()
    print(out, err)
    assert mpirun.returncode == 3, mpirun.returncode
    with open(path + ".json", encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    assert [(case["name"], case["verdict"]) for case in cases] == \
        [("own/held", "pass"), ("own/healthy", "unknown")], cases
    assert "could not run it: --nccl-library" in cases[1]["why"], cases[1]["why"]
    assert os.path.exists(path + ".h5") and out.startswith("INCONCLUSIVE: 1 of 2 cases"), out


def main():
    by_a_fault()
    by_the_machine()


main()
