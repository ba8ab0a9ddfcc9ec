#!/usr/bin/python3
"""What a person reads first on a page: the verdict, who hangs where, how sure a figure is; each
once, in words and not in ids."""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, os.path.abspath("results/report/html/testing"))
# pylint: disable=wrong-import-position
from pages import (HERE, RUNS, Outline, make_examples, page_of, path_of, report,  # noqa: E402
                   text_of)


class FirstScreenTest(unittest.TestCase):
    def test_an_interrupted_run_says_so_once(self):
        text = page_of("interrupted")
        words = Outline(text).text()
        self.assertTrue(words.startswith("INCONCLUSIVE: bench_allreduce"), words[:60])
        self.assertIn("? inconclusive 1 of 5 cases measured before the run was ended; run it again",
                      words)
        for said in ("was ended", "Not measured: 3 of 5 cases; no time left (1), not begun (2)"):
            self.assertEqual(words.count(said), 1, said)
        self.assertNotRegex(words, "What went wrong|not_run|, interrupted|without a sample")
        self.assertIn("all_reduce/64MiB unfinished imprecise 20 ms 200 %", words)
        self.assertNotIn('scope="row">barrier', text)

    def test_a_hang_is_a_box_with_each_stack_once(self):
        text = page_of("hanging")
        words = Outline(text).text()
        self.assertIn("2 of 3 cases failed: hang/asleep0 , hang/asleep1 stress", words)
        line = "rank 6 (host node2, pid 4711) hangs in all_reduce 678: asleep in pause(), " \
            "silent 10 s; ranks 0-5 and 7 wait for it"
        self.assertLessEqual(len(line.split()), 25)
        self.assertEqual(text.count('<p class="headline">%s</p>' % line), 2)  # one a box
        for drawn in text.split('<details class="trace"')[1:]:
            stacks = re.findall("<pre[^>]*>(.*?)</pre>", drawn.split("<figure")[0], re.S)
            self.assertEqual([stack.split("\n")[0] for stack in stacks],
                             ["pause@libc.so.6", "sched_yield@libc.so.6", "epoll_wait@libc.so.6"])
        self.assertIn("Ranks that did not finish, 3 distinct stacks and errors ranks 0–7: hung: "
                      "all_reduce 678", words)
        self.assertIn("ranks 0–5, 7 : running in sched_yield, 97 % CPU sched_yield@", words)
        self.assertIn("ranks 0–7 , another thread epoll_wait@libc.so.6", words)
        self.assertIn("seq ✗ rank 6 ranks 0–5, 7 675 all_reduce", words)

    def test_names_and_times_instead_of_ids(self):
        for folder in ("base", "candidate"):
            os.makedirs(path_of(folder), exist_ok=True)
            shutil.copy(path_of("passing.h5"), path_of(folder + "/001.h5"))
        given = "20261121T104425Z-bench_allreduce-1a2b3c4d"
        shutil.copy(path_of("passing.h5"), path_of(given + ".h5"))
        for names, label in ((("base/001", "candidate/001"), "base/001"),
                             ((given, "failing"), "bench_allreduce 2026-11-21 10:44:25 UTC")):
            target = path_of("names.html")
            code, _, err = report(*[path_of(name + ".h5") for name in names], "--output", target)
            self.assertEqual((code, err), (0, ""))
            text = text_of(target)
            words = Outline(text).text()
            self.assertIn("all_reduce of %s: 3 cases" % label, words)
            self.assertNotIn("1a2b3c4d", words.replace(given, ""))
            self.assertIn('title="run 1a2b3c4d"', text)

    def test_what_is_no_number_is_nowhere(self):
        for name in RUNS:
            self.assertNotRegex(page_of(name), r"(?i)[^a-z](nan|inf)[^a-z]")

    def test_where_little_is_known_bands_are_wide(self):
        shutil.copy(path_of("interrupted.h5"), path_of("unsure.h5"))
        with h5py.File(path_of("unsure.h5"), "r+") as file:
            rows = file["summary"][:]
            rows["iterations"], rows["bytes"] = 5, [8, 1 << 26, 64, 0, 1 << 20]
            rows["median_ns"], rows["bus_gbps"] = 1e6, 1
            rows["interval_low_ns"], rows["interval_high_ns"] = numpy.nan, numpy.nan
            file["summary"][:] = rows
        subprocess.run([os.path.join(HERE, "report.py"), "--lockstep=/bin/false",
                        "--output=" + path_of("unsure.html"), path_of("unsure.h5")], check=True)
        text = text_of(path_of("unsure.html"))
        for name in ("latency", "bandwidth"):
            figure = re.search('<figure id="%s-all_reduce-0".*?</figure>' % name, text, re.S)[0]
            band = re.search('<path d="M([^"]*)Z" class="band', figure)[1]
            heights = {point.split()[1] for point in band.split("L")}
            axis = re.findall(r'<path d="M62 (\S+)L448 \1" class="grid', figure)
            self.assertEqual(len(heights), 2, band)  # its two edges are those of the plot
            self.assertGreaterEqual(max(map(float, heights)), max(map(float, axis)))
            self.assertLessEqual(min(map(float, heights)), min(map(float, axis)))

    def test_the_same_files_give_the_same_page(self):
        for names in (("hanging",), ("steps", "interrupted")):
            again = path_of("again.html")
            runs = [path_of(name + ".h5") for name in names]
            self.assertEqual(report(*runs, "--output", again)[0], 0)
            self.assertEqual(text_of(again), page_of(*names))

    def test_no_pass_stands_over_what_is_inconclusive(self):
        shutil.copy(path_of("passing.h5"), path_of("other.h5"))
        with h5py.File(path_of("other.h5"), "r+") as file:
            file.attrs["id"] = "ffffffff"
        for code, headline, words in (
                (3, "INCONCLUSIVE: 1 ambiguous", "? inconclusive the comparison Comparison : 1 am"),
                (0, "PASS: 1 same", "✓ pass all 2 runs Comparison : PASS: 1 same"),
                (5, "REGRESSION: 1 slower", "✗ regression the comparison Comparison : 1 slower")):
            with open(path_of("answer"), "w", encoding="utf-8") as file:
                json.dump({"headline": headline, "exit_code": code, "differences": [],
                           "cases": []}, file)
            with open(path_of("tool"), "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\ncat %s; exit %d\n" % (path_of("answer"), code))
            os.chmod(path_of("tool"), 0o700)
            subprocess.run([os.path.join(HERE, "report.py"), "--lockstep=" + path_of("tool"),
                            "--output=" + path_of("two.html"), path_of("passing.h5"),
                            path_of("other.h5")], check=True)
            text = Outline(text_of(path_of("two.html"))).text()
            self.assertIn(words, text)
            self.assertTrue(text.startswith(headline.split(" ")[0]), text[:40])


if __name__ == "__main__":
    make_examples()
    unittest.main()
