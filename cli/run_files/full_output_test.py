#!/usr/bin/python3
"""Standard output that takes nothing (a full disk): one line, and the exit code of the environment,
of every subcommand, whether it prints a line or a megabyte. What is no file is never replaced."""
import os
import stat
import subprocess
import tempfile
import unittest

LOCKSTEP = "cli/lockstep"
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
FAILING = os.path.join(FOLDER, "failing.h5")
TRIED = os.path.join(FOLDER, "tried.h5")
AGAIN = os.path.join(FOLDER, "again.h5")
COMMANDS = [
    ["--help"], ["--version"], ["export", "--help"], ["show", FAILING], ["show", TRIED],
    ["diagnose", TRIED], ["diagnose", "--format=jsonl", TRIED], ["score", TRIED],
    ["compare", TRIED, "--candidate", AGAIN], ["trend", FAILING, FAILING],
    ["buckets", "--model=resnet50"], ["buckets", "--model=bert_base", "--format=jsonl"],
    ["sampler", "--samples=9", "--ranks=2", "--rank=0"],
    ["sampler", "--samples=99999", "--ranks=2", "--rank=0"],
    ["trace-ddp", "datasets/testdata/programs/join.toml"],
] + [["export", path, "--format=" + name] for path in (FAILING, TRIED)
     for name in ("chrome-trace", "prometheus", "openmetrics", "junit", "jsonl", "csv", "gbench")]


STRESS = [["--help"], ["--list"], ["--list-faults"],
          ["--backend=sim", "--ranks=2", "--scenario=mismatch/*",
           "--output=" + os.path.join(FOLDER, "unseen.h5")]]
FUZZERS = [("lockstep-fuzz", ["cli/fuzz/fuzz", word]) for word in ("--trials=3", "--help")]
SCRIPTS = [["nightly", "--help"], ["matrix", "--help"], ["scoreboard", "--help"],
           ["testbed", "--help"]]


def into_full(words):
    with open("/dev/full", "wb") as full:
        return subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)


class FullOutputTest(unittest.TestCase):
    def test_of_stress(self):
        for command in STRESS:
            done = into_full(["stress/stress", *command])
            self.assertEqual(done.returncode, 4, (command, done.stderr))
            self.assertIn("lockstep-stress: cannot write to standard output; free space there or "
                          "redirect it\n", done.stderr, command)
        self.assertTrue(os.path.exists(os.path.join(FOLDER, "unseen.h5")))

    def test_of_fuzzers(self):
        for name, command in FUZZERS:
            done = into_full(command)
            self.assertEqual((done.returncode, done.stderr),
                             (4, f"{name}: cannot write to standard output; free space there or "
                                 "redirect it\n"), command)

    def test_of_a_benchmark(self):
        done = into_full(["bench/bench_allgather", "--help"])
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("bench_allgather: cannot write to standard output", done.stderr)

    def test_of_programs_that_lockstep_becomes(self):
        for command in SCRIPTS:
            done = into_full([LOCKSTEP, *command])
            self.assertEqual((done.returncode, done.stderr),
                             (4, f"lockstep {command[0]}: standard output: No space left on "
                                 "device; free space there, or choose another place\n"))

    def test_a_folder_that_is_a_file(self):
        done = subprocess.run([LOCKSTEP, "scoreboard", "--output-folder=" + FAILING],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (4, 1), done.stderr)
        self.assertIn("Not a directory", done.stderr)

    def test_a_pipe_is_not_replaced(self):
        pipe = os.path.join(FOLDER, "pipe")
        os.mkfifo(pipe)
        for command in (["report", FAILING], ["export", "--format=csv", FAILING]):
            done = subprocess.run([LOCKSTEP, *command, "--output=" + pipe], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertTrue(stat.S_ISFIFO(os.lstat(pipe).st_mode), command)

    def test_a_link_stays(self):
        for command in (["report", FAILING], ["export", "--format=csv", FAILING]):
            link, behind = (os.path.join(FOLDER, command[0] + end) for end in (".link", ".txt"))
            os.symlink(behind, link)
            with open(behind, "w", encoding="utf-8"):
                pass
            subprocess.run([LOCKSTEP, *command, "--output=" + link], check=True)
            self.assertTrue(os.path.islink(link), command)
            self.assertGreater(os.path.getsize(behind), 100)

    def test_it_is_one_line_and_exit_code_4(self):
        for command in COMMANDS:
            with open("/dev/full", "wb") as full:
                done = subprocess.run([LOCKSTEP, *command], stdout=full, stderr=subprocess.PIPE,
                                      text=True)
            self.assertEqual((done.returncode, done.stderr),
                             (4, "lockstep: cannot write to standard output; free space there or "
                                 "redirect it\n"), command)


if __name__ == "__main__":
    subprocess.run(["results/example_runs", FOLDER], check=True)
    for path in (TRIED, AGAIN):
        subprocess.run(["stress/stress", "--backend=sim", "--ranks=2", "mismatch/*",
                        "--output=" + path], check=True, stdout=subprocess.DEVNULL)
    unittest.main()
