#!/usr/bin/python3
"""What a stamped build is told: the commit of the checkout, and whether it was changed since."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = "scripts/workspace_status"
# No configuration of whoever runs the test.
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]


class WorkspaceStatusTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.tree = os.path.join(self.folder, "tree with a blank")
        os.makedirs(os.path.join(self.tree, "scripts"))
        shutil.copy(SCRIPT, os.path.join(self.tree, SCRIPT))
        self.write("VERSION", "1.2.3\n")

    def write(self, name, text):
        with open(os.path.join(self.tree, name), "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, folder, *words):
        done = subprocess.run([*GIT, "-C", folder, *words], stdout=subprocess.PIPE, text=True,
                              env={"HOME": self.folder, "PATH": os.environ["PATH"]}, check=True)
        return done.stdout.strip()

    def commit(self, folder):
        self.git(folder, "init", "--quiet")
        self.git(folder, "add", ".")
        self.git(folder, "commit", "--quiet", "--message=one")
        return self.git(folder, "rev-parse", "--short=7", "HEAD")

    def status(self):
        done = subprocess.run([os.path.join(self.tree, SCRIPT)], cwd="/", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout

    def test_a_checkout(self):
        commit = "STABLE_LOCKSTEP_COMMIT %s\n" % self.commit(self.tree)
        self.assertEqual(commit, self.status())
        self.write("notes", "not of the project\n")
        self.assertEqual(commit, self.status())
        self.write("VERSION", "1.2.4\n")
        self.assertEqual(commit + "STABLE_LOCKSTEP_MODIFIED true\n", self.status())

    def test_a_release_that_was_unpacked(self):
        self.assertEqual("", self.status())

    def test_a_release_inside_of_another_checkout(self):
        self.commit(self.folder)
        self.assertEqual("", self.status())

    def test_a_checkout_without_a_commit(self):
        self.git(self.tree, "init", "--quiet")
        self.assertEqual("", self.status())


if __name__ == "__main__":
    if shutil.which("git") is None:
        print("SKIPPED: no git; apt-get install git")
        sys.exit(0)
    unittest.main()
