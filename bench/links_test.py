#!/usr/bin/python3
"""bench_links: matrices of all backends, wrong data, a hang."""
import json
import os
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch
from bench.testing.links import BENCH, rows

# A count of exchanges: a time budget may be over before the call that is faulty.
COUNTED = ["--bytes=64K", "-n", "400", "-c", "full"]
SHIM = os.path.abspath("bench/peers/libfaulty_recv.so")


class LinksTest(unittest.TestCase):
    def faulty(self, kind, *arguments, call=50):
        return Launch(BENCH, [*COUNTED, "-T", "3", *arguments], ranks=2, environment={
            "LD_PRELOAD": SHIM, "FAULTY_KIND": kind, "FAULTY_CALL": str(call)}).finish()

    def test_every_pair_is_measured(self):
        for backend, ranks in (("mpi", 3), ("gloo", 4)):
            launch = Launch(BENCH, [*COUNTED, f"--backend={backend}"], ranks=ranks).finish()
            self.assertEqual(launch.code, 0, launch.out + launch.err)
            pairs = rows(launch.path)
            self.assertEqual([(row["a"], row["b"]) for row in pairs],
                             [(a, b) for a in range(ranks) for b in range(a + 1, ranks)])
            with h5py.File(launch.path) as file:
                latency, rate = file["links/latency_ns"][:], file["links/gbps"][:]
                self.assertTrue((file["links/all_at_once_gbps"][:] > 0).all())
                self.assertGreater(int(file["summary"]["checked_elements"].sum()), 1 << 16)
                self.assertEqual(int(file["summary"]["wrong_elements"].sum()), 0)
            off = ~numpy.eye(ranks, dtype=bool)
            self.assertTrue((latency[off] > 0).all() and (rate[off] > 0).all())
            self.assertTrue(numpy.isnan(latency[~off]).all())
            self.assertEqual(latency[0, 1], pairs[0]["latency_ns"])
            self.assertEqual(rate[1, 0], pairs[0]["back_gbps"])
            # Links within a host of processors are not judged.
            self.assertEqual({row["standing"] for row in pairs}, {"not_judged"})
            self.assertIn("none is judged", launch.out.splitlines()[0])
            self.assertEqual(launch.leftovers(), [])

    def test_one_pair_at_a_time_and_json_lines(self):
        launch = Launch(BENCH, ["--bytes=64K", "-n", "6", "--one-at-a-time", "--all-at-once=0",
                                "--format=jsonl", "-c", "full"], ranks=3).finish()
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        lines = [json.loads(line) for line in launch.out.splitlines()]
        links = [line for line in lines if line["record"] == "link"]
        self.assertEqual([(link["a"], link["b"]) for link in links], [(0, 1), (0, 2), (1, 2)])
        self.assertEqual({line["name"] for line in lines if line["record"] == "case"},
                         {"links/pair:0-1", "links/pair:0-2", "links/pair:1-2"})
        self.assertEqual([line["sent_gbps"] for line in lines if line["record"] == "all_at_once"],
                         [[]])

    def test_one_flipped_bit_is_found_and_located(self):
        launch = self.faulty("flip")
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn("rank 1 received wrong data", launch.out.splitlines()[0])
        self.assertIn("from rank 0", launch.out.splitlines()[0])
        self.assertEqual(launch.outcomes(), {0: "finished", 1: "corrupt"})

    def test_a_link_that_stalls_is_named(self):
        launch = self.faulty("hang", call=80)
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn("rank 1", launch.out.splitlines()[0])
        self.assertIn("link 0 - 1", launch.out)
        self.assertEqual(rows(launch.path)[0]["rounds"] > 0, True)
        self.assertEqual(launch.leftovers(), [])

    def test_bad_input_is_one_line(self):
        for words, said in ((["--per=rack"], "--per"), (["--bytes=0"], "--bytes"),
                            (["--slow-factor=1"], "--slow-factor"), (["--per=host"], "--per=host"),
                            (["-n", "1"], "-n 1"),
                            (["--format=nccl-tests"], "nccl-tests"),
                            (["--all-at-once=2"], "--all-at-once")):
            launch = Launch(BENCH, words).finish()
            self.assertEqual(launch.code, 2, launch.out + launch.err)
            self.assertIn(said, launch.err.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
