#!/usr/bin/python3
"""The judgement of literal launches, and real ones of programs that are right, wrong and broken."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import launches
from suite import watch_healthy

COMMAND = os.path.abspath("scripts/watch_healthy")
CASES = os.path.abspath("watch/preload/cases")
ALONE = {"code": 0, "out": "# Size  Latency\n1   0.24\n64   1.19\n", "said": ""}
QUIET = "lockstep watch: 2 ranks, 90 events, no finding"
FOUND = ("lockstep watch: HUNG, deadlock (proved): rank 0 waits\n  -> remedy\n"
         "lockstep watch: rank_busy (suspected, by PyTorch's Flight Recorder): rank 1\n")


class JudgeTest(unittest.TestCase):

    def judged(self, exact=False, **changes):
        watched = dict(ALONE, said=QUIET + "\n", **changes) if "said" not in changes else \
            dict(ALONE, **changes)
        return watch_healthy.judge(ALONE, watched, exact)

    def test_other_times_are_the_same_output(self):
        row = self.judged(out="# Size  Latency\n1   0.31\n64   9.99\n")
        self.assertEqual((row["why"], row["not_run"], row["events"]), ("", "", 90))
        self.assertEqual(self.judged(exact=True, out=ALONE["out"])["why"], "")
        self.assertIn("only alone: 1   0.24", self.judged(
            exact=True, out="# Size  Latency\n1   0.31\n64   1.19\n")["why"])

    def test_other_rows_are_not(self):
        self.assertIn("only alone: 64 and 1 more",
                      self.judged(out="# Size  Latency\n1 2.0\n")["why"])
        self.assertIn("only watched: 128 and 1 more",
                      self.judged(out=ALONE["out"] + "128  2.0\n")["why"])
        self.assertIn("only alone: 64 and 1", self.judged(out="# Size Latency\n1 2.0\n64\n")["why"])

    def test_findings_and_codes(self):
        self.assertEqual(self.judged(said=FOUND)["why"],
                         "deadlock: rank 0 waits; rank_busy: rank 1")
        self.assertIn("exit code 9", self.judged(code=9)["why"])
        self.assertIn("out of time", self.judged(code=None)["why"])

    def test_who_is_not_watched_tells_nothing(self):
        row = self.judged(said="lockstep watch: no program of MPI, gloo or NCCL was seen\n")
        self.assertIn("not watched", row["not_run"])
        row = self.judged(said=QUIET + "; not all was watched\n")
        self.assertEqual(row["not_run"], "not watched whole")
        row = watch_healthy.judge(ALONE, None, False)
        self.assertEqual((row["why"], row["not_run"]), ("", "alone it was out of time"))

    def test_one_that_fails_alone(self):
        alone = dict(ALONE, code=3)
        row = watch_healthy.judge(alone, dict(alone, said=QUIET), False)
        self.assertEqual((row["why"], row["not_run"]), ("", ""))
        row = watch_healthy.judge(alone, dict(alone, code=9, said=QUIET), False)
        self.assertEqual(row["why"], "")
        self.assertIn("alone it ended with exit code 3", row["not_run"])

    def test_codes_of_all(self):
        right, wrong, idle = ({"name": "a", "events": 1, "why": why, "not_run": not_run}
                              for why, not_run in (("", ""), ("hung", ""), ("", "refused")))
        self.assertEqual(watch_healthy.exit_code([right, idle]), 0)
        self.assertEqual(watch_healthy.exit_code([right, wrong]), 1)
        self.assertEqual(watch_healthy.exit_code([idle]), 3)
        self.assertIn("1 of 3 are as they are alone, and nothing was found; 3 events; 1 wrong, "
                      "1 not run", watch_healthy.table([right, wrong, idle]))


class WatchHealthyTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        os.mkdir(os.path.join(self.folder, "below"))
        shutil.copy(CASES, os.path.join(self.folder, "below", "program"))
        with open(os.path.join(self.folder, "script"), "w", encoding="utf-8") as file:
            file.write("#!/bin/false\n")
        os.chmod(os.path.join(self.folder, "script"), 0o755)

    def run_all(self, *words):
        done = subprocess.run(["timeout", "-k", "5", "250", sys.executable, COMMAND, self.folder,
                               *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        return done.returncode, done.stdout

    def test_a_right_program_is_run_once(self):
        state = "--state=" + os.path.join(self.folder, "state")
        code, said = self.run_all("--arguments=ring", state)
        self.assertEqual(code, 0, said)
        self.assertIn("1 of 1 below/program: as alone\n", said)
        code, said = self.run_all("--arguments=unawaited", state)  # it is over
        self.assertEqual((code, said.count("\n")), (0, 1), said)

    def test_a_wrong_one_is_told(self):
        code, said = self.run_all("--arguments=unawaited")
        self.assertEqual(code, 1, said)
        self.assertIn("WRONG below/program: unfinished_request: rank", said)

    def test_one_that_fails_alone_tells_nothing(self):
        code, said = self.run_all("--arguments=killed")
        self.assertEqual(code, 3, said)
        self.assertIn("not run below/program: alone it ended with exit code 137", said)

    def test_ctrl_c_ends_the_ranks_in_one_line(self):
        program = os.path.join(self.folder, "below", "program")
        shutil.copy("/bin/sh", program)  # no MPI: nothing of it is awaited
        ranks = os.path.join(self.folder, "ranks")
        os.mkdir(ranks)
        words = f"--arguments=-c 'echo > {ranks}/$$; sleep 600'"
        with subprocess.Popen([sys.executable, COMMAND, self.folder, words], text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
            while running.poll() is None and len(os.listdir(ranks)) < 2:
                time.sleep(0.05)
            self.assertEqual(len(os.listdir(ranks)), 2)
            running.send_signal(signal.SIGINT)
            _, said = running.communicate()
        self.assertEqual((running.returncode, said), (3, "watch_healthy: interrupted\n"))
        self.assertFalse([pid for pid in os.listdir(ranks) if launches.is_alive(int(pid))])

    def test_what_cannot_be_run_is_refused(self):
        for words in ((), ("/no/such/folder",)):
            done = subprocess.run([sys.executable, COMMAND, *words], capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)


if __name__ == "__main__":
    unittest.main()
