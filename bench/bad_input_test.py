#!/usr/bin/python3
"""Bad input gets one line: the input, the reason, the remedy; and the documented exit code."""
import concurrent.futures
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch

BENCH = "bench/bench_allreduce"
LOCKSTEP = "cli/lockstep"

# (arguments, ranks, exit code, words that the line must contain)
ROWS = [
    (["--backend=smoke-signals"], 2, 2, ["smoke-signals", "mpi"]),
    (["--backend=nccl"], 2, None, ["nccl"]),
    (["-b", "1M", "-e", "8"], 2, 2, ["-b", "-e"]),
    (["-b", "0"], 2, 2, ["-b"]),
    (["-b", "-8"], 2, 2, ["-b"]),
    (["-b", "8Q"], 2, 2, ["-b", "8Q"]),
    (["-e", "nothing"], 2, 2, ["-e", "nothing"]),
    (["-e", "10T", "-b", "10T"], 2, 4, ["TiB", "smaller"]),
    (["-i", "0"], 2, 2, ["-i"]),
    (["-i", "4", "-e", "1G"], 2, 2, ["cases"]),
    (["-f", "1"], 2, 2, ["-f"]),
    (["-f", "two"], 2, 2, ["-f", "two"]),
    (["-f", "1.0000000000000002"], 2, 2, ["-f 1.0000000000000002", "larger"]),
    (["-i", "1K", "-f", "3"], 2, 2, ["-i 1K", "-f 3", "leave one out"]),
    (["-b", "9007199254740992", "-e", "9007199254740996", "-i", "1"], 2, 4, ["TiB", "smaller"]),
    (["-n", "0"], 2, 2, ["-n"]),
    (["-n", "-5"], 2, 2, ["-n"]),
    (["-w", "many"], 2, 2, ["-w", "many"]),
    (["-d", "f12"], 2, 2, ["f12", "f16"]),
    (["-o", "average"], 2, 2, ["average", "sum"]),
    (["-r", "7"], 2, 2, ["--root", "no root"]),
    (["-z", "maybe"], 2, 2, ["-z", "maybe"]),
    (["-c", "perhaps"], 2, 2, ["-c", "perhaps"]),
    (["-T", "soon"], 2, 2, ["-T", "soon"]),
    (["-T", "0"], 2, 2, ["-T"]),
    (["--precision", "0"], 2, 2, ["--precision"]),
    (["--precision", "5"], 2, 2, ["--precision"]),
    (["--time-budget", "0"], 2, 2, ["--time-budget"]),
    (["--placement", "upside-down"], 2, 2, ["--placement", "upside-down"]),
    (["--format", "xml"], 2, 2, ["--format", "xml", "csv"]),
    (["--format=csv", "--wide"], 2, 2, ["--wide", "--format=csv"]),
    (["--model", "resnet51"], 2, 2, ["resnet51", "resnet50"]),
    (["--model", "{broken_manifest}"], 2, 2, ["broken.json"]),
    (["--model", "/does/not/exist.json"], 2, None, ["/does/not/exist.json"]),
    (["--model", "resnet50,resnet50"], 2, 2, ["resnet50", "twice"]),
    (["--model", "resnet50", "--bucket-cap-mb", "-1"], 2, 2, ["--bucket-cap-mb"]),
    (["--no-such-option"], 2, 2, ["--no-such-option", "--help"]),
    (["--benchmark_no_such_flag=1"], 2, 2, ["benchmark_no_such_flag"]),
    (["--benchmark_filter=nothing-like-this"], 2, 2, ["nothing-like-this"]),
    (["--output", "/proc/nowhere/run.h5"], 2, 4, ["/proc/nowhere"]),
    (["--output", "/"], 2, None, ["/"]),
    (["--benchmark_out=/proc/nowhere/run.json"], 2, 4, ["--benchmark_out", "/proc/nowhere"]),
    ([], 1, 2, ["mpirun -np 2"]),
]

# Likewise of bench_ddp_step, on two ranks.
STEP_ROWS = [
    ([], 2, ["--model"]),
    (["--model=resnet51"], 2, ["resnet51", "resnet50"]),
    (["--model=resnet50,resnet50"], 2, ["resnet50", "twice"]),
    (["--model=resnet50", "--comm-hook=zip"], 2, ["zip", "fp16"]),
    (["--model=resnet50", "--bucket-cap-mb=-1"], 2, ["--bucket-cap-mb"]),
    (["--model=resnet50", "--accumulate=0"], 2, ["--accumulate 0"]),
    (["--model=resnet50", "--compute-ms=soon"], 2, ["--compute-ms", "soon"]),
    (["--model=resnet50", "--compute=matmul"], 2, ["--compute=matmul", "--compute-ms"]),
    (["--model=resnet50", "--compute=gemm"], 2, ["--compute", "gemm", "memory or matmul"]),
    (["--model=resnet50", "--broadcast-buffers=2"], 2, ["--broadcast-buffers", "2"]),
    (["--model=resnet50", "--first-iteration", "--static-graph", "--accumulate=2"], 2,
     ["--first-iteration", "no_sync"]),
]


