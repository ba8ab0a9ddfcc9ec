#!/usr/bin/python3
"""What hangs is told and ended, whatever sessions it has begun and whoever waits for it."""
import contextlib
import io
import os
import signal
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.abspath("core/base/testing"))
import started  # pylint: disable=wrong-import-position

HANGS = ["sh", "-c", "echo word; setsid sleep 1234 & sleep 5678"]


def sleeping(command):
    """Those of its processes that have begun what they were started for."""
    begun = []
    for pid in command.processes():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            begun += [pid] if file.read().startswith(b"sleep\0") else []
    return begun


class StartedTest(unittest.TestCase):

    def setUp(self):
        before = started.BOUND_S
        self.addCleanup(setattr, started, "BOUND_S", before)

    def told(self, work, failure):
        """What is said while the work fails."""
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(failure):
            work()
        return said.getvalue()

    def test_a_command_that_hangs(self):
        started.BOUND_S = 20  # for three programs to start, whatever else runs
        said = self.told(lambda: started.run(HANGS), TimeoutError)
        self.assertRegex(said, "^not over after 20 s: 3 processes of ")
        self.assertRegex(said, r"process \d+, S, in \{'\w+'\}: sleep 1234")
        self.assertRegex(said, r"process \d+, S, in \{'\w+'\}: sleep 5678")
        self.assertIn("said: word\n", said)

    def test_a_condition_that_never_holds(self):
        started.BOUND_S = 5

        def work():
            with started.Started(["true"]) as command:
                command.wait()
                command.until(lambda: False)
        self.assertIn("0 processes of ['true']", self.told(work, TimeoutError))

    def test_a_command_that_waits_for_a_processor(self):
        """It has more time until it gets none, got more than any needs, or waited thrice."""
        started.BOUND_S = 0.2

        def work():
            with started.Started(["sleep", "1234"]) as command:
                command.until(lambda: False)
        for got in [0.05, 0.051], [0.05, 0.25], [0.05, 0.1, 0.15]:
            with unittest.mock.patch.object(started.Started, "processor_s",
                                            side_effect=[*got, 0]) as looks:
                self.told(work, TimeoutError)
            self.assertEqual(looks.call_count, len(got))

    def test_the_processor_time_of_all_that_were_started(self):
        busy = "sh -c 'while :; do :; done' & wait"
        with started.Started(["sh", "-c", busy]) as command:
            command.until(lambda: command.processor_s() > 0.1)
            for pid in command.processes():
                os.kill(pid, signal.SIGKILL)

    def test_a_block_that_fails(self):
        """It would wait for the command."""
        commands = []

        def work():
            with started.Started(HANGS, stdout=subprocess.PIPE) as command:
                commands.append(command)
                command.until(lambda: len(sleeping(command)) == 2)
                raise KeyError
        said = self.told(work, KeyError)
        self.assertRegex(said, "^KeyError: 3 processes of ")
        self.assertIn("said: b'word\\n'\n", said)
        self.assertEqual(commands[0].processes(), [])

    def test_what_ranks_of_a_killed_launch_shared_is_removed(self):
        job = os.getpid() << 16 | 1
        theirs, of_others = (f"/dev/shm/vader_segment.started_test.0.{job + more:x}.0"
                             for more in (0, 1))
        for path in (theirs, of_others):
            with open(path, "wb"):
                self.addCleanup(lambda path=path: os.path.exists(path) and os.remove(path))
        environment = dict(os.environ, OMPI_MCA_ess_base_jobid=str(job))
        with started.Started(["sleep", "1234"], env=environment) as command:
            command.until(command.processes)
            command.kill()
        self.assertFalse(os.path.exists(theirs))
        self.assertTrue(os.path.exists(of_others))

    def test_a_command_that_ends(self):
        ended = started.run(["sh", "-c", "echo out; echo said >&2; exit 3"])
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (3, "out\n", "said\n"))


if __name__ == "__main__":
    unittest.main()
