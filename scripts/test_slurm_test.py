#!/usr/bin/python3
"""Benchmarks and stress under a real Slurm of two nodes: by srun and by mpirun, cancelled, with a
killed rank, and the batch example. Without Slurm it is said why, and nothing else is tested."""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import h5py

BENCH = os.path.abspath("bench/bench_allreduce")
STRESS = os.path.abspath("stress/stress")
SLURM = os.path.abspath("scripts/test_slurm")
EXAMPLE = os.path.abspath("scripts/examples/nightly.sbatch")
FOLDER = os.environ.get("LOCKSTEP_SLURM_TEST_FOLDER") or tempfile.mkdtemp(
    dir=os.environ.get("TEST_TMPDIR"))
SWEEP = ["-b", "8", "-e", "4K", "-f", "8", "-n", "30"]
ENDLESS = ["-b", "8", "-e", "64", "-n", "100000000"]
SRUN = ["srun", "-N2", "-n4", "--mpi=pmix"]
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


def worker_of(rank, seconds=40):
    """The process id of a rank's worker; all nodes share one process namespace."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for name in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(name, "rb") as file:
                    variables = dict(one.split(b"=", 1) for one in file.read().split(b"\0")
                                     if b"=" in one)
            except OSError:
                continue
            role = variables.get(b"LOCKSTEP_WORKER", b"").split()
            if len(role) == 8 and int(role[4]) == rank:
                return int(name.split("/")[2])
        time.sleep(0.1)
    raise AssertionError(f"rank {rank} has no worker")


def await_true(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@unittest.skipUnless(os.environ.get("LOCKSTEP_SLURM_TEST_FOLDER"), "inside the cluster only")
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

    def test_stress(self):
        for launcher, words in (("slurm", SRUN), ("openmpi", MPIRUN)):
            for backend, case in (("gloo", "uneven_inputs/case[12]"),
                                  ("mpi", "uneven_inputs/case1")):
                name = f"{launcher}-{backend}"
                with self.subTest(name):
                    done = run(*words, STRESS, f"--scenario={case}", f"--backend={backend}", "-T",
                               "20", f"--json={path(name)}.json", f"--output={path(name)}-s.h5")
                    with open(f"{path(name)}.json", encoding="utf-8") as file:
                        cases = json.load(file)["cases"]
                    self.assertEqual({one["verdict"] for one in cases}, {"pass"}, done.stdout)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.check_file(f"{name}-s.h5", launcher)

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
        done = run("srun", "-N2", "-n4", "--mpi=none", BENCH, *SWEEP, "--backend=gloo",
                   f"--output={path('none.h5')}")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("--mpi=pmix", done.stderr)

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
        for name, words in (("srun", SRUN[3:]), ("mpirun", MPIRUN[4:])):
            for backend in ("gloo", "mpi"):
                with self.subTest(name=name, backend=backend):
                    stem = f"cancel-{name}-{backend}"
                    words = (SRUN if name == "srun" else MPIRUN[4:])
                    job = self.submit(stem, [*words, BENCH, *ENDLESS, f"--backend={backend}",
                                             f"--output={path(stem)}.h5"], "-N2", "-n4")
                    for rank in range(4):
                        worker_of(rank)
                    time.sleep(2)
                    self.assertEqual(run("scancel", job).returncode, 0)
                    self.assertTrue(self.gone(job))
                    self.assertTrue(os.path.exists(f"{path(stem)}.h5"), self.log_of(job))
                    line, code = self.check_file(f"{stem}.h5",
                                                 "slurm" if name == "srun" else "openmpi",
                                                 complete=False)
                    self.assertEqual(code, 3, line)

    def test_a_killed_rank_is_named(self):
        for name, words in (("srun", SRUN), ("mpirun", MPIRUN)):
            for backend in ("gloo", "mpi"):
                with self.subTest(name=name, backend=backend):
                    stem = f"kill-{name}-{backend}"
                    with open(path(stem) + ".log", "w", encoding="utf-8") as log:
                        launch = subprocess.Popen(
                            ["timeout", "-k", "5", "90", *words, BENCH, *ENDLESS,
                             f"--backend={backend}", f"--output={path(stem)}.h5", "-T", "10",
                             "--time-budget=4s"],
                            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                            env=dict(os.environ, **YIELD), cwd=FOLDER)
                        victim = worker_of(2)
                        time.sleep(2)
                        os.kill(victim, signal.SIGKILL)
                        launch.wait()
                    with open(path(stem) + ".log", encoding="utf-8") as log:
                        said = log.read()
                    self.assertTrue(os.path.exists(f"{path(stem)}.h5"), said)
                    line, code = self.check_file(f"{stem}.h5",
                                                 "slurm" if name == "srun" else "openmpi")
                    self.assertIn("rank 2", line)
                    self.assertEqual(code, 1, line)


class Outside(unittest.TestCase):
    def test_cluster(self):
        words = [SLURM, "2", "--ranks=2", "--", sys.executable, os.path.abspath(__file__), "-v",
                 *sys.argv[1:]]
        done = subprocess.run(["timeout", "-k", "5", "280", *words], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, LOCKSTEP_SLURM_TEST_FOLDER=FOLDER))
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        print(done.stdout)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    if os.environ.get("LOCKSTEP_SLURM_TEST_FOLDER"):
        unittest.main()
    else:
        unittest.main(argv=sys.argv[:1], defaultTest="Outside")
