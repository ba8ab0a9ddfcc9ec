#!/usr/bin/python3
"""Subcommands that are programs in Python: they get every word behind their name, under the name
that was typed."""
import os
import shutil
import subprocess
import tempfile
import unittest

COMMANDS = {"matrix": "--nccl-wheels", "nightly": "--profile", "scoreboard": "--repeat",
            "testbed": "--boot-ids"}
CONFIGURATIONS = "".join("[[configuration]]\nname = '%s'\n" % name for name in "ab")


def said(*words, program="cli/lockstep", environment=None):
    return subprocess.run([program, *words], capture_output=True, text=True, check=False,
                          env=environment)


class SubcommandsTest(unittest.TestCase):

    def test_help_is_theirs_and_has_the_name_that_was_typed(self):
        listed = said("--help").stdout
        for command, option in COMMANDS.items():
            self.assertRegex(listed, r"(?m)^  %s +\w" % command)
            done = said(command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith("usage: lockstep %s " % command), done.stdout)
            self.assertIn(option, done.stdout)

    def test_words_and_exit_codes_pass(self):
        for words, message in ((["matrix"], "give a MATRIX.toml, or --diff OLD NEW"),
                               (["matrix", "--diff", "old", "new"], "old: is no matrix.json"),
                               (["nightly", "--profile=quick", "a.toml"], "give a PLAN.toml or"),
                               (["scoreboard", "--ranks=1"], "'1' is no list of numbers"),
                               (["testbed", "0", "--", "true"], "give 1 to 64 hosts")):
            done = said(*words)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("lockstep %s: " % words[0], done.stderr)
            self.assertIn(message, done.stderr)

    def test_programs_are_those_beside_unless_given(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            plan = os.path.join(folder, "plan.toml")
            for command, more in (("nightly", ""), ("matrix", CONFIGURATIONS)):
                with open(plan, "w", encoding="utf-8") as file:
                    file.write("ranks = 2\n" + more)
                done = said(command, plan, "--programs=" + folder, "--output-folder=" + folder)
                self.assertEqual(done.returncode, 4, done)
                self.assertIn("is not installed", done.stderr)

    def test_half_an_installation(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            os.mkdir(os.path.join(folder, "bin"))
            program = os.path.join(folder, "bin/lockstep")
            shutil.copy("cli/lockstep", program)
            for command in COMMANDS:
                done = said(command, program=program, environment={"PATH": os.environ["PATH"]})
                self.assertEqual(done.returncode, 4)
                self.assertRegex(done.stderr, r"^lockstep: .*/libexec/lockstep/\w+: not found; "
                                              r"install Lockstep with scripts/install\n$")


if __name__ == "__main__":
    unittest.main()
