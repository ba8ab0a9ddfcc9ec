#!/usr/bin/python3
"""The commands of scripts/ are thin files that work everywhere: in the source tree, by a link to a
link, and installed."""
import glob
import os
import re
import subprocess
import tempfile
import unittest

# Tests see what they declare; this one reads the whole tree.
TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
MOST_LINES = 8


def of_python(folder):
    """Paths of the commands there."""
    found = []
    for path in glob.glob(os.path.join(folder, "*")):
        if os.path.isfile(path) and not path.endswith(".py"):
            with open(path, "rb") as file:
                if b"python" in file.readline():
                    found.append(path)
    return found


def said(path, **variables):
    done = subprocess.run([path, "--help"], cwd="/", capture_output=True, text=True, check=False,
                          env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **variables))
    return done.returncode, done.stdout, done.stderr


class CommandsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

    def assert_works(self, path):
        code, out, err = said(path)
        self.assertEqual((code, err), (0, ""), path)
        self.assertIn("usage: " + os.path.basename(path), out)

    def test_commands_are_thin_and_end_alike(self):
        paths = of_python(os.path.join(TREE, "scripts"))
        self.assertGreaterEqual(len(paths), 14)
        for path in paths:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertLessEqual(text.count("\n"), MOST_LINES, path)
            self.assertIn("\nlaunches.run(", text, path)

    def test_in_the_source_tree_and_by_a_link_to_a_link(self):
        for path in of_python(os.path.join(TREE, "scripts")):
            self.assert_works(path)
            os.makedirs(os.path.join(self.folder, "bin"), exist_ok=True)
            first = os.path.join(self.folder, "first")
            second = os.path.join(self.folder, "bin", os.path.basename(path))
            os.symlink(path, first)
            os.symlink("../first", second)
            self.assert_works(second)
            os.remove(first)

    def test_without_h5py_they_say_so(self):
        with open(os.path.join(self.folder, "h5py.py"), "w", encoding="utf-8") as file:
            file.write('raise ImportError("none here")\n')
        told = []
        for path in of_python(os.path.join(TREE, "scripts")):
            code, _, err = said(path, PYTHONPATH=self.folder)
            if code != 0:
                self.assertRegex(err, r"\A%s: h5py .* \(none here\), .*apt-get install.*\n\Z" %
                                 os.path.basename(path))
                self.assertEqual(4, code)
                told.append(os.path.basename(path))
        self.assertIn("check_coverage", told)

    def test_installed(self):
        # Installing copies programs and runs none: empty ones will do.
        built = os.path.join(self.folder, "built")
        with open(os.path.join(TREE, "BUILD"), encoding="utf-8") as file:
            labels = re.findall(r'^ *\("([a-z/]+)", "(\w+)"\),$', file.read(), re.MULTILINE)
        with open(os.path.join(TREE, "bench/programs.bzl"), encoding="utf-8") as file:
            labels += [("bench", name) for name in re.findall(r'"(bench_\w+)": ', file.read())]
        labels.append(("watch/preload", "liblockstep_watch.so"))
        for room, name in labels:
            os.makedirs(os.path.join(built, room), exist_ok=True)
            open(os.path.join(built, room, name), "w", encoding="utf-8").close()
        prefix = os.path.join(self.folder, "prefix")
        subprocess.run([os.path.join(TREE, "scripts/install"), "--prefix=" + prefix,
                        "--built=" + built], check=True)
        installed = of_python(os.path.join(prefix, "libexec/lockstep"))
        self.assertIn("nightly", map(os.path.basename, installed))
        for path in installed + [os.path.join(prefix, "libexec/lockstep/report/report.py")]:
            self.assert_works(path)


if __name__ == "__main__":
    unittest.main()
