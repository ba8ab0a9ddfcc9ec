#!/usr/bin/python3
"""Where `lockstep watch` sees no call, it asks PyTorch's Flight Recorder. Ranks are played: they
have the pipe that PyTorch makes for NCCL, and write the dumps that it writes."""
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("core/base/testing"))
import started  # pylint: disable=wrong-import-position

LOCKSTEP = os.path.abspath("cli/lockstep")
TESTING = os.path.abspath("watch/run/testing")
DUMPS = os.path.abspath("cli/diagnose/testing")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
VERDICT = re.compile(r"^lockstep watch: (\w+) \((\w+), by PyTorch's Flight Recorder\): (.*)$", re.M)


def watched(*words, options=("--timeout=10",)):
    return [LOCKSTEP, "watch", *options, "--", sys.executable, TESTING + "/launch.py", "2",
            TESTING + "/fake_rank.py", DUMPS, *words]


def is_read(pipe):
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


class FlightTest(unittest.TestCase):

    def until_named(self, *words, last="lockstep show", **variables):
        with started.Started(watched(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True, cwd=FOLDER, env=dict(os.environ, **variables)) as watcher:
            said = ""
            for line in watcher.stderr:
                said += line
                if last in line:
                    watcher.send_signal(signal.SIGTERM)
            watcher.wait(250)
        self.assertEqual(glob.glob("/tmp/lockstep-flight-%d-*" % watcher.pid), [])
        return said

    def check(self, said):
        [(cause, proof, text)] = VERDICT.findall(said)
        self.assertEqual((cause, proof), ("rank_busy", "suspected"), said)
        self.assertIn("rank 1 has not called all_reduce at train.py:31", text)
        path = re.search(r"lockstep show (\S+)", said)[1]
        shown = subprocess.run([LOCKSTEP, "show", path], check=True, capture_output=True, text=True,
                               timeout=60, cwd=FOLDER).stdout
        self.assertIn("rank_busy", shown)

    def test_a_rank_that_lacks_a_call_is_named(self):
        self.check(self.until_named())

    def test_paths_of_the_users_own(self):
        theirs = os.path.join(FOLDER, "theirs_")
        said = self.until_named(TORCH_FR_DUMP_TEMP_FILE=theirs, TORCH_FR_BUFFER_SIZE="64",
                                TORCH_NCCL_DEBUG_INFO_TEMP_FILE=theirs,
                                TORCH_NCCL_DEBUG_INFO_PIPE_FILE=theirs)
        self.check(said)
        self.assertEqual(sorted(os.listdir(FOLDER)), ["results", "theirs_0", "theirs_0.pipe",
                                                      "theirs_1", "theirs_1.pipe"])

    def test_a_suspicion_is_told_once_and_hides_nothing(self):
        said = self.until_named("differs", last="(proved")
        told = [(cause, proof) for cause, proof, _ in VERDICT.findall(said)]
        self.assertEqual(told, [("rank_busy", "suspected"), ("collective_mismatch", "proved")],
                         said)

    def test_of_ranks_that_did_all_nothing_is_said(self):
        done = started.run(watched("healthy"), cwd=FOLDER)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("asked"), 2)
        self.assertEqual(VERDICT.findall(done.stderr), [])
        self.assertNotIn("lockstep show", done.stderr)

    def sweep(self):
        subprocess.run([LOCKSTEP, "watch", "--", "true"], check=True, timeout=60, cwd=FOLDER,
                       stderr=subprocess.DEVNULL)

    def test_the_next_watcher_sweeps_what_a_killed_one_left(self):
        with started.Started(watched(options=()), stdout=subprocess.PIPE, text=True, cwd=FOLDER,
                             start_new_session=True, stderr=subprocess.DEVNULL) as watcher:
            self.assertEqual([watcher.stdout.readline() for _ in range(2)], ["ready\n"] * 2)
            watcher.kill()
            watcher.wait(60)
            left = glob.glob("/tmp/lockstep-flight-%d-*" % watcher.pid)
            pipes = [path for path in left if path.endswith(".pipe")]
            self.assertEqual((len(left), len(pipes)), (3, 2))  # and a lock
            self.sweep()  # but its ranks live
            self.assertTrue(all(map(os.path.exists, left)))
            os.killpg(watcher.pid, signal.SIGKILL)
            watcher.until(lambda: not any(map(is_read, pipes)))
        self.sweep()
        self.assertEqual([path for path in left if os.path.exists(path)], [])

    def test_nobody_is_asked_without_silence(self):
        done = subprocess.run([LOCKSTEP, "watch", "--timeout=0", "--", "sh", "-c",
                               "env | grep -c '^TORCH_'"], capture_output=True, text=True,
                              timeout=60, cwd=FOLDER, check=False)
        self.assertEqual(done.stdout, "3\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
