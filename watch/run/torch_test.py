#!/usr/bin/python3
"""PyTorch's scripts under `lockstep watch`: wrong ones are named, of right ones nothing is said.

Their lines are checked where py-spy is on the PATH."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("core/base/testing"))
import started  # pylint: disable=wrong-import-position

LOCKSTEP = os.path.abspath("cli/lockstep")
SCRIPTS = os.path.abspath("watch/run/testing")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
WITH_LINES = shutil.which("py-spy") is not None
VERDICT = re.compile(r"^lockstep watch: (HUNG, )?(\w+) \((\w+)\): (.*)$", re.M)


def script(case, ranks=2):
    return [sys.executable, SCRIPTS + "/launch.py", str(ranks), SCRIPTS + "/train.py", case]


def watched(case, *options, ranks=2):
    return [LOCKSTEP, "watch", *options, "--", *script(case, ranks)]


def finish(command):
    return started.run(command, cwd=FOLDER)


def line_of(text):
    """" at train.py:31" for the line of the script that holds `text`, as it is told."""
    with open(SCRIPTS + "/train.py", encoding="utf-8") as file:
        lines = [number for number, line in enumerate(file, 1) if text in line]
    return r" at train\.py:%d\b" % lines[0] if WITH_LINES else ""


class RightScripts(unittest.TestCase):

    def right(self, case, ranks=2, end="$"):
        ended = finish(watched(case, ranks=ranks))
        self.assertEqual(VERDICT.findall(ended.stderr), [])
        counts = r"(?m)lockstep watch: %d ranks, \d+ events, no finding%s" % (ranks, end)
        self.assertRegex(ended.stderr, counts)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended

    def test_training_prints_what_it_prints_alone(self):
        alone = finish(script("healthy"))
        self.assertEqual(self.right("healthy").stdout, alone.stdout)
        self.assertIn("epoch 1 ranks 2", alone.stdout)

    def test_join_and_a_slow_rank(self):
        self.right("join", ranks=3)
        self.right("slow")

    def test_groups_and_calls_that_nobody_waits_for_at_once(self):
        self.right("groups")

    def test_messages(self):
        lines = self.right("messages", ranks=3).stdout.splitlines()
        self.assertEqual(sorted(lines), ["rank 0 got 19", "rank 1 got 1", "rank 2 got 1"])

    def test_groups_of_some_ranks(self):
        self.right("pairs", ranks=4)


class WrongScripts(unittest.TestCase):

    def told(self, stderr):
        found = VERDICT.findall(stderr)
        self.assertEqual(len(found), 1, stderr)
        return found[0]

    def hangs(self, case, ranks=2):
        """The verdict on ranks that would wait for half an hour; then the launch is ended."""
        with started.Started(watched(case, ranks=ranks), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, cwd=FOLDER) as watcher:
            said = ""
            for line in watcher.stderr:
                said += line
                if line.startswith("  -> "):
                    watcher.send_signal(signal.SIGTERM)
            watcher.wait(250)
        if case != "stopped":  # its main thread is in no call
            self.assertEqual("py-spy is not installed" in said, not WITH_LINES, said)
        return self.told(said)

    def test_evaluation_on_rank_0_alone(self):
        _, cause, proof, text = self.hangs("evaluation")
        self.assertEqual((cause, proof), ("call_mismatch", "proved"))
        self.assertRegex(text, r"rank 0 (calls|is in) (broadcast|all_reduce) \d+")
        self.assertRegex(text, r"rank 1 (calls|is in) (broadcast|all_reduce) \d+")
        self.assertEqual(re.search(r" at train\.py:\d+", text) is not None, WITH_LINES, text)

    def test_a_barrier_inside_join(self):
        _, cause, proof, text = self.hangs("join_barrier")
        self.assertEqual((cause, proof), ("call_mismatch", "proved"))
        self.assertRegex(text, r"rank 1 calls barrier 6" + line_of("                    dist.barr"))
        self.assertRegex(text, r"rank 0 calls all_reduce \d+" + line_of("with Join([ddp]) if"))

    def test_in_a_group_of_some_ranks(self):
        _, cause, proof, text = self.hangs("pair_mismatch", ranks=3)
        self.assertEqual((cause, proof), ("call_mismatch", "proved"))
        self.assertRegex(text, r"(?=.*rank 2 calls broadcast 1)(?=.*rank 0 calls all_reduce 7)")

    def test_receives_that_nobody_sends(self):
        hung, cause, proof, text = self.hangs("receives", ranks=3)
        self.assertEqual((hung, cause, proof), ("HUNG, ", "deadlock", "proved"))
        where = ("," if WITH_LINES else "") + line_of("dist.recv(one, (rank + 1)")
        self.assertRegex(text, "rank 0 waits in recv from rank 1, tag 3" + where)

    def test_another_tag(self):
        hung, cause, proof, text = self.hangs("tags")
        self.assertEqual((hung, cause, proof), ("HUNG, ", "tag_mismatch", "proved"))
        self.assertRegex(text, r"rank 1 waits in recv from rank 0, tag 7.*came with tag 5")

    def test_another_root(self):
        _, cause, _, text = self.hangs("roots")
        self.assertEqual(cause, "root_mismatch")
        self.assertRegex(text, r"the root of broadcast is [01] and [01]: rank")

    def test_a_rank_that_is_stopped(self):
        _, cause, proof, text = self.hangs("stopped")
        self.assertEqual((cause, proof), ("stopped_rank", "proved"))
        self.assertIn("rank 1 is stopped", text)

    def ends(self, case):
        ended = finish(watched(case))
        self.assertNotEqual(ended.returncode, 0)
        return self.told(ended.stderr)

    def test_ranks_that_end(self):
        waits = r"; rank 0 waits for it in all_reduce \d+"
        for case, end in (("raises", "exited with code 1"), ("killed", "died")):
            hung, cause, proof, text = self.ends(case)
            self.assertEqual((hung, cause, proof), ("", "lost_rank", "proved"))
            self.assertRegex(text, "rank 1 %s after all_reduce " % end + r"\d+" + waits)
        for case, early in (("exits", 1), ("no_join", 0)):
            _, cause, proof, text = self.ends(case)
            self.assertEqual((cause, proof), ("missing_call", "proved"))
            self.assertRegex(text, r"rank %d ended without all_reduce \d+, which rank %d called"
                             % (early, 1 - early))

    def test_uneven_inputs_that_meet_in_other_steps(self):
        _, cause, proof, text = self.ends("no_join_metric")
        self.assertEqual((cause, proof), ("datatype_mismatch", "proved"))
        self.assertRegex(text, "all_reduce of (4 and 288|288 and 4) bytes")

    @unittest.skipUnless(WITH_LINES, "py-spy is not on the PATH")
    def test_a_mismatch_of_three_ranks_is_ended(self):
        ended = finish(watched("evaluation", "--on-hang=kill", ranks=3))
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(self.told(ended.stderr)[1:3], ("call_mismatch", "proved"))

    @unittest.skipUnless(WITH_LINES, "py-spy is not on the PATH")
    def test_stacks_are_native_and_of_python(self):
        with started.Started(watched("two_groups", "--on-hang=stacks"), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, cwd=FOLDER) as watcher:
            said = ""
            for line in watcher.stderr:
                said += line
                if "lockstep show" in line:
                    watcher.send_signal(signal.SIGTERM)
            watcher.wait(250)
        stacks = said[said.index("Stacks and errors"):]
        self.assertRegex(stacks, r"<module> at train\.py:\d+")
        self.assertRegex(stacks, r"\w+@libtorch\w*\.so")

    @unittest.skipUnless(WITH_LINES, "py-spy is not on the PATH")
    def test_waits_in_two_groups_are_proved_and_ended(self):
        ended = finish(watched("two_groups", "--on-hang=kill"))
        self.assertEqual(ended.returncode, 1)
        hung, cause, proof, text = self.told(ended.stderr)
        self.assertEqual((hung, cause, proof), ("HUNG, ", "communicator_mismatch", "proved"))
        line = line_of("group=everybody if rank == 1")
        self.assertRegex(text, "rank 0 waits in all_reduce 1%s; rank 1 is in all_reduce 1%s" %
                         (line, line))


if __name__ == "__main__":
    unittest.main()
