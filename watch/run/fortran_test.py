#!/usr/bin/python3
"""A Fortran program under `lockstep watch`, of each MPI whose Fortran compiler is installed: of the
right one nothing is said; the one that hangs is named and ended."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("core/base/testing"))
import started  # pylint: disable=wrong-import-position

LOCKSTEP = os.path.abspath("cli/lockstep")
SOURCE = os.path.abspath("watch/run/testing/hangs.f90")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
SHARING = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]


class FortranTest(unittest.TestCase):

    def both(self, compiler, launcher):
        for program in (compiler, launcher[0], "gfortran"):
            if not shutil.which(program):
                self.skipTest("no %s; install gfortran and an MPI for it" % program)
        program = os.path.join(FOLDER, "hangs")
        subprocess.run([compiler, "-g", "-o", program, SOURCE], check=True, cwd=FOLDER)
        watch = [LOCKSTEP, "watch", "--on-hang=kill", "--", *launcher, "-n", "3", program]
        right = self.run_it(watch)
        self.assertEqual((right.returncode, right.stdout), (0, "total 3\n"), right.stderr)
        self.assertRegex(right.stderr, r"3 ranks, \d+ events, no finding\n")
        hung = self.run_it([*watch, "hang"])
        self.assertEqual(hung.returncode, 1, hung.stderr)
        told = re.findall(r"^lockstep watch: HUNG, (\w+) \((\w+)\): (.*)$", hung.stderr, re.M)
        self.assertEqual([each[:2] for each in told], [("deadlock", "proved")], hung.stderr)
        self.assertIn("rank 0 waits in MPI_Recv from rank 1, tag 7", told[0][2])

    def run_it(self, words):
        return started.run(words, cwd=FOLDER)

    def test_of_open_mpi(self):
        self.both("mpif90.openmpi", ["mpirun", *SHARING])

    def test_of_mpich(self):
        self.both("mpif90.mpich", ["mpiexec.mpich"])


if __name__ == "__main__":
    unittest.main()
