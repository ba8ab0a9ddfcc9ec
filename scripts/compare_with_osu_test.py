#!/usr/bin/python3
"""Pairs with other people's benchmarks: their tables as they printed them, and what pairs prove."""
import os
import tempfile
import unittest

from measuring import compare_with_osu, peers

OSU = """
# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)
8                       0.24              0.22              0.27              0.36
1048576               141.02            134.44            171.20            230.92
"""
IMB = """
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.04         0.04         0.04
            8         1000         0.57         0.60         0.59
"""
GLOO = """
Options:     processes=2, inputs=1, threads=1, verify=true
   size (B)   elements   min (us)   p50 (us)   p99 (us)   max (us)   bandwidth (GB/s)   iterations
        256         64        129        260      18945      52195              0.000         9492
"""
NCCL = """
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)
           8             2     float     sum      -1    30.62    0.00    0.00      0    29.58
# Avg bus bandwidth    : 0.0
"""


def peer(program):
    return next(one for one in peers.PEERS if one.program == program)


class PeersTest(unittest.TestCase):
    def test_their_tables(self):
        for program, text, times in (("osu_allreduce", OSU, {8: 0.22, 1048576: 134.44}),
                                     ("IMB-MPI1", IMB, {0: 0.04, 8: 0.59}),
                                     ("benchmark", GLOO, {256: 260}),
                                     ("all_reduce_perf", NCCL, {8: 30.62})):
            self.assertEqual(peers.times(peer(program), text), times, program)

    def test_programs_are_found_below_the_folder(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        os.makedirs(os.path.join(folder, "c", "blocking"))
        for name, mode in (("osu_allreduce", 0o755), ("IMB-MPI1", 0o644)):
            path = os.path.join(folder, "c", "blocking", name)
            with open(path, "w", encoding="utf-8"):
                pass
            os.chmod(path, mode)
        self.assertEqual([one.program for one, _ in peers.found_in(folder)], ["osu_allreduce"])


class PairsTest(unittest.TestCase):
    def test_the_interval_is_that_of_the_sign_test(self):
        ratios = [1 + i / 100 for i in range(-10, 10)]  # 20 pairs: the 6th of each end
        self.assertEqual(compare_with_osu.interval(ratios), (0.995, 0.95, 1.04))
        self.assertEqual(compare_with_osu.interval([1.0] * 5)[1:], (0.0, float("inf")))

    def test_words(self):
        def word(size, low, high, program="osu_allreduce"):
            return compare_with_osu.verdict(peer(program), size, low, high)
        self.assertEqual(word(8, 0.96, 1.03), "same")
        self.assertEqual(word(1 << 20, 0.96, 1.03), "not resolved")  # large ones: 3 %
        self.assertEqual(word(8, 1.02, 1.06), "DIFFERENT")
        self.assertEqual(word(8, 1.004, 1.03), "DIFFERENT")
        self.assertEqual(word(8, 1.02, 1.06, "benchmark"), "ratio only")  # another loop

    def test_both_ends_are_near_one_and_not_only_near_each_other(self):
        self.assertEqual(compare_with_osu.verdict(peer("osu_allreduce"), 8, 0.999, 1.09),
                         "not resolved")
        self.assertEqual(compare_with_osu.verdict(peer("osu_allreduce"), 8, 0.91, 1.0),
                         "not resolved")

    def test_errors_have_a_goal(self):
        self.assertEqual(compare_with_osu.steadiness(0.10, 0.10, 0.05), "steady")
        self.assertEqual(compare_with_osu.steadiness(0.11, 0.10, 0.05), "unsteady: the median")
        self.assertEqual(compare_with_osu.steadiness(0.10, 0.10, 0.06), "unsteady: % of limit")
        self.assertEqual(compare_with_osu.steadiness(0.10, 0.10, float("nan")),
                         "unsteady: % of limit")

    def test_a_row_has_the_errors_of_both_sides_and_of_the_limit(self):
        figures = {"ours": {8: [1.0] * 18 + [1.1, 1.2]}, "theirs": {8: [1.0] * 20},
                   "limit": {8: [20.0] * 17 + [24.0] * 3}}
        cells, word = compare_with_osu.row_of(peer("osu_allreduce"), figures, 8)
        self.assertEqual(cells, ["8", "1.00", "1.00", "1.00 .. 1.00", "20", "1.00 .. 1.00", "1.0 %",
                                 "0.0 %", "20.0 %", "same, unsteady: the median and % of limit"])
        self.assertEqual(word, "unsteady")
        self.assertEqual(compare_with_osu.row_of(peer("benchmark"), figures, 8)[1], "ratio only")

    def test_theirs_against_itself_counts_each_launch_once(self):
        figures = {"theirs": {8: [2.0, 1.0, 3.0, 2.0, 5.0]}}
        self.assertEqual(compare_with_osu.control(figures, 8), [2.0, 1.5])

    def test_figures_have_the_digits_of_their_interval(self):
        self.assertEqual(compare_with_osu.figure_of([23612.0] * 8 + [25948.3] * 4 +
                                                    [28283.0] * 8), "25900")
        self.assertEqual(compare_with_osu.figure_of([0.4317] * 20), "0.432")
        self.assertEqual([compare_with_osu.percent(share) for share in (0.512, 1.0234, 0.0)],
                         ["51.2 %", "102 %", "0.0 %"])

    def test_what_their_clock_costs_more_is_taken_off_theirs_alone(self):
        figures = {"theirs": {}, "ours": {}, "limit": {}}
        compare_with_osu.add(figures, "theirs", {8: 0.5}, 0.125)
        compare_with_osu.add(figures, "ours", {8: (0.5, 20.0)}, 0.125)
        self.assertEqual(figures, {"theirs": {8: [0.375]}, "ours": {8: [0.5]},
                                   "limit": {8: [20.0]}})

    def test_pairs_go_on_only_where_they_can_tell_more(self):
        figures = {"ours": {8: [1.2] * 20, 16: [1.0, 1.2] * 10, 32: [1.0] * 20},
                   "theirs": {size: [1.0] * 20 for size in (8, 16, 32)}}
        self.assertEqual(compare_with_osu.open_sizes(peer("osu_allreduce"), figures), [16])

    def test_a_folder_without_any_is_refused(self):
        with self.assertRaises(SystemExit) as ended:
            compare_with_osu.main([tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))])
        self.assertEqual(ended.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
