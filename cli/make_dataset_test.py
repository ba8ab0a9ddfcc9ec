#!/usr/bin/python3
"""`lockstep make-dataset` as a user sees it: the file through h5py, and bad input."""

import os
import subprocess
import tempfile
import unittest

import h5py

LOCKSTEP = os.path.abspath("cli/lockstep")

# Arguments -> what the error must say.
BAD_INPUT = [
    ("--samples=1", "FILE is required"),
    ("x.h5", "--samples is required"),
    ("x.h5 --samples=0", "--samples: 0 samples; give a number from 1 to 2^40"),
    ("x.h5 --samples=1 --kind=sounds", "--kind: 'sounds'"),
    ("x.h5 --samples=1 --min-sample=2K --max-sample=1K", "--max-sample: 1 KiB"),
    ("x.h5 --samples=1 --min-sample=1", "--min-sample: 1 B"),
    ("x.h5 --samples=1 --max-sample=big", "--max-sample: 'big'"),
    ("/ --samples=1", "'/' is no file name"),
]


def run(arguments, folder):
    return subprocess.run([LOCKSTEP, "make-dataset"] + arguments.split(), cwd=folder, text=True,
                          capture_output=True, check=False)


class MakeDatasetTest(unittest.TestCase):
    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("mix.h5 --samples=200 --min-sample=1K --max-sample=16K --seed=3", folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith("mix.h5: 200 samples (mixed), "), done.stdout)
            self.assertEqual(os.listdir(folder), ["mix.h5"])
            with h5py.File(f"{folder}/mix.h5") as file:
                self.assertEqual(file.attrs["format"], b"Lockstep dataset")
                self.assertEqual((file.attrs["samples"], file.attrs["seed"]), (200, 3))
                sizes = file["offset"][1:] - file["offset"][:-1]
                self.assertEqual(file["data"].shape[0], file["offset"][-1])
                self.assertEqual(file["checksum"].shape, (200,))
                self.assertTrue(64 <= sizes.min() < 1024 < sizes.max() <= 16384, sizes)

    def test_the_seed_decides(self):
        with tempfile.TemporaryDirectory() as folder:
            sums = {}
            for name, seed in (("a", 1), ("b", 1), ("c", 2)):
                run(f"{name}.h5 --samples=20 --kind=tokens --seed={seed}", folder)
                with h5py.File(f"{folder}/{name}.h5") as file:
                    sums[name] = file["checksum"][:].tolist()
                    self.assertLess(file["data"][:].view("<u4").max(), 50257)
            self.assertEqual(sums["a"], sums["b"])
            self.assertNotEqual(sums["a"], sums["c"])

    def test_bad_input(self):
        with tempfile.TemporaryDirectory() as folder:
            for arguments, says in BAD_INPUT:
                with self.subTest(arguments=arguments):
                    done = run(arguments, folder)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                    self.assertIn(says, done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_what_does_not_fit_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("x.h5 --samples=1000000 --min-sample=1G --max-sample=1G --kind=images",
                       folder)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertEqual(os.listdir(folder), [])

    @unittest.skipIf("TSAN_OPTIONS" in os.environ, "the runtime needs a larger file")
    def test_a_limit_of_file_sizes_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            limited = subprocess.run(
                ["bash", "-c", f"ulimit -f 100; '{LOCKSTEP}' make-dataset x.h5 --samples=100"],
                cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(limited.returncode, 4, limited.stderr)
            self.assertIn("x.h5: cannot be written", limited.stderr)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
