#!/usr/bin/python3
"""What is in the packages, made of the programs that Bazel has built: programs under names that
clash with nobody's, their data, pages and completion, what they need, no path of this machine."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.path.insert(0, os.path.join(TREE, "scripts/packaging"))
# pylint: disable=wrong-import-position
import tree

# Without what leads a program to the files of this test instead of those of the package.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("RUNFILES", "TEST_", "JAVA_RUNFILES"))}
ENVIRONMENT |= {"PYTHONDONTWRITEBYTECODE": "1", "DPKG_DEB_COMPRESSOR_TYPE": "none"}
PROGRAMS = sorted([os.path.basename(path) for path in glob.glob("bench/bench_*")]
                  + ["lockstep", "lockstep-fuzz", "lockstep-stress"])


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False, env=ENVIRONMENT)


class Package:
    """The kind's package, made once and unpacked."""

    def __init__(self, kind):
        self.folder = tempfile.mkdtemp(prefix="a place with blanks ",
                                       dir=os.environ.get("TEST_TMPDIR"))
        done = said(os.path.join(TREE, "scripts/package"), kind, "--output-folder=" + self.folder,
                    "--built=" + os.getcwd())
        assert done.returncode == 0, done.stderr
        self.path = done.stdout.strip()
        self.prefix = os.path.join(self.folder, "unpacked")
        os.mkdir(self.prefix)
        unpack = {"deb": ["dpkg-deb", "--extract", self.path, self.prefix],
                  "tarball": ["tar", "-xf", self.path, "-C", self.prefix, "--strip-components=1"]}
        subprocess.run(unpack[kind], check=True)
        self.prefix += "/usr" if kind == "deb" else ""

    def close(self):
        shutil.rmtree(self.folder)

    def run(self, program, *words):
        return said(os.path.join(self.prefix, "bin", program), *words)


