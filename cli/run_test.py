#!/usr/bin/env python3
"""`lockstep run` from the outside: launches of one command, of two, and commands that are wrong."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

_LOCKSTEP = "cli/lockstep"
_MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
           "-np", "2"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
_BENCH = ["bench/bench_allreduce", "-b", "8", "-e", "16", "-f", "2", "-n", "20", "--no-progress"]


def run(*words):
    done = subprocess.run([_LOCKSTEP, "run", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def launches_in(err):
    """["1 of 2", …]: a line tells of each launch when it begins; others stay as they are."""
    return [re.sub(r"^lockstep run: launch (\d+ of \d+), in .*$", r"\1", line)
            for line in err.splitlines()]


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "launches")

    def files(self):
        found = glob.glob(os.path.join(self.folder, "**", "*.h5"), recursive=True)
        return sorted(os.path.relpath(path, self.folder) for path in found)

    def test_one_command_has_a_row_a_case(self):
        code, out, err = run("--launches=2", "--output-folder", self.folder, "--", *_MPIRUN,
                             *_BENCH)
        self.assertEqual((code, launches_in(err)), (0, ["1 of 2", "2 of 2"]), out)
        self.assertEqual(self.files(), ["001.h5", "002.h5"])
        lines = out.splitlines()
        self.assertRegex(lines[0], "^PASS: 2 launches of bench_allreduce; the median of each case")
        self.assertEqual(lines[2].split(),
                         ["case", "median", "+-%", "lowest", "highest", "launches", "outcome"])
        self.assertEqual([line.split()[-2:] for line in lines[3:5]], [["2", "pass"]] * 2)
        self.assertNotIn(" - ", lines[3])
        # They lie there now, and are told again without a launch.
        code, again, err = run("--tabulate", self.folder)
        self.assertEqual((code, again, err), (0, out[:out.index("launches: " + self.folder)], ""))
        for rank in (0, 1):
            shutil.copy(os.path.join(self.folder, "001.h5"),
                        os.path.join(self.folder, "001-rank%d-partial.h5" % rank))
        self.assertEqual(run("--tabulate", self.folder), (0, again, ""), "what ranks saved of 001")
        os.remove(os.path.join(self.folder, "001.h5"))
        self.assertEqual(run("--tabulate", self.folder)[1].splitlines()[3].split()[-2:],
                         ["1/2", "pass"], "it counts once without its file")
        os.rename(os.path.join(self.folder, "001-rank0-partial.h5"),
                  os.path.join(self.folder, "001.h5"))
        os.rename(os.path.join(self.folder, "002.h5"),
                  os.path.join(self.folder, "001-rank1-partial.h5"))
        code, again, _ = run("--tabulate", self.folder)
        self.assertEqual((code, again.splitlines()[3].split()[-2:]), (0, ["1", "pass"]),
                         "001 was launched again, and counts once\n" + again)
        self.assertRegex(again, r"(?m)^not read: .*001-rank1-partial\.h5: .*launched again")
        os.rename(os.path.join(self.folder, "001-rank1-partial.h5"),
                  os.path.join(self.folder, "002.h5"))
        shutil.copy(os.path.join(self.folder, "001.h5"), os.path.join(self.folder, "copy.h5"))
        code, again, _ = run("--tabulate", self.folder)
        self.assertEqual(code, 0, "a copy is no other launch")
        self.assertRegex(again, r"(?m)^not read: .*copy\.h5: run [0-9a-f]+ was read already$")
        with open(os.path.join(self.folder, "003.h5"), "w", encoding="utf-8") as file:
            file.write("it may have failed\n")
        code, again, _ = run("--tabulate", self.folder)
        self.assertEqual(code, 3)
        self.assertIn("INCONCLUSIVE: 2 of 3 launches of bench_allreduce left a file that can be "
                      "read\n", again)
        self.assertRegex(again, r"(?m)^not read: .*003\.h5")

    def test_two_commands_are_launched_in_turn_and_compared(self):
        code, out, err = run("--launches=2", "--output-folder", self.folder, "--", *_MPIRUN,
                             *_BENCH, "--",
                             *_MPIRUN, *_BENCH, "--backend=gloo")
        self.assertEqual((code, launches_in(err)), (3, ["1 of 2", "1 of 2", "2 of 2", "2 of 2"]),
                         "too few launches decide nothing\n" + out)
        self.assertEqual(self.files(), ["base/001.h5", "base/002.h5", "candidate/001.h5",
                                        "candidate/002.h5"])
        self.assertIn("ambiguous", out)
        order = sorted(self.files(),
                       key=lambda name: os.stat(os.path.join(self.folder, name)).st_mtime_ns)
        self.assertEqual([name.split("/")[0] for name in order],
                         ["base", "candidate", "candidate", "base"])

    def test_a_launch_without_a_result_ends_it_at_once(self):
        code, out, err = run("--launches=3", "--output-folder", self.folder, "--", *_MPIRUN,
                             *_BENCH,
                             "--backend=none")
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^lockstep run: launch 1 of 3, in .*\n"
                              r"lockstep: launch 1 left no result file \(exit code 2\): .*\n$")
        self.assertEqual(len(glob.glob(self.folder + "/*.log")), 1)

    def test_what_is_typed_wrongly_is_named(self):
        for words, said in (
                (["--output-folder=" + self.folder, "--", "true", "--output=x"],
                 "--output=x in the"),
                (["--output-folder=" + self.folder, "--", "a", "--", "b", "--", "c"], "3 commands"),
                (["--output-folder=" + self.folder, "--", "a", "--"], "an empty command"),
                (["--launches=0", "--", "true"], "--launches"),
                ([], "no command"),
                (["--tabulate=" + self.folder], "no such file"),
                (["--tabulate=.", "--", "true"], "starts nothing")):
            code, out, err = run(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(said, err)
            self.assertEqual(err.count("\n"), 1, err)
        os.makedirs(self.folder)
        with open(os.path.join(self.folder, "old.h5"), "w", encoding="utf-8"):
            pass
        code, _, err = run("--output-folder", self.folder, "--", "true")
        self.assertEqual(code, 2)
        self.assertIn("holds files", err)


if __name__ == "__main__":
    unittest.main()
