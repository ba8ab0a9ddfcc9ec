#!/usr/bin/python3
"""Two deaths of hosts, drawn by a seed: LOCKSTEP_TEST_SEED repeats them. The long version is
scripts/node_deaths --trials=20."""
import os
import random
import subprocess
import sys
import unittest

DEATHS = os.path.abspath("scripts/node_deaths")
SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(10**6)))


def deaths(*words, seconds=600):
    return subprocess.run(["timeout", "-k", "5", str(seconds), sys.executable, DEATHS, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class NodeDeathsTest(unittest.TestCase):
    def test_deaths_are_named_and_survived(self):
        print(f"LOCKSTEP_TEST_SEED={SEED}", flush=True)
        # mpirun kills the survivors a second after it told them to end; a busy machine needs more.
        done = deaths("--trials=2", f"--seed={SEED}", "--deaths=killed,launcher,cut_off",
                      "--mpirun=--mca", "--mpirun=odls_base_sigkill_timeout", "--mpirun=10")
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_bad_input_is_told(self):
        done = deaths("--deaths=old_age")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'old_age' is none of", done.stdout)


if __name__ == "__main__":
    unittest.main()