class Contents:
    """Of every kind. `package` is the class's own."""

    def test_programs(self):
        self.assertGreaterEqual(len(PROGRAMS), 9)
        self.assertEqual(sorted(os.listdir(os.path.join(self.package.prefix, "bin"))), PROGRAMS)
        for program in PROGRAMS:
            done = self.package.run(program, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), program)

    def test_every_subcommand_is_whole(self):
        """Those in Python run their own program for --help."""
        listed = self.package.run("lockstep", "--help").stdout
        commands = re.findall(r"^  ([a-z][a-z-]+) ", listed, re.MULTILINE)
        self.assertLessEqual({"nightly", "matrix", "scoreboard", "testbed"}, set(commands))
        for command in commands:
            done = self.package.run("lockstep", command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertIn("usage: lockstep " + command, done.stdout.replace("Usage", "usage"))

    def test_data(self):
        share = os.path.join(self.package.prefix, "share/lockstep")
        listed = self.package.run("lockstep-stress", "--list").stdout
        for path in glob.glob("stress/scenarios/*/*.toml", root_dir=TREE):
            self.assertIn(path[len("stress/scenarios/"):-len(".toml")], listed)
        for path in glob.glob("datasets/manifests/*.json", root_dir=TREE):
            self.assertTrue(os.path.exists(os.path.join(share, path)), path)
            name = os.path.basename(path)[:-len(".json")]
            done = self.package.run("lockstep", "buckets", "--model=" + name)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_pages_and_completion(self):
        share = os.path.join(self.package.prefix, "share")
        pages = {os.path.basename(path).split(".")[0]
                 for path in glob.glob(os.path.join(glob.escape(share), "man/man1/*"))}
        self.assertLessEqual(set(PROGRAMS) | {"lockstep-nightly", "lockstep-diagnose"}, pages)
        bash = os.path.join(share, "bash-completion/completions")
        self.assertEqual(sorted(os.listdir(bash)), PROGRAMS)
        self.assertTrue(glob.glob(os.path.join(glob.escape(share), "zsh/*/_lockstep")))

    def test_examples_name_what_is_installed(self):
        folder = os.path.join(self.package.prefix, "share/lockstep/examples")
        for name, text in (("lockstep-nightly.service", "exec %s/bin/lockstep nightly"),
                           ("nightly.sbatch", "LOCKSTEP_ROOT:-%s}"),
                           ("lockstep.modulefile", "set root %s\n")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                self.assertIn(text % self.installed_to, file.read())

    def test_examples_speak_of_the_mpi_of_the_programs(self):
        folder = os.path.join(self.package.prefix, "share/lockstep/examples")
        self.assertFalse(os.path.exists(os.path.join(folder, "mpich")))
        ours = tree.MPI[tree.mpi_of([os.path.realpath("cli/lockstep")])]
        for name in ("nightly.toml", "matrix.toml", "nightly.sbatch"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            self.assertEqual(ours == "MPICH", bool(re.search("mpiexec|MPIR_CVAR", text)), name)
            self.assertEqual(ours != "MPICH", bool(re.search("mpirun|OMPI_MCA", text)), name)

    def test_no_path_of_this_machine(self):
        paths = tree.files_of(self.package.prefix)
        self.assertGreater(len(paths), 200)
        for path in paths:
            with open(path, "rb") as file:
                content = file.read()
            for word in (TREE, "_bazel_", os.path.realpath(self.package.folder)):
                self.assertFalse(word.encode() in content, "%s: %s" % (path, word))


class DebTest(Contents, unittest.TestCase):
    installed_to = "/usr"

    @classmethod
    def setUpClass(cls):
        if shutil.which("dpkg-shlibdeps") is None:
            raise unittest.SkipTest("no dpkg-shlibdeps: apt-get install dpkg-dev")
        cls.package = Package("deb")

    @classmethod
    def tearDownClass(cls):
        cls.package.close()

    def field(self, name):
        return said("dpkg-deb", "--field", self.package.path, name).stdout.strip()

    def test_control(self):
        self.assertEqual(self.field("Version"), tree.version())
        self.assertIn(self.field("Package"), ("lockstep", "lockstep-mpich"))
        self.assertEqual(os.path.basename(self.package.path), "%s_%s_%s.deb" % (
            self.field("Package"), self.field("Version"), self.field("Architecture")))

    def test_what_it_needs(self):
        needed = {one.split()[0] for one in self.field("Depends").split(", ")}
        self.assertLessEqual({"libc6", "libstdc++6", "python3", "python3-jinja2"}, needed)
        self.assertTrue([one for one in needed if one.startswith("python3-h5py")])
        self.assertTrue({"libopenmpi3", "openmpi-bin"} <= needed or
                        {"libmpich12", "mpich"} <= needed, needed)
        self.assertFalse([one for one in needed if one.endswith("-dev") or "torch" in one])

    def test_nothing_that_others_have(self):
        for name in ("stress", "fuzz"):
            self.assertFalse(os.path.exists(os.path.join(self.package.prefix, "bin", name)))


class TarballTest(Contents, unittest.TestCase):
    installed_to = "/opt/lockstep"

    @classmethod
    def setUpClass(cls):
        if shutil.which("patchelf") is None:
            raise unittest.SkipTest("no patchelf: apt-get install patchelf")
        cls.package = Package("tarball")

    @classmethod
    def tearDownClass(cls):
        cls.package.close()

    def behind(self, name):
        return os.path.join(self.package.prefix, "libexec/lockstep/programs/bin", name)

    def test_programs_find_each_other(self):
        """`lockstep` looks for the others beside itself, which is behind."""
        self.assertEqual(sorted(os.listdir(self.behind(""))), PROGRAMS)
        for program in PROGRAMS:
            done = said(self.behind(program), "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), program)

    def test_libraries_come_along(self):
        """All but those of the base, of MPI, and what MPI brings."""
        for path in (self.behind("bench_allreduce"), self.behind("lockstep")):
            listed = dict(re.findall(r"^\s*(\S+) => (.*) \(", said("ldd", path).stdout,
                                     re.MULTILINE))
            for name in ("libfmt.so.9", "libhdf5_serial.so.103", "libdw.so.1"):
                self.assertEqual(os.path.realpath(listed[name]), os.path.realpath(
                    os.path.join(self.package.prefix, "lib/lockstep", name)))
            self.assertNotIn("not found", listed.values())
        brought = os.listdir(os.path.join(self.package.prefix, "lib/lockstep"))
        self.assertEqual([name for name in brought
                          if re.match(r"lib(mpi|mpich|c|stdc\+\+)\.", name)], [])

    def test_without_mpi_one_line_says_so(self):
        program = self.behind("bench_barrier")
        shutil.copy(program, program + ".whole")
        self.addCleanup(os.replace, program + ".whole", program)
        mpi = tree.mpi_of([program])
        subprocess.run(["patchelf", "--replace-needed", mpi, "libabsent.so.7", program], check=True)
        done = self.package.run("bench_barrier")
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertRegex(done.stderr, r"^bench_barrier: this machine lacks libabsent\.so\.7 - "
                                      r"install %s .*\n$" % tree.MPI[mpi])


class RefusalsTest(unittest.TestCase):
    """One line that says what is wrong and what helps."""

    def package(self, *words):
        done = said(os.path.join(TREE, "scripts/package"), *words)
        return done.returncode, done.stderr.strip().splitlines()[-1]

    def test_usage(self):
        self.assertEqual(self.package("rpm", "--output-folder=x")[0], 2)
        self.assertIn("choose from deb, tarball", self.package("rpm", "--output-folder=x")[1])
        self.assertEqual(self.package("deb")[0], 2)

    def test_programs_that_are_not_there(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            code, line = self.package("deb", "--output-folder=" + folder, "--built=" + folder)
        self.assertEqual(code, 4)
        self.assertRegex(line, "^package: deb: .*bench_allgather")


if __name__ == "__main__":
    unittest.main()
