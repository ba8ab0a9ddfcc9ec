#!/usr/bin/python3
"""What qualifies no machine although no program says that anything failed: launches that end badly
after their file was written, that ran elsewise than planned, or that communicated nothing."""

import os
import subprocess
import unittest

from nightly_testing import LATENCY, Folder
from qualification import journal, runner, verdict
from qualification.plan import Launch, Plan, read_plan

_MPIRUN = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"


class Doubts(Folder):

    def launcher(self, script):
        path = os.path.join(self.folder, "launcher")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return path

    def inconclusive(self, text):
        code, answer, err = self.nightly(text)
        self.assertEqual((3, "INCONCLUSIVE"), (code, answer["verdict"]), err)
        return answer

    def exists(self, name):
        return os.path.exists(os.path.join(self.output, name))

    def test_a_launch_that_fails_after_it_passed(self):
        path = self.launcher(_MPIRUN + ' "$@"\nexit 7\n')
        answer = self.inconclusive('backends = ["gloo"]\nlauncher = "%s"\n' % path + LATENCY % 1)
        self.assertIn("latency.gloo.0: its file says that it passed, but its launcher ended with "
                      "exit code 7", answer["reasons"][0])

    def test_a_first_attempt_is_kept_and_named(self):
        path = self.launcher(_MPIRUN + ' "$@"\n[ -e "$0.again" ] || { : > "$0.again"; exit 7; }\n')
        code, answer, err = self.nightly('backends = ["gloo"]\nlauncher = "%s"\n' % path +
                                         LATENCY % 1)
        self.assertEqual((0, "QUALIFIED"), (code, answer["verdict"]), err)
        kept = ["attempts/latency.gloo.0#1.h5", "attempts/latency.gloo.0#1.log"]
        self.assertEqual(["latency.gloo.0#1"], [note.split(":")[0] for note in answer["notes"]])
        self.assertTrue(answer["notes"][0].endswith("; kept: " + ", ".join(kept)), answer["notes"])
        for name in kept + ["launches/latency.gloo.0.h5", "logs/latency.gloo.0.log"]:
            self.assertTrue(self.exists(name), name)
        self.assertEqual([kept[0]], [event["file"] for event in self.state()
                                     if event.get("launch") == "latency.gloo.0#1"])
        # Who compares all launches of a night takes the second one only.
        self.assertEqual(["latency.gloo.0.h5"], os.listdir(self.output + "/launches"))

    def test_fewer_ranks_than_planned(self):
        path = self.launcher('shift 2\n' + _MPIRUN + ' -n 2 "$@"\n')
        answer = self.inconclusive('ranks = 4\nbackends = ["gloo"]\nlauncher = "%s"\n' % path +
                                   LATENCY % 1)
        self.assertIn("its file says that it passed, but 2 ranks ran, not 4", answer["reasons"][0])

    def test_what_does_not_communicate_qualifies_nothing(self):
        answer = self.inconclusive('[[step]]\nname = "simulation"\nkind = "simulation"\n'
                                   'scenarios = ["uneven_inputs/case2"]\nseconds = 3\n')
        self.assertEqual({"simulation": 1}, answer["passed"])
        self.assertRegex(answer["reasons"][0], "^no launch that communicates passed: nothing was")

    def test_random_programs_that_tried_none(self):
        for said, answer in (("seed 7: 0 trials in 1.0 s: no wrong verdict", "none"),
                             ("seed 7: 10 trials in 1.0 s: no wrong verdict", "ok")):
            self.assertEqual(answer, verdict.answer_of({"kind": "fuzz", "exit": 0, "said": said}))

    def test_a_result_that_is_gone(self):
        one = read_plan("p", 'backends = ["gloo"]\n' + LATENCY % 1)
        state = journal.Journal(self.output)
        self.addCleanup(state.close)
        state.begin(one)
        state.end("latency.gloo.0", kind="bench", exit=0, seconds=1, said="PASS", file="a.h5")
        answer = verdict.assess(one, state, self.output, None, None)
        self.assertEqual((3, "INCONCLUSIVE"), (answer["exit_code"], answer["verdict"]))
        self.assertIn("latency.gloo.0: its file a.h5 is gone", answer["reasons"][0])

    def test_the_limit_of_a_launch_that_must_be_killed(self):
        program = self.launcher("trap '' TERM\nwhile :; do sleep 1; done\n")
        one = Plan("p", {"step": [{"name": "a", "program": "bench_barrier", "seconds": 1}]})
        with open(os.path.join(self.folder, "lock"), "w", encoding="utf-8") as lock:
            end = runner.Runner(one, {}.get, self.folder, lock).run(
                Launch(one.steps[0], "gloo", 0), [program], 0.5)
        self.assertIsNone(end["exit"], end)
        self.assertIn("a.gloo.0: was ended by the plan's limit after ",
                      verdict.reason_for("a.gloo.0", end))


class WithoutReader(Folder):
    """Without h5py no result file can be read, so nothing is run."""

    def test_it_is_one_line_before_anything_runs(self):
        with open(os.path.join(self.folder, "h5py.py"), "w", encoding="utf-8") as file:
            file.write('raise ImportError("none here")\n')
        two = '[[configuration]]\nname = "a"\n[[configuration]]\nname = "b"\n'
        for program, more in (("nightly", ""), ("compat_matrix", two)):
            output = os.path.join(self.folder, program)
            done = subprocess.run(
                ["scripts/" + program, self.plan(LATENCY % 1 + more), "--output-folder=" + output,
                 "--programs=" + os.getcwd()], text=True, capture_output=True, check=False,
                 env=dict(os.environ, PYTHONPATH=self.folder))
            self.assertEqual((4, ""), (done.returncode, done.stdout), done.stderr)
            self.assertRegex(done.stderr, r"\A%s: h5py or numpy cannot be loaded \(none here\), "
                             r"and result files need them; apt-get install python3-h5py.*\n\Z" %
                             program)
            self.assertEqual(0, os.path.getsize(os.path.join(output, "state.jsonl")))


if __name__ == "__main__":
    unittest.main()
