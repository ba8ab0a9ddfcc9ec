#!/usr/bin/python3
"""Benchmarks and stress under a real Slurm of two nodes: by srun and by mpirun, cancelled, with a
killed rank, and the batch example. Without Slurm it is said why, and nothing else is tested."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import h5py

BENCH = os.path.abspath("bench/bench_allreduce")
STRESS = os.path.abspath("stress/stress")
ROOT = os.getcwd()
SLURM = os.path.abspath("scripts/test_slurm")
EXAMPLE = os.path.abspath("scripts/examples/nightly.sbatch")
FOLDER = os.environ.get("LOCKSTEP_SLURM_TEST_FOLDER") or tempfile.mkdtemp(
    dir=os.environ.get("TEST_TMPDIR"))
SWEEP = ["-b", "8", "-e", "4K", "-f", "8", "-n", "30"]
ENDLESS = ["-b", "8", "-e", "64", "-n", "100000000"]
SRUN = ["srun", "-Q", "-N2", "-n4", "--mpi=pmix"]
MPIRUN = ["salloc", "-Q", "-N2", "-n4", "mpirun", "--allow-run-as-root", "--bind-to", "none",
          "--mca", "mpi_yield_when_idle", "1", "--mca", "btl_tcp_if_include", "eth0",
          "--mca", "oob_tcp_if_include", "eth0"]
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl_tcp_if_include": "eth0"}


def run(*words, seconds=90):
    return subprocess.run(["timeout", "-k", "5", str(seconds), *words], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, cwd=FOLDER,
                          env=dict(os.environ, **YIELD), check=False)


def path(name):
    return os.path.join(FOLDER, name)


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def busy_workers(ranks, seconds=60):
    """Waits until every rank's worker has computed for a second: it measures. All nodes share one
    process namespace."""
    tick = os.sysconf("SC_CLK_TCK")

    def busy():
        found = set()
        for name in glob.glob("/proc/[0-9]*"):
            try:
                with open(name + "/environ", "rb") as file:
                    role = [one.split() for one in file.read().split(b"\0")
                            if one.startswith(b"LOCKSTEP_WORKER=")]
                with open(name + "/stat", encoding="utf-8") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if role and int(fields[11]) + int(fields[12]) > tick:
                found.add(int(role[0][4]))
        return len(found) == ranks
    assert await_true(busy, seconds), "the workers do not measure"


def await_true(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


class SlurmTest(unittest.TestCase):
    def check_file(self, name, launcher, complete=True):
        with h5py.File(path(name)) as run_file:
            environment = run_file["environment"]
            hosts = [text(environment[f"ranks/{rank}"].attrs["host"]) for rank in range(4)]
            self.assertEqual(hosts, ["node1", "node1", "node2", "node2"])
            self.assertEqual(text(environment["launch"].attrs["launcher"]), launcher)
            self.assertIn("Open MPI", text(environment["software"].attrs["mpi"]))
            self.assertEqual(bool(run_file.attrs["complete"]), complete)
            return text(run_file.attrs["summary_line"]), int(run_file.attrs["exit_code"])

    def test_measurements(self):
        for launcher, words in (("slurm", SRUN), ("openmpi", MPIRUN)):
            for backend in ("gloo", "mpi"):
                name = f"{launcher}-{backend}.h5"
                with self.subTest(name):
                    done = run(*words, BENCH, *SWEEP, f"--backend={backend}",
                               f"--output={path(name)}")
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.check_file(name, launcher)

    def stress(self, name, words, backend, scenario, any_code=False):
        done = run(*words, STRESS, f"--scenario={scenario}", f"--backend={backend}", "-T", "20",
                   f"--verdicts={path(name)}.json", f"--output={path(name)}.h5")
        self.assertTrue(os.path.exists(f"{path(name)}.json"), done.stdout + done.stderr)
        with open(f"{path(name)}.json", encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        self.assertEqual({one["verdict"] for one in cases}, {"pass"}, done.stdout)
        self.assertTrue(any_code or done.returncode == 0, done.stdout + done.stderr)
        return cases

    def test_stress(self):
        for launcher, words in (("slurm", SRUN), ("openmpi", MPIRUN)):
            for backend, case in (("gloo", "uneven_inputs/case[12]"),
                                  ("mpi", "uneven_inputs/case1")):
                with self.subTest(launcher=launcher, backend=backend):
                    self.stress(f"{launcher}-{backend}-s", words, backend, case)
                    self.check_file(f"{launcher}-{backend}-s.h5", launcher)

    def test_exit_codes_pass_through(self):
        for words in (SRUN, MPIRUN):
            done = run(*words, BENCH, "--no-such-option")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("bench_allreduce: "), 1, done.stderr)

    def test_one_process_of_a_script_is_no_rank(self):
        done = run("salloc", "-Q", "-N2", "-n4", STRESS, "--backend=sim",
                   "--scenario=uneven_inputs/case1", f"--output={path('sim.h5')}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_without_pmi_it_is_said(self):
        done = run("srun", "-Q", "-N2", "-n4", "--mpi=none", BENCH, *SWEEP, "--backend=gloo",
                   f"--output={path('none.h5')}")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("--mpi=pmix", done.stderr)

    # Ended as --signal=B:TERM@60 ends it before the time limit: what is over is kept.
    def test_the_batch_example(self):
        programs = ":".join(os.path.join(ROOT, room) for room in ("bench", "stress",
                                                                  "cli"))
        environment = dict(os.environ, **YIELD, LOCKSTEP_PROFILE="quick",
                           LOCKSTEP_OUTPUT=path("night"), PATH=f"{programs}:{os.environ['PATH']}")
        job = subprocess.run(["sbatch", "--parsable", "--ntasks-per-node=1", EXAMPLE], cwd=FOLDER,
                             env=environment, text=True, check=True,
                             stdout=subprocess.PIPE).stdout.strip()
        folder = path(f"night/{job}")
        launches = os.path.join(folder, "launches", "*.h5")
        self.assertTrue(await_true(lambda: len(glob.glob(launches)) >= 2, 90),
                        os.listdir(folder))
        self.assertEqual(run("scancel", "--batch", "--signal=TERM", job).returncode, 0)
        self.assertTrue(self.gone(job))
        with open(path(f"lockstep-nightly-{job}.log"), encoding="utf-8") as log:
            self.assertIn("stopped; the same command goes on", log.read())
        self.assertIn("ExitCode=3:0", run("scontrol", "show", "job", job).stdout)
        with open(os.path.join(folder, "state.jsonl"), encoding="utf-8") as state:
            self.assertGreaterEqual(state.read().count('"exit": 0'), 1)

    def submit(self, name, words, *options):
        script = path(name + ".sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + " ".join(words) + f"\necho $? > {path(name)}.code\n")
        done = run("sbatch", "--parsable", *options, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def log_of(self, job):
        with open(path(f"slurm-{job}.out"), encoding="utf-8") as file:
            return file.read()

    def gone(self, job):
        return await_true(lambda: not run("squeue", "-h", "-j", job).stdout.strip(), 40)

    def test_cancelled_it_saves_the_file(self):
        for name, words in (("srun", SRUN), ("mpirun", MPIRUN[4:])):
            for backend in ("gloo", "mpi"):
                with self.subTest(name=name, backend=backend):
                    stem = f"cancel-{name}-{backend}"
                    job = self.submit(stem, [*words, BENCH, *ENDLESS, f"--backend={backend}",
                                             f"--output={path(stem)}.h5"], "-N2", "-n4")
                    busy_workers(4)
                    self.assertEqual(run("scancel", job).returncode, 0)
                    self.assertTrue(self.gone(job))
                    self.assertTrue(os.path.exists(f"{path(stem)}.h5"), self.log_of(job))
                    line, code = self.check_file(f"{stem}.h5",
                                                 "slurm" if name == "srun" else "openmpi",
                                                 complete=False)
                    self.assertEqual(code, 3, line)

    def test_a_killed_rank_is_named(self):
        for launcher, words in (("slurm", SRUN), ("openmpi", MPIRUN)):
            for backend in ("gloo", "mpi"):
                name = f"kill-{launcher}-{backend}"
                with self.subTest(name):
                    # After a rank of MPI was lost, mpirun has an exit code of its own.
                    case = self.stress(name, words, backend, "isolation/kill_mid_bucket",
                                       any_code=(launcher, backend) == ("openmpi", "mpi"))[0]
                    self.assertEqual(case["findings"][0]["cause"], "rank_killed")
                    self.assertEqual(case["findings"][0]["culprits"], [1])
                    self.check_file(f"{name}.h5", launcher)


def cluster(*words, seconds=280, **more):
    return subprocess.run(["timeout", "-k", "5", str(seconds), SLURM, "2",
                           "--ranks-per-host=2", "--",
                           *words], stdin=subprocess.DEVNULL, text=True, check=False, **more)


def main():
    if os.environ.get("LOCKSTEP_SLURM_TEST_FOLDER"):
        unittest.main(verbosity=2)
    probe = cluster("true", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, seconds=60)
    if probe.returncode == 77:
        print(f"skipped: {probe.stdout.strip()}")
        return 0
    if probe.returncode != 0:
        print(probe.stdout)
        return 1
    return cluster(sys.executable, os.path.abspath(__file__), *sys.argv[1:],
                   env=dict(os.environ, LOCKSTEP_SLURM_TEST_FOLDER=FOLDER)).returncode


if __name__ == "__main__":
    sys.exit(main())
