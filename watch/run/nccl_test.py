#!/usr/bin/python3
"""NCCL programs under `lockstep watch`: wrong ones are named, of right ones nothing is said.

They are linked with a stand-in of NCCL: what a device does is not tested here."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.abspath("core/base/testing"))
import started  # pylint: disable=wrong-import-position

LOCKSTEP = os.path.abspath("cli/lockstep")
CASES = os.path.abspath("watch/preload/nccl_cases")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
VERDICT = re.compile(r"^lockstep watch: (HUNG, )?(\w+) \((\w+)\): (.*)$", re.M)
AT = r" at nccl_cases\.cc:\d+"


def script(case, ranks=3):
    return [CASES, case, str(ranks)]


def watched(case, *options):
    return [LOCKSTEP, "watch", *options, "--", *script(case)]


def finish(command):
    return started.run(command, cwd=FOLDER)


class RightPrograms(unittest.TestCase):

    def right(self, case):
        alone = finish(script(case))
        self.assertEqual(alone.returncode, 0, alone.stdout + alone.stderr)
        ended = finish(watched(case))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(VERDICT.findall(ended.stderr), [])
        self.assertRegex(ended.stderr,
                         r"(?m)^lockstep watch: 3 ranks, \d+ events, no finding$")
        self.assertEqual(sorted(ended.stdout.splitlines()), sorted(alone.stdout.splitlines()))
        return ended

    def test_collectives(self):
        self.assertIn("rank 2: 1", self.right("right").stdout)

    def test_messages_in_groups(self):
        self.right("messages")

    def test_split_communicators_of_which_one_works_more(self):
        self.assertIn("rank 0: 2", self.right("halves").stdout)

    def test_a_slow_rank_and_ranks_that_agree_to_stop(self):
        self.right("slow")
        self.right("abort")


class WrongPrograms(unittest.TestCase):

    def told(self, case, *options, go_on=None):
        """All verdicts on ranks. After a suspicion the file `go_on` is made, if it has a name;
        after another verdict the launch is ended."""
        with started.Started(watched(case, *options), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, cwd=FOLDER) as watcher:
            said = ""
            for line in watcher.stderr:
                said += line
                if not line.startswith("  -> "):
                    continue
                if go_on and VERDICT.findall(said)[-1][2] == "suspected":
                    open(go_on, "a").close()
                else:
                    watcher.send_signal(signal.SIGTERM)
            watcher.wait(250)
        return VERDICT.findall(said), said, watcher.returncode

    def hangs(self, case, *options):
        """The verdict on ranks that would wait for ever; then the launch is ended."""
        told, said, _ = self.told(case, *options)
        self.assertEqual(len(told), 1, said)
        return told[0], said

    def proved(self, case, cause, pattern):
        (_, told, proof, headline), said = self.hangs(case)
        self.assertEqual((told, proof), (cause, "proved"))
        self.assertRegex(said, pattern)
        self.assertIn("rank 1", headline)

    def test_calls_of_different_kinds(self):
        self.proved("kinds", "call_mismatch",
                    r"(?=.*rank 1 calls ncclBroadcast 1%s)(?=.*rank [02] calls ncclAllReduce 6%s)|"
                    r"rank [02] calls ncclAllReduce 6%s where rank 1 calls ncclBroadcast 1%s" %
                    (AT, AT, AT, AT))

    def test_different_counts(self):
        self.proved("counts", "datatype_mismatch",
                    "ncclAllReduce of (288 and 320|320 and 288) bytes: rank . in ncclAllReduce 6"
                    + AT)

    def test_in_a_split_communicator(self):
        (_, cause, proof, _), said = self.hangs("halves_differ")
        self.assertEqual((cause, proof), ("datatype_mismatch", "proved"))
        self.assertRegex(said, "rank [02] in ncclAllReduce 1%s, rank [02] in ncclAllReduce 1%s" %
                         (AT, AT))

    def test_ranks_that_end(self):
        waits = r"; rank [02] waits for it in ncclAllReduce 6" + AT
        self.proved("ends", "missing_call", "rank 1 ended without ncclAllReduce" + waits)
        self.proved("killed", "lost_rank", "rank 1 died after ncclAllReduce 5" + AT + waits)
        # That one is told at once, perhaps before another rank calls what it will wait in.
        self.proved("fails", "lost_rank",
                    r"rank 1 exited with code 3 after ncclAllReduce 5%s(%s)?\n" % (AT, waits))
        self.proved("gives_up", "missing_call",
                    "rank 1 gave up its communicator without ncclAllReduce" + waits)
        self.proved("nobody_sends", "missing_call", "rank 1 (gave up its communicator|ended) "
                    "without ncclSend; rank 0 waits for it in ncclRecv 1" + AT)

    def test_a_rank_that_is_stopped(self):
        self.proved("stopped", "stopped_rank",
                    "rank 1 is stopped; last seen after ncclAllReduce 5" + AT)

    def test_silence_is_suspected_only(self):
        (hung, cause, proof, _), said = self.hangs("silent", "--timeout=10")
        self.assertEqual((hung, cause, proof), ("HUNG, ", "missing_call", "suspected"))
        self.assertRegex(said, "rank 1 has not called ncclAllReduce; rank [02] waits for it")
        # A rank that aborts lets others go on, if they do so too: its end proves nothing.
        (hung, cause, proof, _), said = self.hangs("aborts_and_ends", "--timeout=10")
        self.assertEqual((hung, cause, proof), ("HUNG, ", "missing_call", "suspected"))
        self.assertIn("; rank 1 ended after ncclCommAbort 1", said)

    def test_a_silence_that_ends_was_no_hang_and_hides_none(self):
        suspicion = ("HUNG, ", "missing_call", "suspected")
        mismatch = ("", "call_mismatch", "proved")
        for case, last, code, verdict in (("late", suspicion, 0, "pass"),
                                          ("late_differs", mismatch, 128 + signal.SIGTERM, "fail")):
            go_on = os.path.join(FOLDER, case)
            output = go_on + ".h5"
            with unittest.mock.patch.dict(os.environ, NCCL_CASES_FILE=go_on):
                told, said, ended = self.told(case, "--timeout=10", "--output=" + output,
                                              go_on=go_on)
            # Ranks that get no processor are silent, too.
            told = [each[:3] for each in told]
            self.assertEqual((set(told[:-1]) | {told[0]}, told[-1]), ({suspicion}, last), said)
            self.assertEqual(ended, code, said)
            self.assertEqual("what was suspected was no hang" in said, case == "late", said)
            run = json.loads(finish([LOCKSTEP, "show", "--format=jsonl", output]).stdout)
            self.assertEqual(run["verdict"], verdict)
            judgement = run["judgement"]
            causes = [each["cause"] for each in judgement["findings"]]
            self.assertEqual(causes[:1], ["call_mismatch"] if code else [])
            if not code:
                self.assertEqual(judgement["outcomes"], [])


if __name__ == "__main__":
    unittest.main()
