#!/usr/bin/python3
"""A launcher that hangs or crashes after its processes ended costs no test; others are waited
for."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.getcwd())
from bench.testing import launch

HANGS, CRASHES = "exec sleep 1000000", "kill -SEGV $$"


class TimeTest(unittest.TestCase):
    def test_a_budget_is_doubled_while_it_is_too_short_but_not_for_ever(self):
        self.assertEqual(launch.with_enough_time(int, lambda budget: budget < 40, 10), 40)
        tried = []
        with self.assertRaisesRegex(AssertionError, "640 s was too short"):
            launch.with_enough_time(tried.append, lambda _: True, 160)
        self.assertEqual(tried, [160, 320, 640])


class FailedLauncherTest(unittest.TestCase):
    def test_three_looks_must_find_it_alone_and_idle(self):
        alone = ([7], 0.25)
        self.assertTrue(launch.hangs_alone([alone] * 3, 7))
        self.assertFalse(launch.hangs_alone([alone] * 2, 7))
        self.assertFalse(launch.hangs_alone([alone, ([7, 8], 0.25), alone], 7), "an agent")
        self.assertFalse(launch.hangs_alone([alone, alone, ([7], 0.26)], 7), "it worked")
        self.assertFalse(launch.hangs_alone([([8], 0.25)] * 3, 7), "it has ended")
        self.assertTrue(launch.hangs_alone([([7, 8], 0.1), alone, alone, alone], 7))

    def test_what_it_said_is_kept_and_the_code_is_the_files(self):
        launch.LOOK_S = 0.05
        for end in (HANGS, CRASHES):
            with self.subTest(end):
                started = self.finished(end)
                self.assertEqual((started.code, started.out), (1, "said\n"))
                self.assertEqual(started.leftovers(), [])

    def finished(self, end):
        """A launch by a launcher that ends so, of which a file says that it failed."""
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        path = os.path.join(folder, "mpirun")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho said\n: > {folder}/said\n{end}\n")
        os.chmod(path, 0o755)
        started = launch.Launch("none", [], environment={"PATH": folder + ":" + os.environ["PATH"]})
        subprocess.run(["results/example_runs", folder], check=True)
        shutil.copy(os.path.join(folder, "failing.h5"), started.path)
        limit = time.monotonic() + 100
        while not os.path.exists(os.path.join(folder, "said")) and time.monotonic() < limit:
            time.sleep(0.01)
        return started.finish()


if __name__ == "__main__":
    unittest.main()
