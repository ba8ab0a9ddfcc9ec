#!/usr/bin/env python3
"""The summary of a test run counts everything that went wrong."""

import os
import tempfile
import unittest

from suite import test_summary


def configured(label, kind="cc_test rule"):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": kind}}


def summary(label, status):
    return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}


def completed(label, **more):
    return {"id": {"targetCompleted": {"label": label}}, **more}


def last_line(events, bazel_exit=0, layering_exit=0):
    lines, code = test_summary.summarize(
        test_summary.outcomes(events), bazel_exit, layering_exit
    )
    return lines[-1], code


class SummaryTest(unittest.TestCase):
    def test_counts_passed_tests_and_the_layering(self):
        events = [configured("//a:a"), completed("//a:a", completed={"success": True})]
        events.append(summary("//a:a", "PASSED"))
        self.assertEqual(last_line(events), ("2 passed, 0 failed", 0))

    def test_counts_every_kind_of_failure(self):
        passed = [configured("//a:a"), summary("//a:a", "PASSED")]
        for status in ("FAILED", "TIMEOUT", "NO_STATUS", "FLAKY"):
            events = passed + [configured("//a:b"), summary("//a:b", status)]
            self.assertEqual(last_line(events, 3), ("2 passed, 1 failed", 1))
        events = passed + [configured("//a:b"), completed("//a:b", completed={})]
        self.assertEqual(last_line(events, 1), ("2 passed, 1 failed", 1))
        self.assertEqual(last_line(passed + [configured("//a:b")], 1), ("2 passed, 1 failed", 1))

    def test_libraries_are_no_tests(self):
        events = [configured("//a:l", "cc_library rule"), completed("//a:l", completed={})]
        self.assertEqual(last_line(events, 1), ("1 passed, 1 failed", 1))

    def test_counts_skipped_tests(self):
        events = [configured("//a:a"), summary("//a:a", "PASSED"), configured("//a:b")]
        events.append(completed("//a:b", aborted={"reason": "SKIPPED"}))
        self.assertEqual(last_line(events), ("2 passed, 0 failed, 1 skipped", 0))

    def test_fails_closed(self):
        self.assertEqual(last_line([]), ("1 passed, 1 failed", 1))
        self.assertEqual(last_line([], 37), ("1 passed, 1 failed", 1))
        good = [configured("//a:a"), summary("//a:a", "PASSED")]
        self.assertEqual(last_line(good, 124), ("2 passed, 1 failed", 1))
        self.assertEqual(last_line(good, 0, 1), ("1 passed, 1 failed", 1))

    def test_reads_what_is_left_of_a_cut_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "events")
            self.assertEqual(test_summary.read_events(path), [])
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"id": {}}\n{"id"')
            self.assertEqual(test_summary.read_events(path), [{"id": {}}])


if __name__ == "__main__":
    unittest.main()
