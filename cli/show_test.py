#!/usr/bin/env python3
"""`lockstep show` from the outside: what it prints, where, and its exit codes."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

_LOCKSTEP = "cli/lockstep"
_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def path_of(name):
    return os.path.join(_DIRECTORY, name)


def show(*arguments):
    done = subprocess.run([_LOCKSTEP, "show"] + list(arguments), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


class ShowTest(unittest.TestCase):
    def test_the_table_begins_with_the_verdict(self):
        code, out, err = show(path_of("failing.h5"))
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("FAIL: rank 1 was killed by signal 9"), out)
        self.assertIn("Look who sent it", out)

    def test_environment_and_history(self):
        code, out, _ = show(path_of("failing.h5"), "--environment", "--history", "--events=1")
        self.assertEqual(code, 0)
        self.assertIn("cpu_model: Some CPU", out)
        self.assertIn("\n  lockstep: 1.2.3 (1a2b3c4, modified)\n", out)
        self.assertIn("2 events, the newest 1", out)

    def test_nccl_tests(self):
        code, out, _ = show(path_of("passing.h5"), "--format=nccl-tests")
        self.assertEqual(code, 0)
        rows = [line.split() for line in out.split("\n") if line and line[0] != "#"]
        self.assertEqual(rows[0][:5], ["8", "2", "float", "sum", "-1"])
        self.assertIn("# Out of bounds values : 0 OK", out)

    def test_json_lines(self):
        code, out, _ = show(path_of("passing.h5"), path_of("corrupt.h5"), "--format=jsonl")
        self.assertEqual(code, 0)
        records = [json.loads(line)["record"] for line in out.splitlines()]
        run = json.loads(out.splitlines()[-1])
        self.assertEqual(("1.2.3", "1a2b3c4", True), tuple(
            run["lockstep_" + name] for name in ("version", "commit", "modified")))
        self.assertEqual(records, ["case"] * 5 + ["run", "case", "run"])

    def test_few_columns_or_all(self):
        few, wide = show(path_of("passing.h5"))[1], show("--wide", path_of("passing.h5"))[1]
        heads = [next(line.split() for line in out.splitlines() if line.startswith("case "))
                 for out in (few, wide)]
        self.assertEqual(heads[0], ["case", "bytes", "median", "+-", "busbw", "limit", "measured",
                                    "outcome"])
        self.assertTrue({"type", "p99", "algbw", "wrong"} < set(heads[1]), heads[1])
        self.assertEqual(show("--format=csv", path_of("passing.h5"))[1].count("\n"), 6)

    def test_a_directory_is_listed_and_bad_files_are_named(self):
        folder = path_of("listed")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        for name in ("passing.h5", "failing.h5"):
            shutil.copy(path_of(name), folder)
        for name in ("bad.h5", ".passing.h5.tmp-1", "notes.txt"):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("no run\n")
        code, out, err = show(folder)
        self.assertEqual(code, 0)
        self.assertEqual([line.split()[0] for line in out.splitlines()],
                         ["failing.h5", "passing.h5"])
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("bad.h5: not an HDF5 file of Lockstep", err)

    def test_what_cannot_be_read_is_one_line_and_exit_code_2(self):
        with open(path_of("passing.h5"), "rb") as file:
            whole = file.read()
        for name, content in (("truncated.h5", whole[:-1]), ("empty.h5", b""),
                              ("text.h5", b"a,b\n")):
            with open(path_of(name), "wb") as file:
                file.write(content)
        os.makedirs(path_of("nothing"), exist_ok=True)
        for arguments in (["missing.h5"], ["truncated.h5"], ["empty.h5"], ["text.h5"],
                          ["nothing"]):
            code, out, err = show(*[path_of(name) for name in arguments])
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), arguments)
            self.assertIn(arguments[0], err)
        for arguments in ([], ["--format=xml", path_of("passing.h5")],
                          ["--format=jsonl", "--history", path_of("passing.h5")],
                          ["--format=csv", "--wide", path_of("passing.h5")],
                          ["--events=-1", path_of("passing.h5")]):
            code, out, err = show(*arguments)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), arguments)

    def test_one_bad_file_of_several_hides_no_other(self):
        code, out, err = show(path_of("missing.h5"), path_of("passing.h5"))
        self.assertEqual(code, 2)
        self.assertIn("PASS: 5 cases", out)
        self.assertIn("missing.h5: cannot be opened", err)

    def test_a_full_output_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([_LOCKSTEP, "show", path_of("passing.h5")], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 4)


if __name__ == "__main__":
    subprocess.run(["results/example_runs", _DIRECTORY], check=True)
    unittest.main()
