#!/usr/bin/python3
"""What watching costs: the table of OSU, differences of pairs, and the words about them."""
import contextlib
import io
import math
import os
import tempfile
import unittest
import unittest.mock

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
        self.refused()
        self.refused(folder, "--calls")

    def test_calls_are_told_by_their_least(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        lockstep = os.path.join(folder, "cli", "lockstep")
        mpirun = os.path.join(folder, "mpirun")
        for path, text in ((lockstep, 'echo "a, b: 30"; echo "c: 9"'),
                           (mpirun, 'echo "a, b: 2.5"; echo "c: 4"')):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + text + "\n")
            os.chmod(path, 0o755)
        environment = dict(os.environ, PATH=folder + os.pathsep + os.environ["PATH"])
        said = io.StringIO()
        with unittest.mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(said):
            code = watch_overhead.main(["--calls", "--pairs=2", "--lockstep=" + lockstep])
        self.assertEqual(code, 0)
        self.assertEqual([line.rsplit(None, 2) for line in said.getvalue().splitlines()[-2:]],
                         [["a, b", "2.50", "30.0"], ["c", "4.00", "9.00"]])


if __name__ == "__main__":
    unittest.main()
