"""The same sources built for MPICH and run by its mpiexec (Hydra).

  scripts/test_mpich                     builds what it needs with --repo_env=LOCKSTEP_MPI=mpich
  scripts/test_mpich --programs=DIR      what lies in DIR was built so

Bazel's own bazel-bin holds programs of MPICH after it, until the next build. What is needed:
scripts/install_packages mpich libmpich-dev. Without, exit code 77 with the reason.
"""
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import launches
import lockstep
from launches import SKIPPED, TREE, command
from trials.noise import Mark

TARGETS = {"bench_allreduce": "//bench", "bench_ddp_step": "//bench", "stress": "//stress",
           "lockstep": "//cli", "mpi_contract": "//core/comm/mpi"}
SWEEP = ["-b", "8", "-e", "4K", "-f", "8", "-n", "30"]
SETTINGS = {"LOCKSTEP_SCENARIOS": f"{TREE}/stress/scenarios",
            "LOCKSTEP_DATASETS": f"{TREE}/datasets/manifests"}
# MPICH 4.0.2 dies of MPI_Reduce with MPI_IN_PLACE at a root other than 0 in shared memory.
NO_SHARED_REDUCE = {"MPIR_CVAR_REDUCE_DEVICE_COLLECTIVE": "0"}
PLAN = """backends = ["mpi", "gloo"]
[[step]]
name = "latency"
program = "bench_allreduce"
arguments = ["-b", "8", "-e", "64", "-n", "20", "-w", "2"]
seconds = 20
"""
ENDLESS = ["-b", "8", "-e", "64", "-n", "100000000"]


fail = functools.partial(launches.fail, "test_mpich")


@functools.cache
def folder():
    """Of this run: the programs and their results. It goes when the process ends."""
    return tempfile.TemporaryDirectory(prefix="lockstep-mpich-", dir=os.environ.get("TEST_TMPDIR"))


def path(name):
    return os.path.join(folder().name, name)


