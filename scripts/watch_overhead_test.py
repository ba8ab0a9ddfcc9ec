#!/usr/bin/python3
"""What watching costs: the table of OSU, differences of pairs, and the words about them."""
import math
import os
import tempfile
import unittest

from measuring import watch_overhead

OSU = """
# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)
8                       0.24
4096                    1.19
"""


class WatchOverheadTest(unittest.TestCase):
    def test_the_table_is_read_in_nanoseconds(self):
        self.assertEqual(watch_overhead.mean_times(OSU), {8: 240.0, 4096: 1190.0})

    def test_differences_are_those_of_pairs(self):
        found = {"alone": {8: [200, 900]}, "watched": {8: [250, 940]}}
        self.assertEqual(watch_overhead.differences(found, 8, "watched"), [50, 40])

    def test_words(self):
        self.assertEqual(watch_overhead.verdict(8, 40, 80, 60), "within")
        self.assertEqual(watch_overhead.verdict(8, 61, 80, 60), "MORE")
        self.assertEqual(watch_overhead.verdict(4096, -10, 30, 60), "within")
        self.assertEqual(watch_overhead.verdict(4096, 1, 30, 60), "MORE")
        self.assertEqual(watch_overhead.verdict(8, -math.inf, math.inf, 60), "not resolved")

    def test_few_pairs_prove_nothing(self):
        self.assertEqual(watch_overhead.signed_interval([50.0] * 5), (50.0, -math.inf, math.inf))
        self.assertEqual(watch_overhead.signed_interval([50.0] * 6), (50.0, 50.0, 50.0))

    def refused(self, *arguments):
        with self.assertRaises(SystemExit) as ended:
            watch_overhead.main(list(arguments))
        self.assertEqual(ended.exception.code, 2)

    def test_what_cannot_be_measured_is_refused(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.refused(folder)
        path = os.path.join(folder, "osu_allreduce")
        with open(path, "w", encoding="utf-8"):
            pass
        os.chmod(path, 0o755)
        self.refused(folder, "--split", "--iters=1000000")


if __name__ == "__main__":
    unittest.main()
