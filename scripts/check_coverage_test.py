#!/usr/bin/python3
"""Coverage of intervals over launches: the arithmetic on literal medians."""
import contextlib
import io
import math
import random
import unittest

from measuring import check_coverage


def sweep(low, high, least=math.nan, most=math.nan, time=10.0):
    return check_coverage.Sweep(low, high, [time] * 3, least, most)


class PlacementTest(unittest.TestCase):
    def test_a_placement_has_a_median_of_its_own(self):
        near, far = sweep(9, 11, 60, 70), sweep(38, 42, 290, 300, 40.0)
        groups = check_coverage.placements([far, near, sweep(9, 42, 60, 290), near, far])
        self.assertEqual(groups, [(60, [near, near]), (290, [far, far])])
        self.assertEqual([check_coverage.covered(group)[:2] for _, group in groups],
                         [(10.0, 2), (40.0, 2)])

    def test_files_without_a_cache_line_are_one(self):
        (line, group), = check_coverage.placements([sweep(1, 2), sweep(9, 11)])
        self.assertTrue(math.isnan(line))
        self.assertEqual(check_coverage.covered(group)[:2], (10.0, 1))

    def test_every_placement_that_is_judged_decides(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            near, far = [sweep(9, 11, 60, 60)] * 80, [sweep(1, 2, 290, 290, 40.0)] * 19
            self.assertEqual(check_coverage.report({8: near + far}), 0)
            self.assertEqual(check_coverage.report({8: near + far + far}), 1)
            self.assertEqual(check_coverage.report({8: near[:5] + [sweep(1, 2, 60, 60)]}), 1)
        self.assertEqual(out.getvalue().count("too few"), 1)


class BetweenTest(unittest.TestCase):
    def test_the_interval_is_that_of_lockstep_run(self):
        # results/compare/over_launches_test.cc has the same launches and the same lower end.
        low, high = check_coverage.interval_over_launches([1000.0 * i for i in (8, 1, 7, 2, 6, 3,
                                                                                 5, 4)])
        self.assertAlmostEqual(low, 1935.6, places=1)
        self.assertAlmostEqual(high, 9000 - 1935.6, places=1)

    def test_launches_that_agree_are_always_contained_and_two_speeds_often_are_not(self):
        def contained(medians):
            return check_coverage.contained(medians, 6, 200, random.Random(1))
        self.assertEqual(contained([5.0] * 12), 200)
        # Of 7 launches one is outside: no interval over the 6 others contains the slowest.
        self.assertEqual(contained([1.0] * 6 + [9.0]) + self.slow_ones_left_out(), 200)

    @staticmethod
    def slow_ones_left_out():
        chance = random.Random(1)
        return sum(6 not in chance.sample(range(7), 6) for _ in range(200))

    def test_what_a_coverage_comes_to(self):
        # 1.645 / sqrt(1 + 8 / 22) = 1.409 deviations: 84.1 %.
        self.assertAlmostEqual(check_coverage.comes_to(0.9, 8, 22), 0.841, places=3)
        self.assertGreater(check_coverage.comes_to(0.9, 8, 10**6), 0.8999)

    def test_subsets_that_are_too_small_are_refused(self):
        for of in ("5", "8"):
            with self.assertRaises(SystemExit) as ended:
                check_coverage.main(["--between", "--launches=8", "--of=" + of])
            self.assertEqual(ended.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