def launch(ranks, program, *words, environment=None):
    return subprocess.Popen(["timeout", "-k", "5", "120", "mpiexec.mpich", "-n", str(ranks),
                             path(program), *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            cwd=folder().name,
                            env={**os.environ, **SETTINGS, **(environment or {})})


def run(ranks, program, *words, environment=None):
    process = launch(ranks, program, *words, environment=environment)
    said = process.communicate()[0]
    return process.returncode, said


def worker_of(rank, mark, seconds=40):
    """The process id of a rank's worker in the launch of `mark`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for pid, variables in launches.processes():
            role = variables.get(b"LOCKSTEP_WORKER", b"").split()
            if role and int(role[4]) == rank and mark.is_of(variables):
                return pid
        time.sleep(0.05)
    raise AssertionError(f"rank {rank} has no worker")


class MpichTest(unittest.TestCase):
    def read(self, name, ranks, complete=True):
        with lockstep.open(path(name)) as run_file:
            facts = run_file.environment
            self.assertIn("MPICH", facts["software/mpi"])
            self.assertEqual(facts["launch/launcher"], "pmi")
            self.assertEqual(sum(bool(re.fullmatch(r"ranks/\d+/host", fact)) for fact in facts),
                             ranks)
            self.assertEqual(run_file.complete, complete)
            return run_file.summary_line, run_file.exit_code

    def test_contract(self):
        for ranks, mode in ((2, "one"), (3, "one"), (4, "one"), (2, "caller"), (3, "divided")):
            code, said = run(ranks, "mpi_contract", mode, environment=NO_SHARED_REDUCE)
            self.assertEqual(code, 0, said)

    def test_measurements(self):
        sweep = ("bench_allreduce", SWEEP + ["-z", "both"])
        step = ("bench_ddp_step", ["--model=resnet50", "-n", "2", "-w", "1"])
        for ranks, backend, programs in ((2, "mpi", (sweep, step)), (3, "mpi", (sweep,)),
                                         (2, "gloo", (sweep, step))):
            for program, words in programs:
                name = f"{program}-{backend}-{ranks}.h5"
                code, said = run(ranks, program, *words, f"--backend={backend}",
                                 f"--output={path(name)}")
                self.assertEqual(code, 0, said)
                self.read(name, ranks)

    def test_stress(self):
        for backend, scenario in (("gloo", "uneven_inputs/case[12]"),
                                  ("mpi", "uneven_inputs/case1")):
            name = f"stress-{backend}"
            code, said = run(2, "stress", f"--scenario={scenario}", f"--backend={backend}", "-T",
                             "10", f"--verdicts={path(name)}.json", f"--output={path(name)}.h5")
            self.assertEqual(code, 0, said)
            with open(f"{path(name)}.json", encoding="utf-8") as file:
                cases = json.load(file)["cases"]
            self.assertEqual({case["verdict"] for case in cases}, {"pass"}, said)
            self.read(name + ".h5", 2)

    def test_commands_that_start_launches(self):
        """They take MPICH's launcher by themselves."""
        os.symlink("stress", path("lockstep-stress"))
        with open(path("plan.toml"), "w", encoding="utf-8") as file:
            file.write(PLAN)
        for words in ([path("lockstep"), "stress", "--ranks=2", "--backend=mpi", "-T", "10",
                       "--scenario=uneven_inputs/case1", f"--output={path('cases.h5')}"],
                      [command("nightly"), path("plan.toml"), f"--programs={folder().name}",
                       f"--output-folder={path('night')}"]):
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False, env={**os.environ, **SETTINGS})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def hit(self, name, backend, ranks, number, signal_to):
        """Starts an endless measurement, sends a signal to a worker (a rank) or to mpiexec (None),
        and returns its exit code and what it said."""
        mark = Mark()
        process = launch(ranks, "bench_allreduce", *ENDLESS, f"--backend={backend}", "-T", "10",
                         "--time-budget=4s", f"--output={path(name)}",
                         environment=mark.environment)
        workers = [worker_of(rank, mark) for rank in range(ranks)]
        time.sleep(1)
        os.kill(process.pid if signal_to is None else workers[signal_to], number)
        said = process.communicate()[0]
        return process.returncode, said

    def test_a_killed_rank_is_named(self):
        for backend in ("gloo", "mpi"):
            for victim in (0, 1):
                name = f"kill-{backend}-{victim}.h5"
                code, said = self.hit(name, backend, 2, signal.SIGKILL, victim)
                line, stored = self.read(name, 2)
                self.assertIn(f"rank {victim} ", line)
                self.assertEqual((code, stored), (1, 1), said)

    def test_told_to_end_it_saves_the_file(self):
        for backend in ("gloo", "mpi"):
            name = f"term-{backend}.h5"
            _, said = self.hit(name, backend, 3, signal.SIGTERM, None)
            self.assertTrue(os.path.exists(path(name)), said)
            line, stored = self.read(name, 3, complete=False)
            self.assertEqual(stored, 3, line)

    def test_exit_codes_pass_through(self):
        code, said = run(2, "bench_allreduce", "--no-such-option")
        self.assertEqual(code, 2, said)
        self.assertEqual(said.count("bench_allreduce: "), 1, said)

    def test_across_hosts(self):
        for backend in ("gloo", "mpi"):
            name = f"hosts-{backend}.h5"
            script = ("exec mpiexec.mpich -launcher rsh -launcher-exec $TEST_HOSTS_AGENT "
                      f"-iface eth0 -hosts $TEST_HOSTS -n 4 {path('bench_allreduce')} "
                      f"{' '.join(SWEEP)} --backend={backend} --output={path(name)}")
            done = subprocess.run(["timeout", "-k", "5", "120", command("test_hosts"), "2",
                                   "--ranks-per-host=2", "--shell", "--", "sh", "-c", script],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode == SKIPPED:
                self.skipTest(done.stdout.strip())
            self.assertEqual(done.returncode, 0, done.stdout)
            self.read(name, 4)
            with lockstep.open(path(name)) as run_file:
                names = [run_file.environment[f"ranks/{rank}/host"] for rank in range(4)]
            self.assertEqual(names, ["node1", "node1", "node2", "node2"])


def build():
    """The folder of each program."""
    flags = ["--repo_env=LOCKSTEP_MPI=mpich"]
    labels = [f"{package}:{name}" for name, package in TARGETS.items()]
    if subprocess.run(["bazel", "build", *flags, *labels], cwd=TREE, check=False).returncode != 0:
        fail(4, "the build for MPICH failed; see above")
    root = subprocess.run(["bazel", "info", *flags, "bazel-bin"], cwd=TREE, text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()
    return {name: os.path.join(root, package[2:]) for name, package in TARGETS.items()}


def main(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("--programs", metavar="FOLDER",
                        help="Folder of the programs (bench_allreduce, bench_ddp_step, stress, "
                        "lockstep, mpi_contract)")
    options, rest = parser.parse_known_args(arguments)
    missing = [package for program, package in (("mpicc.mpich", "libmpich-dev"),
                                                ("mpiexec.mpich", "mpich"))
               if shutil.which(program) is None]
    if missing:
        fail(SKIPPED, f"MPICH is not installed: scripts/install_packages {' '.join(missing)}")
    try:
        places = dict.fromkeys(TARGETS, options.programs) if options.programs else build()
        for name, place in places.items():
            shutil.copy(os.path.join(place, name), path(name))
        unittest.main(module=__name__, argv=[sys.argv[0], "-v", *rest])
    except FileNotFoundError as error:
        fail(2, f"{error}; give a directory that has {', '.join(TARGETS)}")
