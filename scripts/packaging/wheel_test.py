#!/usr/bin/python3
"""The wheel, unpacked as pip does: what is in it, and that its command needs nothing else."""

import base64
import email.parser
import hashlib
import os
import re
import stat
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

import wheel

_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
_ROOT = os.path.join(_DIRECTORY, "site-packages")
_PROGRAM = os.path.join(_ROOT, "lockstep_tool/bin/lockstep")
_FULL = os.path.abspath("cli/lockstep")
_DUMPS = os.path.abspath("core/flight/testdata/gloo_ddp")
_GLIBC = re.compile(r"/lib(64)?/(x86_64-linux-gnu/)?(ld-linux-x86-64|lib(c|m|resolv|dl|rt|pthread))"
                    r"\.so\.\d")


def run(*words, program=_PROGRAM, **environment):
    """(exit code, standard output, standard error) with no other variables."""
    if program == _FULL:  # whose own run files may not be built yet
        environment |= {"TEST_SRCDIR": os.environ["TEST_SRCDIR"]}
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False,
                          env=environment, cwd=_DIRECTORY)
    return done.returncode, done.stdout, done.stderr


def path_of(name):
    return os.path.join(_DIRECTORY, name)


def unpack(path):
    """As pip: programs stay programs."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(_ROOT)
        for member in archive.infolist():
            mode = member.external_attr >> 16
            assert stat.S_ISREG(mode), member
            os.chmod(os.path.join(_ROOT, member.filename), stat.S_IMODE(mode))
        return archive.namelist()


def dynamic(path):
    return subprocess.run(["readelf", "--dynamic", path], capture_output=True, text=True,
                          check=True).stdout


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = wheel.make(_DIRECTORY, types.SimpleNamespace(built=os.getcwd()))
        cls.names = unpack(cls.path)
        cls.info = next(name.partition("/")[0] for name in cls.names if ".dist-info/" in name)
        folder = os.path.join(_ROOT, "lockstep_tool/lib")
        cls.libraries = {name: os.path.join(folder, name) for name in os.listdir(folder)}

    def text(self, name):
        with open(os.path.join(_ROOT, self.info, name), encoding="utf-8") as file:
            return file.read()

    def test_the_record_has_every_member_and_its_hash(self):
        rows = [line.split(",") for line in self.text("RECORD").splitlines()]
        self.assertEqual([row[0] for row in rows], sorted(self.names[:-1]) + [self.names[-1]])
        self.assertEqual(rows.pop(), [self.info + "/RECORD", "", ""])
        for name, digest, size in rows:
            with open(os.path.join(_ROOT, name), "rb") as file:
                content = file.read()
            wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            self.assertEqual((digest, int(size)), ("sha256=" + wanted.rstrip("="), len(content)))

    def test_what_is_in_it(self):
        for name in ("lockstep/__init__.py", "lockstep/py.typed", "lockstep/VERSION",
                     "lockstep_tool/__init__.py",
                     "lockstep_tool/libexec/lockstep/report/page.html",
                     "lockstep_tool/libexec/lockstep/report/figures/latency.py",
                     "lockstep_tool/share/lockstep/datasets/manifests/resnet50.json",
                     self.info + "/licenses/LICENSE"):
            self.assertIn(name, self.names)
        for folder, kept in (("results/python/lockstep", "lockstep"),
                             ("results/report/html", "lockstep_tool/libexec/lockstep/report")):
            for name in os.listdir(folder):
                if name.endswith(".py"):
                    self.assertEqual(f"{kept}/{name}" in self.names, "_test" not in name, name)
        licences = [name for name in self.names if "/licenses/" in name]
        self.assertGreater(len(licences), len(self.libraries) / 2)

    def test_what_it_says_of_itself(self):
        parse = email.parser.Parser().parsestr
        with open("VERSION", encoding="utf-8") as file:
            version = file.read().strip()
        about = parse(self.text("METADATA"))
        self.assertEqual((about["Name"], about["Version"]), ("lockstep", version))
        needs = {re.match(r"\w+", one)[0] for one in about.get_all("Requires-Dist")}
        self.assertEqual(needs, {"h5py", "jinja2", "numpy", "pandas"})
        tag = parse(self.text("WHEEL"))["Tag"]
        self.assertEqual(os.path.basename(self.path), f"lockstep-{version}-{tag}.whl")
        self.assertIn("lockstep = lockstep_tool:main", self.text("entry_points.txt"))

    def test_no_library_is_missing_and_none_is_of_mpi(self):
        promised = re.search(r"manylinux_(\d+)_(\d+)_x86_64", self.path)
        for path in [_PROGRAM, *self.libraries.values()]:
            said = dynamic(path)
            for name in re.findall(r"\(NEEDED\).*\[(.*)\]", said):
                self.assertNotRegex(name, "mpi|gloo|open-rte|open-pal")
                self.assertTrue(name in self.libraries or _GLIBC.search("/lib/" + name), name)
            found = re.findall(r"\((R(?:UN)?PATH)\).*\[(.*)\]", said)
            self.assertEqual(found, [("RPATH", "$ORIGIN/../lib")] if path == _PROGRAM else [])
            symbols = subprocess.run(["readelf", "--version-info", path], capture_output=True,
                                     text=True, check=True).stdout
            for version in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", symbols):
                self.assertLessEqual(tuple(map(int, version)), tuple(map(int, promised.groups())))

    def test_its_own_libraries_are_loaded(self):
        """Also what these load themselves, although this machine has most of them, too."""
        code, out, err = run(LD_TRACE_LOADED_OBJECTS="1")
        self.assertEqual((code, err), (0, ""))
        loaded = re.findall(r"=> (/\S+)", out)
        inside = {path for path in map(os.path.normpath, loaded) if path.startswith(_ROOT)}
        self.assertEqual(inside, set(self.libraries.values()))
        for path in loaded:
            self.assertTrue(path.startswith(_ROOT) or _GLIBC.match(path), path)

    def test_the_command_says_what_the_whole_one_says(self):
        for words in (["show", path_of("failing.h5")], ["buckets", "--model=resnet50"],
                      ["diagnose", "--flight-recorder", _DUMPS],
                      ["diagnose", path_of("failing.h5")],
                      ["export", path_of("steps.h5"), "--format=chrome-trace"],
                      ["compare", path_of("passing.h5"), "--", path_of("failing.h5")],
                      ["show", path_of("missing.h5")]):
            found = run(*words)
            self.assertEqual(found, run(*words, program=_FULL), words)
            self.assertTrue(found[1] or found[0] == 2, words)

    def test_report_is_drawn_by_the_python_of_the_command(self):
        pages = []
        for program, words in ((_FULL, []), (sys.executable, [
                "-c", "import lockstep_tool; lockstep_tool.main()"])):
            page = path_of("page.html")
            self.assertEqual(run(*words, "report", path_of("failing.h5"), path_of("passing.h5"),
                                 "--output", page, program=program, PYTHONPATH=_ROOT), (0, "", ""))
            with open(page, encoding="utf-8") as file:
                pages.append(file.read())
            os.unlink(page)
        self.assertEqual(*pages)
        self.assertEqual(run("report", path_of("passing.h5"), "--output", page,
                             LOCKSTEP_PYTHON="/no")[0],
                         4)

    def test_what_starts_programs_is_refused(self):
        lists = [re.findall(r"^  ([a-z-]+)  +\S", run("--help", program=program)[1],
                            re.MULTILINE) for program in (_PROGRAM, _FULL)]
        missing = [name for name in lists[1] if name not in lists[0]]
        self.assertLessEqual({"stress", "trace-ddp", "watch"}, set(missing))
        self.assertLessEqual({"diagnose", "show", "compare", "trend", "report", "export", "doctor",
                              "buckets", "sampler", "score"}, set(lists[0]))
        for name in missing:
            code, out, err = run(name)
            self.assertEqual((code, out, err.count("\n")), (4, "", 1))
            self.assertIn(f"'{name}' starts or watches programs, ", err)


class CommandTest(unittest.TestCase):
    def test_what_cannot_be_made_is_one_line(self):
        for words, code, said in ((["--output-folder=/proc/no", "--built=."], 4, "/proc/no"),
                                  (["--output-folder=x", "--built=/no"], 4,
                                   "/no/cli/lockstep_portable: "),
                                  ([], 2, "--output-folder")):
            done = subprocess.run([sys.executable, "scripts/packaging/wheel.py", *words],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(said, done.stderr.splitlines()[-1])

    def test_a_program_of_mpi_is_refused(self):
        refusal = "needs lib(mpi|gloo).*, which no wheel holds"
        with self.assertRaisesRegex(wheel.CannotPackage, refusal):
            wheel.libraries_of(_FULL)


if __name__ == "__main__":
    subprocess.run(["results/example_runs", _DIRECTORY], check=True)
    unittest.main()
