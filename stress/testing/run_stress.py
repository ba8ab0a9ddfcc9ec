"""Starts the stress runner under mpirun and reads what it says."""
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, os.path.abspath(os.path.join(__file__, "../../../core/base/testing")))
import started  # pylint: disable=wrong-import-position,unused-import

LAUNCHES = 9  # until a fault met traffic, and looks came in time
STRESS = "stress/stress"
OURS = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))  # until we end
DIRECTORY = OURS.name


class Outcome:
    def __init__(self, code, output, errors, cases, races=()):
        self.code = code
        self.output = output
        self.errors = errors
        self.cases = cases
        self.races = races

    def named(self, name):
        found = [case for case in self.cases if case["name"] == name]
        assert found, f"no case {name} in: {self.output}{self.errors}"
        return found


def left_over(mark):
    """Live processes that were started with this mark."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def launcher(ranks):
    return ["mpirun", "-np", str(ranks), "--oversubscribe", "--bind-to", "none", "--mca",
            "mpi_yield_when_idle", "1"]


def run(ranks, *arguments, output=None, through=()):
    """Runs it on so many ranks (0: without a launcher), started by the command `through`; asserts
    that nothing is left behind."""
    mark = str(uuid.uuid4())
    path = os.path.join(DIRECTORY, f"{mark}.json")
    command = [*through, *(launcher(ranks) if ranks else []), STRESS, f"--verdicts={path}",
               f"--output={output or os.path.join(DIRECTORY, mark) + '.h5'}", *arguments]
    environment = dict(os.environ, LOCKSTEP_TEST_MARK=mark, OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    report = {"cases": []}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    deadline = time.monotonic() + 60
    while left_over(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left_over(mark), "no process is left"
    return Outcome(done.returncode, done.stdout, done.stderr, report["cases"],
                   report.get("stream_races", ()))


def scenario(name, text):
    """A scenario of the test's own; returns its path."""
    path = os.path.join(DIRECTORY, name.replace("/", "_") + ".toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'name = "{name}"\n{text}')
    return path


def until_fired(launch, scenarios, deadline):
    """The case of each of these scenarios, which have one case and one fault, once that has fired
    and something is known of it.

    Who is silent for the deadline before the fault has waited for a processor, and late looks tell
    nothing of links. That proves nothing, and the scenario is launched again with twice the
    deadline.
    """
    fired = {}
    for _ in range(LAUNCHES):
        left = [name for name in scenarios if name not in fired]
        outcome = launch(*(f"--scenario={name}" for name in left), "-T", str(deadline))
        print(outcome.output)
        assert len(outcome.cases) == len(left), outcome.output + outcome.errors
        for name, case in zip(left, outcome.cases):
            if case["faults_fired"] >= 1 and case["verdict"] != "unknown":
                fired[name] = case
            else:
                assert not any(finding["certainty"] == "proved" for finding in case["findings"])
        if len(fired) == len(scenarios):
            return fired
        deadline *= 2
    raise AssertionError(f"not known in {LAUNCHES} launches: {left}")
