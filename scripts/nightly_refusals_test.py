#!/usr/bin/python3
"""When scripts/nightly runs nothing, or no more: in a folder that is finished, without a program,
and when launches give no answer."""

import contextlib
import glob
import io
import json
import os
import subprocess
import tempfile
import unittest

from nightly_testing import LATENCY, Folder
from qualification import journal, nightly, plan, verdict


_SOAK = '[[step]]\nname = "%s"\nkind = "soak"\nseconds = 1\n'


class Damaged(Folder):
    """A result file that cannot be read says nothing, whatever the launcher says."""

    LAUNCHER = """#!/bin/sh
mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@"
for word; do case "$word" in --output=*) truncate -s 4096 "${word#--output=}";; esac; done
"""

    def test_it_qualifies_no_machine(self):
        launcher = os.path.join(self.folder, "launcher")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(self.LAUNCHER)
        os.chmod(launcher, 0o755)
        code, answer, err = self.nightly('launcher = "%s"\nbackends = ["gloo"]\n' % launcher +
                                         LATENCY % 1)
        self.assertEqual((3, "INCONCLUSIVE"), (code, answer["verdict"]), err)
        self.assertIn("latency.gloo.0: it wrote no result; ", answer["reasons"][0])
        self.assertIn("latency.gloo.0.h5: ", answer["reasons"][0])


