#!/usr/bin/python3
"""pip installs the wheel into a Python without other packages, and that into a root that has Python
and the C library only. Needs a network, and the right to make namespaces."""

import os
import shutil
import subprocess
import tempfile
import types
import unittest

import wheel

# A short path: the first line of a longer one's programs would ask for a shell.
_TEMPORARY = tempfile.TemporaryDirectory(dir="/tmp", prefix="lockstep-")
_DIRECTORY = _TEMPORARY.name
_VENV = os.path.join(_DIRECTORY, "venv")
_RUNS = os.path.join(_DIRECTORY, "runs")
# What Python itself needs; libstdc++ is for numpy's and pandas's own modules.
_BASE = ("libc6", "libexpat1", "libffi8", "libgcc-s1", "libpython3.11-minimal",
         "libpython3.11-stdlib", "libstdc++6", "python3-minimal", "python3.11-minimal", "zlib1g",
         "libbz2-1.0", "liblzma5", "libuuid1", "base-files")
_READ = """import lockstep
assert lockstep.__version__ == "%s"
with lockstep.open("%s/failing.h5") as run:
    assert (run.summary.verdict == "pass").any() and run.samples(0).shape == (5, 2)
    print(run.findings[0].headline)
"""


def bare_root():
    """A folder with the files of _BASE, the venv and the runs, at their places."""
    root = os.path.join(_DIRECTORY, "root")
    os.makedirs(os.path.join(root, "usr"))
    for name in ("bin", "lib", "lib64", "sbin"):
        os.makedirs(os.path.join(root, "usr", name))
        os.symlink("usr/" + name, os.path.join(root, name))
    files = wheel.said("dpkg-query", "--listfiles", *_BASE).split("\n")
    files = [path for path in files if os.path.islink(path) or os.path.isfile(path)]
    subprocess.run(["tar", "-C", "/", "-cf", os.path.join(_DIRECTORY, "base.tar"), "--",
                    *(os.path.join(os.path.realpath(os.path.dirname(path)),
                                   os.path.basename(path))[1:] for path in files)], check=True)
    subprocess.run(["tar", "-C", root, "-xf", os.path.join(_DIRECTORY, "base.tar")], check=True)
    for folder in (_VENV, _RUNS):
        shutil.copytree(folder, root + folder, symlinks=True)
    for name in ("proc", "tmp"):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    return root


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.makedirs(_RUNS)
        subprocess.run(["results/example_runs", _RUNS], check=True)
        shutil.copytree("core/flight/testdata/gloo_ddp", os.path.join(_RUNS, "dumps"))
        subprocess.run(["/usr/bin/python3", "-m", "venv", _VENV], check=True)
        path = wheel.make(_DIRECTORY, types.SimpleNamespace(built=os.getcwd()))
        subprocess.run([_VENV + "/bin/pip", "install", "--quiet", path], check=True)

    def check(self, *before):
        def run(*words):
            done = subprocess.run([*before, *words], capture_output=True, text=True, check=False,
                                  env={"PATH": "/usr/bin:/bin"})
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

        tool = _VENV + "/bin/lockstep"
        code, out = run(tool, "diagnose", "--flight-recorder", _RUNS + "/dumps")
        self.assertIn(code, (0, 1, 3))
        self.assertIn("rank", out)
        code, out = run(tool, "show", _RUNS + "/failing.h5")
        self.assertEqual((code, out[:6]), (0, "FAIL: "))
        page = _RUNS + "/page.html"
        self.assertEqual(run(tool, "report", _RUNS + "/failing.h5", "--output", page)[0], 0)
        code, out = run(_VENV + "/bin/python", "-c", _READ % (wheel.tree.version(), _RUNS))
        self.assertEqual((code, out), (0, "rank 1 was killed by signal 9\n"))

    def test_on_this_machine(self):
        self.check()

    def test_in_a_bare_root(self):
        root = bare_root()
        # The dynamic linker learns from /proc where a program is.
        script = 'mount --rbind /proc "$0/proc" && exec /usr/sbin/chroot "$0" "$@"'
        enter = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, root]
        done = subprocess.run([*enter, "/usr/bin/python3", "-c", "import sys"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest("no bare root can be entered here: " + done.stderr.strip())
        left = subprocess.run([*enter, "/usr/bin/python3", "-c", "import os; print("
                               "[n for f in os.walk('/usr/lib') for n in f[2] if 'hdf5' in n])"],
                              capture_output=True, text=True, check=True).stdout
        self.assertEqual(left, "[]\n")
        self.check(*enter)


if __name__ == "__main__":
    unittest.main()