def our_lines(launch):
    """What a user reads besides mpirun's own remarks about exit codes."""
    skip = ("-----", "Primary job", "mpirun detected", "a non-zero", "thus causing", "Process name",
            "  Process name", "  Exit code", "Per user-direction", "mpirun has exited")
    lines = [line for line in launch.err.splitlines() if line.strip()]
    return [line for line in lines if not line.strip().startswith(tuple(s.strip() for s in skip))
            and "terminated normally" not in line and "job to be terminated" not in line]


def together(rows):
    """The launches of (binary, arguments, ranks), some at a time: they mostly wait for mpirun."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(
            lambda row: Launch(row[0], row[1], ranks=row[2]).finish(), rows))


class BadInputTest(unittest.TestCase):
    def test_benchmark(self):
        broken = os.path.join(os.environ["TEST_TMPDIR"], "broken.json")
        with open(broken, "w") as file:
            file.write('{"name": "broken", "params": [')
        given = [[a.replace("{broken_manifest}", broken) for a in row[0]] for row in ROWS]
        launches = together([(BENCH, words, row[1]) for words, row in zip(given, ROWS)])
        for launch, arguments, (_, ranks, code, words) in zip(launches, given, ROWS):
            with self.subTest(arguments=arguments, ranks=ranks):
                lines = our_lines(launch)
                self.assertEqual(len(lines), 1, launch.err)
                self.assertTrue(lines[0].startswith("bench_allreduce: "), lines[0])
                for word in words:
                    self.assertIn(word, lines[0])
                self.assertIn(launch.code, [2, 4] if code is None else [code], lines[0])
                self.assertEqual(launch.out, "")

    def test_step(self):
        launches = together([("bench/bench_ddp_step", row[0], 2) for row in STEP_ROWS])
        for launch, (arguments, code, words) in zip(launches, STEP_ROWS):
            with self.subTest(arguments=arguments):
                lines = our_lines(launch)
                self.assertEqual(len(lines), 1, launch.err)
                self.assertTrue(lines[0].startswith("bench_ddp_step: "), lines[0])
                for word in words:
                    self.assertIn(word, lines[0])
                self.assertEqual(launch.code, code, lines[0])

    def test_full_disk(self):
        """The table is printed although the file could not be written, and the code says so."""
        launch = Launch(BENCH, ["-b", "8", "-e", "8", "-n", "5", "--output", "/dev/full"]).finish()
        self.assertIn(launch.code, [2, 4], launch.err)
        self.assertEqual(len(our_lines(launch)), 1, launch.err)

    @unittest.skipIf("TSAN_OPTIONS" in os.environ, "the runtime needs a larger file")
    def test_file_size_limit(self):
        """Memory that is shared is a file to the kernel, and its signal would end us in silence."""
        launch = Launch("bash", ["-c", 'ulimit -f 300; exec "$@"', "limited", BENCH,
                                 "--backend=gloo", "-b", "8", "-e", "8", "-n", "5"]).finish()
        lines = our_lines(launch)
        self.assertEqual((launch.code, len(lines)), (4, 1), launch.err)
        self.assertIn("raise the file size limit (ulimit -f)", lines[0])

    def test_show(self):
        folder = os.environ["TEST_TMPDIR"]
        text = os.path.join(folder, "text.h5")
        with open(text, "w") as file:
            file.write("not a result file\n" * 100)
        empty = os.path.join(folder, "empty.h5")
        open(empty, "w").close()
        launch = Launch(BENCH, ["-b", "8", "-e", "64", "-n", "5"]).finish()
        self.assertEqual(launch.code, 0, launch.err)
        with open(launch.path, "rb") as file:
            whole = file.read()
        cut = os.path.join(folder, "cut.h5")
        with open(cut, "wb") as file:
            file.write(whole[: len(whole) // 2])
        for path in [text, empty, cut, os.path.join(folder, "missing.h5")]:
            shown = subprocess.run([LOCKSTEP, "show", path], capture_output=True, text=True)
            with self.subTest(path=path):
                self.assertEqual(shown.returncode, 2, shown.stderr)
                self.assertEqual(len(shown.stderr.splitlines()), 1, shown.stderr)
                self.assertIn(path, shown.stderr)


if __name__ == "__main__":
    unittest.main()