class Finished(Folder):
    """A folder in which a night is over: its answer is of that night."""

    TEXT = 'backends = ["gloo"]\n' + LATENCY % 1

    def test_nothing_is_run_and_that_is_said(self):
        code, answer, err = self.nightly(self.TEXT)
        self.assertEqual((0, "QUALIFIED"), (code, answer["verdict"]), err)
        before = self.state()
        code, again, err = self.nightly(self.TEXT)
        self.assertEqual((3, "NOT RUN", 3, answer, ""), (
            code, again["verdict"], again["exit_code"], again["earlier"], err))
        self.assertEqual(before, self.state())
        done = subprocess.run(["scripts/nightly", self.plan(self.TEXT),
                               "--output-folder=" + self.output],
                              capture_output=True, text=True, check=False)
        self.assertEqual(3, done.returncode)
        plugin = subprocess.run(["scripts/nightly", self.plan(self.TEXT), "--nagios",
                                 "--output-folder=" + self.output],
                                capture_output=True, text=True, check=False)
        self.assertEqual(3, plugin.returncode)
        self.assertRegex(plugin.stdout, r"\ALOCKSTEP NIGHTLY UNKNOWN - NOT RUN: .*\n\Z")
        self.assertRegex(done.stdout, r"^NOT RUN: .*/out was finished on %s, \d+ s ago: "
                         r"QUALIFIED\. Nothing was run now; give another --output-folder" %
                         answer["ended"])

    def test_a_plugin_has_other_exit_codes(self):
        for code, state, word in ((0, 0, "OK"), (1, 2, "CRITICAL"), (5, 1, "WARNING"),
                                  (3, 3, "UNKNOWN"), (4, 3, "UNKNOWN")):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(state, nightly.tell_nagios(code, "a | b\n  c"))
            self.assertEqual("LOCKSTEP NIGHTLY %s - a / b c\n" % word, said.getvalue())
        done = subprocess.run(["scripts/nightly", self.plan("ranks = true"), "--nagios"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((3, ""), (done.returncode, done.stderr))
        self.assertRegex(done.stdout, r"\ALOCKSTEP NIGHTLY UNKNOWN - .*ranks.*\n\Z")

    def test_what_was_wrong_then_is_shown(self):
        state = journal.Journal(self.output)
        one = plan.read_plan("p", self.TEXT)
        state.begin(one)
        state.end("latency.gloo.0", kind="bench", exit=1, seconds=1, said="FAIL: bad", file=None)
        journal.write_whole(os.path.join(self.output, "verdict.json"),
                            '{"verdict": "NOT QUALIFIED", "reasons": ["latency: bad"]}')
        state.last -= 3 * 86400  # as if it had been then
        answer = state.finished(one, "verdict.json")
        self.assertIn(", 3 days ago: NOT QUALIFIED. Nothing", answer["headline"])
        self.assertTrue(verdict.format_answer(answer).endswith("\n  then: latency: bad\n"))
        with self.assertRaisesRegex(journal.JournalError, "of another plan"):
            state.finished(plan.read_plan("p", LATENCY % 2), "verdict.json")
        journal.write_whole(os.path.join(self.output, "verdict.json"), "[]")
        with self.assertRaisesRegex(journal.JournalError, "is no answer of an earlier run"):
            state.finished(one, "verdict.json")
        state.close()

    def test_without_output_it_runs_in_a_folder_of_tonight(self):
        for words in ([os.path.abspath("scripts/nightly")],
                      [os.path.abspath("cli/lockstep"), "nightly"]):
            folder = tempfile.mkdtemp(dir=self.folder)
            nights = [journal.tonight("results/nightly")]
            done = subprocess.run(words + [self.plan(self.TEXT), "--programs=" + os.getcwd()],
                                  cwd=folder, capture_output=True, text=True,
                                  check=False)
            nights.append(journal.tonight("results/nightly"))  # noon may have passed
            self.assertEqual(0, done.returncode, done.stderr)
            found = glob.glob("results/nightly/*/verdict.json", root_dir=folder)
            self.assertEqual(1, len(found), done.stderr)
            self.assertIn(os.path.dirname(found[0]), nights)


class NotInstalled(Folder):
    """Found before anything runs: one line, and exit code 4."""

    def programs(self, *names):
        """A folder with real programs but for `names`."""
        folder = os.path.join(self.folder, "bin")
        os.makedirs(folder)
        benches = {os.path.basename(path) for path in glob.glob("bench/bench_*")}
        for name in (benches | {"stress", "fuzz", "lockstep"}) - set(names):
            path = plan.find_program(name, os.getcwd())
            if path:
                os.symlink(path, os.path.join(folder, name))
        return folder

    def check(self, text, folder, words):
        done = subprocess.run(
            ["scripts/nightly", self.plan(text), "--output-folder=" + self.output,
             "--programs=" + folder],
            capture_output=True, text=True, check=False)
        self.assertEqual((4, ""), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r"^nightly: %s.*\n$" % words)
        self.assertEqual([], self.state())

    def test_a_program(self):
        folder = self.programs("stress")
        soak = '[[step]]\nname = "soak"\nkind = "soak"\nseconds = 20\n'
        self.check(soak, folder, "stress is not installed, and step 'soak' runs it")
        self.check('profile = "quick"\nskip = ["barrier", "ddp_step"]', folder,
                   "stress is not installed, and step 'catalogue'")
        self.check('[[step]]\nname = "a"\nseconds = 1\nprogram = "bench_none"\n', folder,
                   "bench_none is not installed, and step 'a' runs it")

    def test_the_launcher(self):
        self.check('launcher = "mpirun-none -x"\n' + LATENCY % 1, os.getcwd(),
                   "mpirun-none: not found; install it")

    def test_what_ends_well_and_writes_nothing_is_no_answer(self):
        folder = os.path.join(self.folder, "mute")
        os.makedirs(folder)
        for name in ("launcher", "stress", "fuzz", "bench_allreduce"):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexit 0\n")
            os.chmod(os.path.join(folder, name), 0o755)
        path = self.plan('backends = ["gloo"]\nlauncher = "%s/launcher"\n' % folder + "".join(
            '[[step]]\nname = "%s"\nkind = "%s"\nseconds = 1\n%s' % (kind, kind, more)
            for kind, more in (("bench", 'program = "bench_allreduce"\n'), ("stress", ""),
                               ("simulation", ""), ("fuzz", ""), ("soak", ""))))
        done = subprocess.run(
            ["scripts/nightly", path, "--output-folder=" + self.output, "--programs=" + folder,
             "--format=json"], capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        self.assertEqual((3, "INCONCLUSIVE"), (done.returncode, answer["verdict"]))
        for name in ("bench.gloo.0", "stress.gloo.0", "simulation.0", "fuzz.0", "soak.gloo.0"):
            self.assertIn(name + ": it wrote no result; it said nothing (exit code 0)",
                          answer["reasons"])

    def test_what_is_not_required_is_a_note(self):
        text = 'backends = ["gloo"]\n' + LATENCY % 1 + "".join(
            '[[step]]\nname = "%s"\nkind = "%s"\nseconds = 2\nrequired = false\n' % (kind, kind)
            for kind in ("simulation", "soak"))
        done = subprocess.run(
            ["scripts/nightly", self.plan(text), "--output-folder=" + self.output,
             "--programs=" + self.programs("stress"), "--format=json"],
            capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        self.assertEqual((0, "QUALIFIED", []), (done.returncode, answer["verdict"],
                                                answer["reasons"]), done.stderr)
        self.assertIn("simulation.0: not run: stress is not installed", answer["notes"])
        self.assertIn("soak: 0 of 2 s: its launches give no answer", answer["notes"])
        ends = [event["launch"] for event in self.state() if event["event"] == "end"]
        self.assertEqual(["soak.gloo.0", "soak.gloo.1", "soak.gloo.2"],
                         [name for name in ends if name.startswith("soak")])

    def test_where_nothing_that_is_not_required_ran_nothing_is_qualified(self):
        done = subprocess.run(
            ["scripts/nightly", self.plan('[[step]]\nname = "simulation"\nkind = "simulation"\n'
                                          'seconds = 2\nrequired = false\n'),
             "--output-folder=" + self.output, "--programs=" + self.programs("stress"),
             "--format=json"], capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        self.assertEqual((3, "INCONCLUSIVE", ["no launch that communicates passed: nothing "
                                              "was measured; give steps of kind bench or stress "
                                              "or soak"]),
                         (done.returncode, answer["verdict"], answer["reasons"]), done.stderr)

    def test_a_soak_without_answers_ends(self):
        folder = self.programs("stress")
        with open(os.path.join(folder, "stress"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 'stress: cannot tell'\nexit 3\n")
        os.chmod(os.path.join(folder, "stress"), 0o755)
        launcher = os.path.join(self.folder, "launcher")  # -n RANKS PROGRAM …
        with open(launcher, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nshift 2\nexec "$@"\n')
        os.chmod(launcher, 0o755)
        path = self.plan('time_budget = "9000s"\nbackends = ["gloo"]\n'
                         'launcher = "%s"\n' % launcher +
                         '[[step]]\nname = "soak"\nkind = "soak"\nseconds = 2000\n')
        done = subprocess.run(
            ["scripts/nightly", path, "--output-folder=" + self.output, "--programs=" + folder,
             "--format=json"], capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        self.assertEqual((3, "INCONCLUSIVE"), (done.returncode, answer["verdict"]))
        self.assertRegex("\n".join(answer["reasons"]),
                         r"(?m)^soak: 0 of 2000 s: its launches give no answer$")
        self.assertEqual(0, answer["soak_seconds"], "no launch of it gave an answer")
        self.assertIn("soak.gloo.0: stress: cannot tell (exit code 3)", answer["reasons"])


class Inputs(Folder):

    def test_plans_that_cannot_be(self):
        for text, words in (("x = ", "mend the TOML"), ("profil = 1", "unknown"),
                            ('profile = "quik"', "one of quick"), ("ranks = 1", "from 2 to 104"),
                            ('time_budget = "soon"', "give a time"),
                            ('budget = "5min"', "'budget' of the plan is called 'time_budget' now"),
                            ("deadline = 3", "is called 'timeout' now"),
                            ('[[step]]\nname = "a"\nseeds = 2', "is called 'repeat' now"),
                            ('backends = ["smoke"]', "backends"),
                            ('backends = ["null"]', '"null" communicates nothing'),
                            ('baseline = "."\n[[step]]\nname = "a"\nkind = "doctor"\nseconds = 1',
                             "no step is a benchmark"),
                            ('[[step]]\nname = "a"\nseconds = 1', "needs a value for program"),
                            ('[[step]]\nname = "a"\nkind = "fuzz"', "needs a value for seconds"),
                            ('time_budget = "9s"', "too few"),
                            ('baseline = "/nowhere"\n' + LATENCY % 1, "is no folder"),
                            (_SOAK % "a" + _SOAK % "b", "steps 'a' and 'b' are all soaks"),
                            ('[[step]]\nname = "a"\nkind = "stress"\nseconds = 1\npart = 2',
                             "part = 2")):
            code, answer, err = self.nightly(text)
            self.assertEqual((2, None, 1), (code, answer, err.count("\n")), err)
            self.assertIn(words, err)

    def test_another_plan_does_not_go_on(self):
        one = plan.read_plan("one.toml", LATENCY % 1)
        first = journal.Journal(self.output)
        first.begin(one)
        with self.assertRaisesRegex(journal.JournalError, "another nightly runs"):
            journal.Journal(self.output)
        first.close()
        with self.assertRaisesRegex(journal.JournalError, "of another plan"):
            second = journal.Journal(self.output)
            self.addCleanup(second.close)
            second.begin(plan.read_plan("two.toml", LATENCY % 2))


    def test_a_night_that_was_begun_long_ago_is_not_completed_as_tonight_s(self):
        one = plan.read_plan("one.toml", LATENCY % 1)
        for hours, told in (23, None), (25, "what is done in it is 25 h old"):
            first = journal.Journal(self.output)
            first.begin(one)
            first.close()
            path = os.path.join(self.output, "state.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps({**first.plan, "at": first.plan["at"] - 3600 * hours}) + "\n")
            again = journal.Journal(self.output)
            if told is None:
                self.assertIsNone(again.finished(one, "verdict.json"))
            else:
                with self.assertRaisesRegex(journal.JournalError, told):
                    again.finished(one, "verdict.json")
            again.close()
            os.remove(path)


if __name__ == "__main__":
    unittest.main()
