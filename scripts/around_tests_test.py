#!/usr/bin/env python3
"""A test that hangs says where, before Bazel ends it. Of others nothing is said."""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

AROUND = os.path.abspath("scripts/around_tests")
HANGS = """
import subprocess
def in_this_case():
    with subprocess.Popen(["timeout", "60", "sleep", "4321"]):
        raise KeyError
in_this_case()
"""


def around(bound_s, *command):
    """The exit code, and what it said to the time at which it was over."""
    environment = dict(os.environ, TEST_TIMEOUT=str(bound_s), TEST_TARGET="//a:b")
    with tempfile.TemporaryFile("w+") as said:
        code = subprocess.run([AROUND, *command], stdout=said, stderr=said, check=False,
                              env=environment).returncode
        said.seek(0)
        return code, said.read()


class AroundTests(unittest.TestCase):

    def test_one_that_hangs(self):
        code, said = around(20, sys.executable, "-c", HANGS)
        self.assertEqual(code, -signal.SIGABRT)
        self.assertIn("//a:b hangs. Its process is ", said)
        self.assertRegex(said, r"\d+ State: S \(sleeping\) PPid: \d+ in \w+: sleep 4321")
        self.assertIn("in in_this_case", said)

    def test_one_that_ends(self):
        self.assertEqual(around(60, "sh", "-c", "echo out; exit 3"), (3, "out\n"))

    def test_it_is_batch_work_where_that_is_permitted(self):
        permitted = subprocess.run(["chrt", "--batch", "0", "true"], check=False).returncode == 0
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        _, said = around(60, sys.executable, "-c",
                         "import os; print(os.sched_getscheduler(0) == os.SCHED_BATCH)")
        self.assertEqual(said, f"{permitted}\n")

    def test_in_a_sandbox_nobody_else_is_in_its_shared_memory(self):
        if "/sandbox/linux-sandbox/" not in os.getcwd():
            self.skipTest("no sandbox here")
        self.assertEqual(os.listdir("/dev/shm"), [])

    def test_it_has_no_child_that_it_did_not_start(self):
        _, said = around(60, sys.executable, "-c", "import os; os.wait()")
        self.assertIn("ChildProcessError", said)


if __name__ == "__main__":
    unittest.main()
