#!/usr/bin/python3
"""Ranks that PyTorch's variables describe, as torchrun sets them or a person does: one host,
several hosts, and a shell that has them while mpirun starts the ranks. No PyTorch is needed."""
import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("results/python"))
import lockstep

BENCH = os.path.abspath("bench/bench_allreduce")
STRESS = os.path.abspath("stress/stress")
FAKE_NCCL = os.path.abspath("core/comm/nccl/testing/libfake_nccl_22809.so")
HOSTS = os.path.abspath("scripts/test_hosts")
SMALL = ["-b", "8", "-e", "8", "-n", "20", "-w", "2"]
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
OF_LAUNCHERS = ("OMPI_", "PMIX_", "PMI_", "SLURM_")
# Ranks that mpirun started on several hosts, as if a torchrun on each had.
AS_TORCHRUN = r"""
export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE
export LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE
export MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none
for name in $(env | sed -n 's/^\(\(OMPI\|PMIX\)_[^=]*\)=.*/\1/p'); do unset "$name"; done
exec "$@"
"""


def free_port():
    """Whose neighbour, where agents of several hosts meet, is free, too. Below those that the
    kernel gives to others meanwhile."""
    while True:
        port = random.randrange(10000, 30000)
        with socket.socket() as one, socket.socket() as other:
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                other.bind(("0.0.0.0", port + 2000))
                return port


def variables(rank, size, **more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(OF_LAUNCHERS)}
    return dict(clean, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), **more)


class TorchrunTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.path = os.path.join(self.folder, "run.h5")

    def launch(self, words, size=2, **more):
        """(the largest exit code, what all ranks said)"""
        more.setdefault("MASTER_ADDR", "127.0.0.1")
        more.setdefault("MASTER_PORT", str(free_port()))
        ranks = [subprocess.Popen([*words, "--output=" + self.path],
                                  env=variables(rank, size, **more), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for rank in range(size)]
        said = "".join(rank.communicate(timeout=250)[0] for rank in ranks)
        return max(rank.returncode for rank in ranks), said

    def launcher_in_file(self):
        with lockstep.open(self.path) as run:
            return run.environment["launch/launcher"]

    def test_by_hand_on_one_host(self):
        code, said = self.launch([BENCH, "--backend=gloo", *SMALL])
        self.assertEqual(code, 0, said)
        self.assertEqual(self.launcher_in_file(), "pytorch")

    def test_as_torchrun_sets_them(self):
        code, said = self.launch([BENCH, "--backend=gloo", *SMALL], size=3, LOCAL_WORLD_SIZE="3",
                                 MASTER_ADDR=socket.gethostname(), TORCHELASTIC_RUN_ID="none",
                                 TORCHELASTIC_RESTART_COUNT="0")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.launcher_in_file(), "torchrun")

    def test_nccl(self):
        code, said = self.launch([BENCH, "--backend=nccl", "--nccl-library=" + FAKE_NCCL, *SMALL],
                                 LOCAL_WORLD_SIZE="2", TORCHELASTIC_RUN_ID="none")
        self.assertEqual(code, 0, said)

    def test_stress(self):
        code, said = self.launch([STRESS, "--backend=gloo", "--scenario=uneven_inputs/case1",
                                  "-T", "10"], LOCAL_WORLD_SIZE="2", TORCHELASTIC_RUN_ID="none")
        self.assertEqual(code, 0, said)
        self.assertTrue(os.path.exists(self.path), said)

    def test_by_hand_where_nobody_says_how_many_ranks_are_here(self):
        """They meet at the port above MASTER_PORT, over the network."""
        code, said = self.launch([BENCH, "--backend=gloo", *SMALL], MASTER_ADDR="0.0.0.0",
                                 LOCKSTEP_INTERFACE="127.0.0.1")
        self.assertEqual(code, 0, said)

    def test_mpi_is_refused(self):
        code, said = self.launch([BENCH, "--backend=mpi", *SMALL])
        self.assertEqual(code, 2, said)
        self.assertIn("gives its ranks no MPI: start with mpirun or srun, or choose --backend=gloo",
                      said)

    def test_a_wrong_variable_is_named(self):
        code, said = self.launch([BENCH, "--backend=gloo", *SMALL], LOCAL_WORLD_SIZE="7")
        self.assertEqual(code, 2, said)
        self.assertIn("LOCAL_WORLD_SIZE='7' in the environment is not a number from 1 to 2", said)

    def under_mpirun(self, words, **shell):
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        done = subprocess.run([*MPIRUN, *root, "-np", "2", *words], env=dict(os.environ, **shell),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=250, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_a_shell_has_does_not_mislead_mpirun(self):
        stale = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8", "MASTER_ADDR": "nowhere",
                 "TORCHELASTIC_RUN_ID": "none"}
        self.under_mpirun([BENCH, "--backend=gloo", "--output=" + self.path, *SMALL], **stale)
        self.assertEqual(self.launcher_in_file(), "openmpi")

    def test_a_torchrun_that_mpirun_started_counts(self):
        """mpirun has neither's variables, the shell mpirun's, the rank both."""
        inner = ("TORCHELASTIC_RUN_ID=none RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=2 "
                 "LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=2 "
                 'MASTER_ADDR=127.0.0.1 MASTER_PORT=%d "$@"; exit $?'
                 % free_port())
        self.under_mpirun(["sh", "-c", inner, "sh", BENCH, "--backend=gloo",
                           "--output=" + self.path, *SMALL])
        self.assertEqual(self.launcher_in_file(), "torchrun")

    def test_several_hosts(self):
        done = subprocess.run([HOSTS, "2", "--", "sh", "-c", AS_TORCHRUN, "sh", BENCH,
                               "--backend=gloo", "--output=" + self.path, *SMALL],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=250, check=False)
        if done.returncode == 77:
            self.skipTest("no hosts of our own: " + done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.launcher_in_file(), "torchrun")


if __name__ == "__main__":
    unittest.main()
