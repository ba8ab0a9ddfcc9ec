#!/usr/bin/python3
"""Sharded loading on two ranks: a rank that decodes slowly is seen, and what it costs."""
import os
import sys
import unittest

import h5py

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch, text

BENCH = "bench/bench_sharding"


def measure(*arguments, **keywords):
    if not any(argument.startswith("--batch") for argument in arguments):
        arguments = ("--batch=8", *arguments)
    return Launch(BENCH, ["--samples=128", *arguments], **keywords).finish()


class ShardingTest(unittest.TestCase):
    def test_a_slow_decoder_is_seen_and_costs_the_other_rank_its_time(self):
        launch = measure("--slow-down=20", "--slow-rank=1", "--decode-passes=8", "-n", "12")
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertEqual(launch.leftovers(), [])
        with h5py.File(launch.path) as file:
            names = [text(row["name"]) for row in file["summary"][:]]
            self.assertEqual(names, ["sharded_load/batch:8", "sharded_load/batch:8/slow_down:20"])
            slow = file["cases/1/parts"]
            load, waited = slow["load_ns"][:].mean(axis=0), slow["waited_ns"][:].mean(axis=0)
            self.assertGreater(load[1], 1.5 * load[0])
            self.assertGreater(waited[0], waited[1])
            usual, step = (file[f"cases/{case}/samples/exit_ns"][:]
                           - file[f"cases/{case}/samples/entry_ns"][:] for case in (0, 1))
            # Of the whole: a rank may lose its processor between two stamps.
            parts = (slow["load_ns"][:] + slow["waited_ns"][:]).sum(axis=0) / step.sum(axis=0)
            self.assertTrue(((parts > 0.95) & (parts < 1.01)).all(), parts)
            self.assertGreater(step.sum(), 1.1 * usual.sum())
            self.assertEqual(text(file["effects"][0]["option"]), "slow_down")
            # Eight samples in each of 12 steps, on both ranks.
            self.assertEqual(slow["samples"][:].sum(), 2 * 12 * 8)
            rate = 12 * 8 / (step[:, 1].sum() * 1e-9)
        table = launch.out[launch.out.index("Loading, rank by rank"):].splitlines()
        row = next(i for i, line in enumerate(table) if "slow_down:20" in line)
        self.assertAlmostEqual(float(table[row + 1].split()[1]), rate, delta=1)

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
