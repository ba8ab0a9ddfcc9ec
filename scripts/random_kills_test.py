#!/usr/bin/python3
"""Three random kills, drawn by a seed (LOCKSTEP_TEST_SEED repeats them), and the judgement of
literal trials. The long version is scripts/random_kills --trials=100."""
import copy
import os
import random
import subprocess
import sys
import unittest

from trials import random_kills
from lockstep import Finding  # random_kills knows where it is

KILLS = os.path.abspath("scripts/random_kills")
SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(10**6)))

LOST = Finding(-1, "agent_lost", [1], True, "", "the agent of rank 1 ended", "")
AGENT_1 = {"victim": "agent", "rank": 1}
RIGHT = {
    "struck_s": 0.5, "code": 137, "said": "result file: /tmp/trial1.h5\n", "left": [],
    "files": [{"name": "trial1.h5", "damage": "", "verdict": "unknown", "complete": False,
               "outcomes": {(0, "failed"), (1, "killed")},
               "findings": [LOST]}]}


def kills(*words):
    return subprocess.run([sys.executable, KILLS, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


class JudgeTest(unittest.TestCase):
    def why(self, change, trial=None):
        seen = copy.deepcopy(RIGHT)
        change(seen)
        return random_kills.judge(trial or AGENT_1, seen)

    def test_what_is_right_or_honestly_absent_passes(self):
        self.assertEqual(self.why(lambda seen: None), "")
        self.assertEqual(self.why(lambda seen: seen.update(files=[], said="")), "")
        unknown = LOST._replace(cause="unknown", proved=False)
        self.assertEqual(self.why(lambda seen: seen["files"][0].update(findings=[unknown])), "")

    def test_false_proofs_fail(self):
        def finding(**changes):
            return self.why(lambda seen: seen["files"][0].update(
                findings=[LOST._replace(**changes)]))
        self.assertIn("a false proof", finding(cause="rank_exited", culprits=[0]))
        self.assertIn("a false proof", finding(cause="rank_failed", culprits=[0]))
        self.assertIn("a false proof", finding(culprits=[2]))
        self.assertIn("a false suspicion", finding(cause="rank_busy", proved=False, culprits=[0]))
        worker = {"victim": "worker", "rank": 1}
        self.assertIn("a false proof", self.why(lambda seen: None, worker))

    def test_false_outcomes_fail(self):
        def outcome(rank, text):
            return self.why(lambda seen: seen["files"][0].update(outcomes={(rank, text)}))
        self.assertIn("rank 0 is called killed", outcome(0, "killed"))
        self.assertIn("rank 1 is called hung", outcome(1, "hung"))
        self.assertIn("rank 0 is called crashed", outcome(0, "crashed"))
        self.assertEqual(outcome(0, "hung"), "")

    def test_files_are_whole_or_absent(self):
        self.assertIn("cannot be read", self.why(
            lambda seen: seen["files"][0].update(damage="no HDF5 file")))
        self.assertIn("is named, and is not there", self.why(lambda seen: seen.update(files=[])))
        self.assertIn("without a file", self.why(
            lambda seen: seen.update(files=[], said="", code=0)))
        self.assertIn("an incomplete run passed", self.why(
            lambda seen: seen["files"][0].update(verdict="pass")))
        self.assertIn("left over", self.why(lambda seen: seen.update(left=["agent 0 (7)"])))

    def test_of_a_run_that_was_over_before_its_kill_nothing_is_proved(self):
        self.assertIn("a false proof", self.why(lambda seen: seen.update(struck_s=None)))
        self.assertIn("rank 1 is called killed", self.why(
            lambda seen: (seen.update(struck_s=None), seen["files"][0].update(findings=[]))))
        line, code = random_kills.conclude(["", "", ""], 2, "kills", "0 left no file")
        self.assertEqual((code, line), (0, "3 of 3 trials as they should be; 2 kills; 0 left no "
                                        "file; runs over before it, which tell nothing of "
                                        "kills: 1"))
        self.assertEqual(random_kills.conclude(["", "why"], 0, "kills", "")[1], 1)
        self.assertEqual(random_kills.conclude([""], 0, "kills", "")[1], 3)


class RandomKillsTest(unittest.TestCase):
    def test_some_kills(self):
        done = kills("--trials=3", f"--seed={SEED}")
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_bad_input_is_told(self):
        done = kills("--victims=bystander")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'bystander' is none of", done.stdout)
        done = kills("--only=one")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'one' are no numbers of trials", done.stdout)
        done = kills("--trials=2", "--only=2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no trial 2 of 2", done.stdout)

    def test_one_trial_is_the_same_again(self):
        done = kills("--trials=2", f"--seed={SEED}", "--only=1")
        print(done.stdout, flush=True)
        self.assertRegex(done.stdout, r"(?m)^  1 SIG")
        self.assertNotRegex(done.stdout, r"(?m)^  0 SIG")
        self.assertIn("1 of 1 trials as they should be", done.stdout)


if __name__ == "__main__":
    unittest.main()
