#!/usr/bin/python3
"""Three random ends under `lockstep watch`, drawn by a seed (LOCKSTEP_TEST_SEED repeats them), and
the judgement of literal trials. The long version is scripts/watched_kills --trials=100."""
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

from trials import watched_kills
from trials.noise import Mark

KILLS = os.path.abspath("scripts/watched_kills")
SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(10**6)))
KILLED_1 = {"end": "kill", "rank": 1}
RIGHT = {"struck_s": 0.5, "code": 137, "launchers_own": 137, "left": [], "left_files": [],
         "findings": [("lost_rank", "proved", "rank 1 died without MPI_Finalize; rank 0 waits")],
         "file": {"damage": "", "complete": True, "findings": [("lost_rank", [1])]}}


class JudgeTest(unittest.TestCase):

    def why(self, trial=KILLED_1, **changes):
        return watched_kills.judge(trial, dict(copy.deepcopy(RIGHT), **changes))

    def test_what_is_right_or_honestly_nobody_passes(self):
        self.assertEqual(self.why(), "")
        self.assertEqual(self.why(findings=[], file=None), "")

    def test_who_is_accused_wrongly(self):
        other = [("lost_rank", "proved", "rank 0 died without MPI_Finalize; rank 1 waits")]
        self.assertIn("another rank", self.why(findings=other))
        self.assertIn("another cause", self.why(dict(KILLED_1, end="stop")))
        self.assertIn("was not told", self.why(dict(KILLED_1, end="stop", begun=True), findings=[],
                                               file=None))
        self.assertIn("nobody was struck", self.why(struck_s=None))
        self.assertIn("the file blames [0]", self.why(
            file={"damage": "", "complete": True, "findings": [("lost_rank", [0])]}))

    def test_files_are_whole(self):
        self.assertIn("no file was named", self.why(file=None))
        self.assertIn("cannot be read", self.why(file={"damage": "no HDF5 file"}))
        self.assertIn("were told", self.why(
            file={"damage": "", "complete": True, "findings": []}))

    def test_nothing_is_left_and_the_code_is_the_launchers(self):
        self.assertIn("left over", self.why(left=["agent 7"]))
        self.assertIn("left over", self.why(left_files=["/dev/shm/lockstep-watch-7-x"]))
        self.assertIn("the launcher's was 1", self.why(launchers_own=1))


class OutlivingTest(unittest.TestCase):

    def test_an_mpirun_outlives_its_ranks_when_none_lives(self):
        mark = Mark()
        with tempfile.TemporaryDirectory() as folder:
            mpirun = shutil.copy(shutil.which("sleep"), os.path.join(folder, "orterun"))
            launcher = subprocess.Popen([mpirun, "600"], env=mark.environment)
            rank = subprocess.Popen(["sleep", "600"],
                                    env=dict(mark.environment, OMPI_COMM_WORLD_RANK="1"))
            for child in (launcher, rank):
                self.addCleanup(child.wait)
                self.addCleanup(child.kill)
            self.assertIsNone(mark.outliving_mpirun())
            rank.kill()
            rank.wait()
            self.assertEqual(mark.outliving_mpirun(), launcher.pid)


class WatchedKillsTest(unittest.TestCase):

    def test_some_ends(self):
        done = subprocess.run([sys.executable, KILLS, "--trials=3", "--suites=mpi",
                               f"--seed={SEED}"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
