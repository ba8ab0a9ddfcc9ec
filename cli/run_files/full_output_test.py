#!/usr/bin/python3
"""Standard output that takes nothing (a full disk): one line, and the exit code of the environment,
of every subcommand, whether it prints a line or a megabyte."""
import os
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


class FullOutputTest(unittest.TestCase):
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
