#!/usr/bin/python3
"""Sharded loading on two ranks: a rank that decodes slowly is seen, and what it costs."""
import os
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch, text

BENCH = "bench/bench_sharding"


def measure(*arguments, **keywords):
    if not any(argument.startswith("--batch") for argument in arguments):
        arguments = ("--batch=8", *arguments)
    return Launch(BENCH, ["--samples=128", *arguments], **keywords).finish()


class ShardingTest(unittest.TestCase):
    def test_a_slow_decoder_is_seen(self):
        """What it costs the others is a matter of scripts/benchmarks."""
        launch = measure("--slow-down=20", "--slow-rank=1", "--decode-passes=8", "-n", "24",
                         "--workers=0")
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertEqual(launch.leftovers(), [])
        with h5py.File(launch.path) as file:
            names = [text(row["name"]) for row in file["summary"][:]]
            self.assertEqual(names, ["sharded_load/batch:8", "sharded_load/batch:8/slow_down:20"])
            slow = file["cases/1/parts"]
            # The shortest load of each, without a prefetch: rank 1's is never shorter than twenty
            # times the work. That rank 0 is held up as long in every one of 24 steps, each with a
            # chance of 1 in 2 beside eight programs a processor, has a chance below 1e-6.
            load = slow["load_ns"][:].min(axis=0)
            self.assertGreater(load[1], load[0])
            step = (file["cases/1/samples/exit_ns"][:] - file["cases/1/samples/entry_ns"][:])
            # Median: a rank may lose its processor between two stamps, but not in half of 24 steps,
            # in gaps of microseconds (a chance of 1 in 100 at the very most: together below 1e-6).
            parts = numpy.median((slow["load_ns"][:] + slow["waited_ns"][:]) / step, axis=0)
            self.assertTrue(((parts > 0.95) & (parts < 1.01)).all(), parts)
            self.assertEqual(text(file["effects"][0]["option"]), "slow_down")
            # Visits are whole, also of a fixed count: a step alone would be the one that waits.
            self.assertEqual(numpy.unique(file["cases/1/samples/round"][:],
                                          return_counts=True)[1].tolist(), [8, 8, 8])
            # Eight samples in each of 24 steps, on both ranks.
            self.assertEqual(slow["samples"][:].sum(), 2 * 24 * 8)
            rate = 24 * 8 / (step[:, 1].sum() * 1e-9)
        table = launch.out[launch.out.index("Loading, rank by rank"):].splitlines()
        row = next(i for i, line in enumerate(table) if "slow_down:20" in line)
        # A line for the case, then one a rank.
        rank1 = table[row + 2].split()
        self.assertEqual(rank1[0], "1", table[row:])
        self.assertAlmostEqual(float(rank1[1]), rate, delta=0.51)  # the table has whole samples

    def test_every_way_of_sampling_delivers_the_samplers_samples(self):
        launch = measure("--set-epoch=0,1", "--drop-last=0,1", "--weighted=0,1", "-n", "12",
                         "--workers=1")
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        with h5py.File(launch.path) as file:
            self.assertEqual(len(file["summary"]), 8)
            for row in file["summary"][:]:
                # Twelve timed and five warm-up iterations of eight samples on both ranks.
                self.assertEqual(row["checked_elements"], 2 * 17 * 8, row["name"])
                self.assertEqual(row["wrong_elements"], 0)

    def test_bad_input_is_one_line(self):
        missing = os.path.join(os.environ["TEST_TMPDIR"], "missing.h5")
        for arguments, words in ((["--dataset=" + missing], ["missing.h5"]),
                                 (["--slow-rank=2"], ["--slow-rank 2"]),
                                 (["--slow-down=0.5"], ["--slow-down 0.5"]),
                                 (["--batch=100"], ["--batch 100"]),
                                 (["--weighted=maybe"], ["--weighted", "maybe"])):
            launch = measure(*arguments)
            self.assertEqual(launch.code, 2, launch.err)
            first = launch.err.splitlines()[0]
            for word in words:
                self.assertIn(word, first)


if __name__ == "__main__":
    unittest.main()
