#!/usr/bin/python3
"""What mbi_score makes of headers and causes; it runs no program."""
import unittest

import mbi_score

HEADER = """BEGIN_MBI_TESTS
  $ mpirun -np 4 ${EXE}
  | %s
  | some text
END_MBI_TESTS
"""


def row(name, expected, *causes):
    return {"name": name, "expected": expected, "causes": list(causes), "late": False}


class MbiScoreTest(unittest.TestCase):

    def test_headers(self):
        self.assertEqual(mbi_score.parse_header(HEADER % "OK"), (4, None))
        self.assertEqual(mbi_score.parse_header(HEADER % "ERROR: TagMatching"),
                         (4, "TagMatching"))

    def test_the_table_counts_what_was_found_and_what_was_named_right(self):
        rows = [row("a", "TagMatching", "tag_mismatch"), row("b", "TagMatching", "deadlock"),
                row("c", "TagMatching"), row("d", None), row("e", None, "deadlock"),
                row("f", "LocalConcurrency")]
        self.assertEqual([line.split() for line in mbi_score.table(rows)[1:4]],
                         [["right", "programs", "2", "1"], ["LocalConcurrency", "1", "0", "0"],
                          ["TagMatching", "3", "2", "1"]])
        self.assertEqual(mbi_score.summary("all", rows), [
            "all: TP 2, FP 1, TN 1, FN 2; precision 0.667, recall 0.500, F1 0.571"])
        self.assertEqual(mbi_score.wrong(rows), [
            "other class b (TagMatching): deadlock", "missed c (TagMatching)",
            "false alarm e: deadlock", "missed f (LocalConcurrency)"])

    def test_what_does_not_run_is_neither_found_nor_missed(self):
        broken = [dict(row("b", "TagMatching"), not_run="not compiled"),
                  dict(row("c", None), not_run="not started")]
        lines = mbi_score.table([row("a", "TagMatching", "tag_mismatch"), row("d", None), *broken])
        self.assertEqual([line.split() for line in lines[1:5]],
                         [["right", "programs", "1", "0"], ["TagMatching", "1", "1", "1"],
                          ["not", "compiled", "1"], ["not", "started", "1"]])
        self.assertIn("all classes: TP 1, FP 0, TN 1, FN 0;", lines[6])
        self.assertEqual(mbi_score.wrong(broken), ["not compiled b", "not started c"])

    def test_a_watcher_that_fails_finds_nothing_and_misses_nothing(self):
        judged = mbi_score.why_not_judged
        self.assertEqual(judged([], False, "lockstep: no library; install it\n"), "not watched")
        self.assertEqual(judged([], False, "lockstep watch: 2 ranks, 9 events, no finding\n"), "")
        self.assertEqual(judged([], True, "it waits\n"), "")
        self.assertEqual(judged(["deadlock"], False, ""), "")
        self.assertEqual(judged([], False, "lockstep watch: %s\n" % mbi_score.NOT_WATCHED),
                         "not started")

    def test_watch_says_so_where_nothing_ran(self):
        with open("watch/run/teller.cc", encoding="utf-8") as file:
            self.assertIn(mbi_score.NOT_WATCHED, file.read())

    def test_every_cause_of_the_judge_has_a_class_or_is_none_of_the_suite(self):
        with open("watch/judge/finding.cc", encoding="utf-8") as file:
            causes = {line.split('"')[1] for line in file if line.startswith('    {"')}
        self.assertEqual(causes - set(mbi_score.CLASSES),
                         {"lost_rank", "stopped_rank", "aborted", "window_leak", "file_leak"})


if __name__ == "__main__":
    unittest.main()
