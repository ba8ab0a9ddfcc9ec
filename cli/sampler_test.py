#!/usr/bin/env python3
"""`lockstep sampler` as a user sees it: PyTorch's recorded indices, every format, bad input."""

import json
import subprocess
import unittest

LOCKSTEP = "cli/lockstep"
GOLDEN = "datasets/sampler/testdata/golden.txt"

# Arguments -> what the error must say.
BAD_INPUT = [
    ("--ranks=2 --rank=0", "--samples is required"),
    ("--samples=10 --ranks=2 --rank=2", "--rank: 2 is no rank of 2; give a number from 0 to 1"),
    ("--samples=10 --ranks=0 --rank=0", "--ranks: 0 ranks; give a number from 1 to 2^31"),
    ("--samples=-1 --ranks=1 --rank=0", "--samples: '-1'"),
    ("--samples=ten --ranks=1 --rank=0", "--samples"),
    ("--samples=10 --ranks=1 --rank=0 --seed=18446744073709551616", "is no seed of PyTorch"),
    ("--samples=10 --ranks=1 --rank=0 --seed=x", "--seed: 'x'"),
    ("--samples=10 --ranks=1 --rank=0 --torch=3", "--torch: '3'"),
    ("--samples=10 --ranks=1 --rank=0 --format=xml", "--format"),
]


def run(arguments, **keywords):
    keywords = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
                "timeout": 30, **keywords}
    return subprocess.run([LOCKSTEP, "sampler"] + arguments.split(), check=False, **keywords)


class SamplerTest(unittest.TestCase):
    def test_recorded_lines(self):
        lines = 0
        with open(GOLDEN, encoding="utf-8") as file:
            for line in file:
                if not line.startswith("ds "):
                    continue
                case, result = line.strip().split(" => ")
                n, world, rank, seed, epoch, shuffle, drop_last = case.split()[1:]
                arguments = (f"--samples={n} --ranks={world} --rank={rank} --seed={seed} "
                             f"--epoch={epoch} --format=fnv")
                arguments += " --drop-last" if drop_last == "1" else ""
                arguments += "" if shuffle == "1" else " --no-shuffle"
                with self.subTest(line=line):
                    self.assertEqual(run(arguments).stdout, result + "\n")
                lines += 1
        self.assertEqual(lines, 20)

    def test_formats(self):
        case = "--samples=10 --ranks=3 --rank=2"
        self.assertEqual(run(case).stdout, "7\n9\n6\n1\n")
        found = json.loads(run(case + " --seed=-0 --format=json").stdout)
        self.assertEqual(found["indices"], [7, 9, 6, 1])
        version = subprocess.run([LOCKSTEP, "--version"], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout
        self.assertEqual(version, f"lockstep {found['lockstep']}\n")
        self.assertEqual((found["n"], found["world"], found["rank"], found["count"]), (10, 3, 2, 4))
        self.assertEqual(run("--samples=0 --ranks=3 --rank=2").stdout, "")
        self.assertEqual(run("--samples=3 --ranks=8 --rank=1 --drop-last").stdout, "")
        self.assertEqual(run("--samples=7 --ranks=3 --rank=1 --no-shuffle").stdout, "1\n4\n0\n")

    def test_output_streams(self):
        arguments = "--samples=4000000000000 --ranks=2 --rank=1 --no-shuffle"
        with subprocess.Popen([LOCKSTEP, "sampler"] + arguments.split(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            self.assertEqual([process.stdout.readline() for _ in range(3)], ["1\n", "3\n", "5\n"])
            process.kill()

    def test_bad_input(self):
        for arguments, says in BAD_INPUT:
            with self.subTest(arguments=arguments):
                done = run(arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(says, done.stderr)

    def test_what_does_not_fit_is_refused(self):
        done = run("--samples=4000000000000000 --ranks=2 --rank=0")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("do not fit", done.stderr)


if __name__ == "__main__":
    unittest.main()
