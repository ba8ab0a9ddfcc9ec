#!/usr/bin/python3
"""The page of `lockstep report`: what it says, that it is well made, and what it needs."""

import itertools
import json
import math
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import h5py
import numpy

_LARGE_CASES = 10000
_LARGE_BYTES = 20e6
_CALLS_A_CASE = 1300

# Viénot, Brettel, Mollon 1999: what those see who lack a kind of cones; of linear RGB.
_EYES = {"all": numpy.eye(3),
         "no green": numpy.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0],
                                  [-0.02234, 0.02234, 1]]),
         "no red": numpy.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0],
                                [0.00401, -0.00401, 1]])}
_XYZ = numpy.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722],
                    [0.0193, 0.1192, 0.9505]]) / numpy.array([[0.9505], [1], [1.089]])

sys.path[:0] = [os.path.abspath(place) for place in (
    "results/report/html", "results/report/html/testing", "results/python", "core/base/testing")]
# pylint: disable=wrong-import-position
import journal  # noqa: E402
import run_file  # noqa: E402
import started  # noqa: E402
from figures import rank_times  # noqa: E402
from pages import (DIRECTORY, HERE, LOCKSTEP, RUNS, Outline, make_examples,  # noqa: E402
                   page_of, path_of, report)


def calls_to_report(cases):
    """How many functions are called to write the page of a run of so many cases."""
    path = path_of("counted.h5")
    subprocess.run(["results/large_run", path, str(cases)], check=True)
    counting = ("import sys\nsys.path.insert(0, sys.argv[1])\nimport report\ncalls = 0\n"
                "def count(frame, event, argument):\n    global calls\n"
                "    calls += event in ('call', 'c_call')\n"
                "sys.setprofile(count)\ncode = report.main(sys.argv[2:])\nsys.setprofile(None)\n"
                "print(calls)\nsys.exit(code)\n")
    done = subprocess.run([sys.executable, "-c", counting, os.path.abspath(HERE),
                           "--lockstep=" + LOCKSTEP, "--output=" + path_of("counted.html"),
                           path], stdout=subprocess.PIPE, check=True)
    return int(done.stdout)


def linear(colour):
    parts = [int(colour[k:k + 2], 16) / 255 for k in (1, 3, 5)]
    return numpy.array([part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
                        for part in parts])


def luminance(colour):
    return numpy.dot((0.2126, 0.7152, 0.0722), linear(colour))


def seen(colour, eye):
    """CIE L*a*b* of what an eye sees."""
    xyz = numpy.cbrt(_XYZ @ numpy.clip(_EYES[eye] @ linear(colour), 0, 1))
    return numpy.array([116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])])


def contrast(one, other):
    """WCAG 2.1."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


class PageTest(unittest.TestCase):
    def test_pages_are_well_made_and_need_nothing_else(self):
        for names in [(name,) for name in RUNS] + [("passing", "failing")]:
            text = page_of(*names)
            outline = Outline(text)
            self.assertEqual(len(outline.ids), len(set(outline.ids)))
            for link in outline.links:
                self.assertEqual(link[0], "#")
                self.assertIn(link[1:], outline.ids)
            self.assertEqual(set(outline.sources), {"data:,"})  # the icon: none
            self.assertNotRegex(text, r"url\(|@import|fetch\(|XMLHttpRequest|WebSocket")
            self.assertEqual(outline.headings[0], 1)
            for above, below in zip(outline.headings, outline.headings[1:]):
                self.assertLessEqual(below, above + 1)
            self.assertEqual(bool(outline.drawings), names != ("watched",))  # it has no cases
            for drawing in outline.drawings:
                self.assertEqual(drawing["role"], "img")
                for name in drawing["aria-labelledby"].split():
                    self.assertIn(name, outline.ids)
            self.assertEqual(text.count("<figure"), text.count("<svg"))

    def test_the_verdict_comes_first(self):
        words = Outline(page_of("failing")).text()
        self.assertTrue(words.startswith("FAIL: bench_allreduce"), words[:60])
        self.assertLess(words.index("rank 1 was killed by signal 9"), words.index("What went"))
        self.assertIn("look who sent it (dmesg) (incomplete) bench_allreduce", words)
        words = Outline(page_of("passing")).text()
        self.assertTrue(words.startswith("PASS: "))
        self.assertNotIn("What went wrong", words)

    def test_a_failure_is_told_with_its_trace(self):
        words = Outline(page_of("failing")).text()
        self.assertIn("rank killed (proved, rank 1) rank 1 was killed by signal 9", words)
        self.assertIn("Look who sent it: dmesg.", words)
        self.assertIn("▶ 101 all_reduce f32[256] WAITS", words)
        self.assertIn("rank 1: killed, signal 9", words)
        words = Outline(page_of("corrupt")).text()
        self.assertIn("1 49 0 1 3 (0x40400000) 3.5 (0x40600000)", words)

    def test_no_rank_enters_last_by_less_than_the_clocks_can_tell(self):
        entry = numpy.array([[0, 300.0], [1000, 1300], [2000, 2300]])
        samples = run_file.Times(entry, entry + 500)
        for error, said in (0, True), (24_100, False), (math.inf, False):
            drawn = str(rank_times.figure({"name": "case"}, samples, error, "one"))
            self.assertEqual("Rank 1 enters last, 300 ns after" in drawn, said, error)
            self.assertEqual("300 ns" in drawn, said, error)

    def test_numbers_stand_behind_the_drawings(self):
        words = Outline(page_of("passing")).text()
        self.assertIn("all_reduce/64MiB pass precise 21.4 ms 4.0 % 32.1 ms", words)
        self.assertIn("Some CPU", words)
        words = Outline(page_of("steps")).text()
        self.assertIn("bucket_cap_mb=10 instead of 25", words)
        self.assertIn("1.20 to 1.30", words)
        self.assertIn("forward 5.00 ms, exposed communication 2.50 ms", words)

    def test_links_are_matrices(self):
        text = page_of("links")
        labels = re.findall(r"<text[^>]*>[^<]*, medians over rounds; usual: ", text)
        self.assertEqual(len(labels), 2)
        words = Outline(text).text()
        self.assertIn("Half round trips between ranks of 4 ranks, 8 bytes, medians over "
                      "rounds; usual: 50 µs. Slow: rank 1 and rank 2 (slow link).", words)
        self.assertIn("1 – 2 10.2 ms", words)
        for drawing in re.findall(r'<figure id="links-.*?</svg>', text, re.S):
            self.assertEqual(len(re.findall(r'<rect [^>]*class="h\d"[^>]*><title>', drawing)), 12)
            self.assertEqual(drawing.count('class="event"'), 2)  # both directions
            self.assertIn("node2 → node3: ", drawing)
        self.assertNotIn("Loading and waiting", words)

    def test_who_waits_for_whom(self):
        words = Outline(page_of("watched")).text()
        self.assertIn("1 4 s 500 ms rank 0 (100 %) 90 101", words)
        self.assertIn("MPI_Allreduce at solver.c:31 200 4.5 s 1 s rank 1 (89 %)", words)

    def test_text_of_a_file_is_no_markup(self):
        shutil.copy(path_of("passing.h5"), path_of("markup.h5"))
        evil = "<script>alert(1)</script>&\"'"
        with h5py.File(path_of("markup.h5"), "r+") as file:  # breaks the seal: past the tool
            file.attrs["summary_line"] = evil
            file["environment/host/0"].attrs["cpu_model"] = evil
        subprocess.run([os.path.join(HERE, "report.py"), "--lockstep=/bin/false",
                        "--output=" + path_of("markup.html"), path_of("markup.h5")],
                       check=True)
        with open(path_of("markup.html"), encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("<script>alert", text)
        self.assertEqual(Outline(text).text().count(evil), 2)

    def schemes(self):
        with open(os.path.join(HERE, "page.css"), encoding="utf-8") as file:
            css = file.read()
        return [dict(re.findall(r"(--[a-z0-9-]+):\s*(#[0-9a-f]{6});", block))
                for block in re.findall(r":root\s*\{(.*?)\}", css, re.S)[:2]]

    def test_colours_of_curves_differ_to_every_eye(self):
        """10 is told apart at a glance; dashes and markers differ, too."""
        for scheme in self.schemes():
            colours = [scheme["--s%d" % series] for series in range(6)]
            for eye in _EYES:
                for one, other in itertools.combinations(colours, 2):
                    self.assertGreater(numpy.linalg.norm(seen(one, eye) - seen(other, eye)), 12,
                                       (eye, one, other))
        confused = seen("#b24a00", "no red") - seen("#7a5c00", "no red")
        self.assertLess(numpy.linalg.norm(confused), 4)

    def test_contrast_of_both_schemes(self):
        schemes = self.schemes()
        self.assertEqual(set(schemes[0]), set(schemes[1]))
        for scheme in schemes:
            pairs = [("--" + ink, "--" + ground) for ink in ("ink", "quiet", "link")
                     for ground in ("ground", "raised")]
            pairs += [("--ink", "--%s-ground" % verdict) for verdict in ("pass", "fail", "unknown")]
            pairs += [("--" + verdict, "--" + ground) for verdict in ("pass", "fail", "unknown")
                      for ground in ("ground", verdict + "-ground")]
            pairs += [("--quiet", "--fail-ground"), ("--on-call", "--call")]
            pairs += [("--on-part", "--p%d" % part) for part in range(5)]
            for ink, ground in pairs:
                self.assertGreaterEqual(contrast(scheme[ink], scheme[ground]), 4.5, (ink, ground))
            for series in range(6):  # lines: WCAG asks 3 of what is no text
                self.assertGreaterEqual(contrast(scheme["--s%d" % series], scheme["--ground"]), 3)
        self.assertLess(contrast("#777777", "#ffffff"), 4.5)  # the formula tells apart

    def test_purposes_have_the_words_of_the_journal(self):
        with open("core/journal/purpose.cc", encoding="utf-8") as file:
            table = re.search(r"kPurposes\[\] = \{(.*?)\};", file.read(), re.S).group(1)
        self.assertEqual(tuple(re.findall(r'"([^"]*)"', table)), journal.PURPOSES)
        self.assertEqual(journal.purpose_of(13 << 32 | 3 << 8 | 6), "bucket 3")
        self.assertEqual(journal.purpose_of(0), "")

    def test_ten_thousand_cases(self):
        text = page_of("large")
        self.assertLess(len(text.encode("utf-8")), _LARGE_BYTES)
        self.assertEqual(len(set(re.findall(r'scope="row">(all_reduce/[a-z0-9]+/variant\d+/\d+)<',
                                            text))), _LARGE_CASES)


    def test_the_work_grows_with_the_cases_and_no_faster(self):
        """Calls of functions of Python and of C: another machine or a load makes no other count."""
        small, large = calls_to_report(1000), calls_to_report(2000)
        print("1000 cases: %d calls, 2000 cases: %d calls" % (small, large))
        self.assertLess(large, 2.2 * small)
        self.assertLess(large, _CALLS_A_CASE * 2000)


class ComparisonTest(unittest.TestCase):
    """With a stand-in for the tool, since the interface is what is tested."""

    def setUp(self):
        shutil.copy(path_of("passing.h5"), path_of("other.h5"))
        with h5py.File(path_of("other.h5"), "r+") as file:
            file.attrs["id"] = "ffffffff"
            file["environment/host/0"].attrs["kernel"] = "6.2"
            file.attrs["lockstep_version"] = "1.3.0"

    def run_with(self, script, names=("passing", "other"), *options):
        tool = path_of("tool")
        with open(tool, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(tool, stat.S_IRWXU)
        done = subprocess.run([os.path.join(HERE, "report.py"), "--lockstep=" + tool, *options,
                               "--output=" + path_of("two.html"),
                               *[path_of(name + ".h5") for name in names]],
                              stderr=subprocess.PIPE, check=False)
        return done.returncode, done.stderr.decode("utf-8")

    def interrupt(self, environment, tool):
        """Ctrl-C when the program has said "begun" on its standard output. Then nothing waits
        for long: Python handles a signal that comes just before a wait after it."""
        command = [os.path.join(HERE, "report.py"), "--lockstep=" + tool,
                   "--output=" + path_of("cut.html"), path_of("passing.h5"), path_of("other.h5")]
        # Of a test that runs behind & Python would ignore it.
        with started.Started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=dict(os.environ, **environment),
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
                             ) as running:
            self.assertEqual(running.stdout.readline(), b"begun\n")
            running.send_signal(signal.SIGINT)
            error = running.communicate()[1]
        self.assertEqual((running.returncode, error),
                         (3, b"lockstep: report: interrupted\n"))
        self.assertFalse(os.path.exists(path_of("cut.html")))

    def test_ctrl_c_is_one_line(self):
        tool = path_of("waiting")
        with open(tool, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho begun > /proc/$PPID/fd/1; while sleep 0.1; do echo; done\n")
        os.chmod(tool, stat.S_IRWXU)
        self.interrupt({}, tool)

    def test_ctrl_c_while_modules_are_loaded_is_one_line(self):
        folder = path_of("slow_modules")
        os.mkdir(folder)
        with open(os.path.join(folder, "jinja2.py"), "w", encoding="utf-8") as file:
            file.write("print('begun', flush=True)\nwhile True: pass\n")
        self.interrupt({"PYTHONPATH": folder}, "/bin/false")

    def test_it_is_shown(self):
        effect = {"estimate": 0.08, "low": 0.05, "high": 0.11}
        steady = {"case": "barrier", "verdict": "same", "outcome_change": "none", "effect": effect,
                  "base": {"median_ns": 600.0, "outcome": "pass"}, "resolve": "", "why": "",
                  "candidate": {"median_ns": 610.0, "outcome": "pass"}, "slower_ranks": []}
        hung = {"case": "all_reduce/8B", "verdict": "missing", "outcome_change": "worse",
                "effect": {"estimate": None, "low": None, "high": None}, "resolve": "look",
                "base": {"median_ns": 850.0, "outcome": "pass"}, "why": "it hangs",
                "candidate": {"median_ns": None, "outcome": "fail"},
                "slower_ranks": [{"rank": 1, "what": "leaves later", "effect": effect}]}
        answer = {"headline": "SLOWER: one case", "exit_code": 5, "differences": [],
                  "cases": [steady, hung]}
        with open(path_of("answer"), "w", encoding="utf-8") as file:
            json.dump(answer, file)
        self.assertEqual(self.run_with("cat %s; exit 5\n" % path_of("answer")), (0, ""))
        with open(path_of("two.html"), encoding="utf-8") as file:
            words = Outline(file.read()).text()
        # First of all, although both runs passed.
        self.assertIn("✗ slower the comparison Comparison : one case", words)
        self.assertIn("all_reduce/8B missing – – 850 ns – pass → fail "
                      "it hangs; rank 1 leaves later (+8 %); look", words)
        self.assertIn("barrier same +8 % +5 % to +11 % 600 ns 610 ns pass", words)
        self.assertLess(words.index("pass → fail"), words.index("barrier same +8 % +5 %"))
        self.assertIn("host/0/kernel 6.1 6.2", words)
        self.assertIn("measured by Lockstep 1.2.3 (1a2b3c4, modified)", words)
        self.assertIn("The runs were measured by different versions of Lockstep.", words)

    def test_the_candidates_are_the_last_runs(self):
        shutil.copy(path_of("other.h5"), path_of("third.h5"))
        with h5py.File(path_of("third.h5"), "r+") as file:
            file.attrs["id"] = "eeeeeeee"
            file["plan"].attrs["hash"] = "0" * 16  # the same cases with another seed
        script = 'echo "$@" >%s; exit 2\n' % path_of("asked")
        for candidates, sides in ((1, "--base passing other --candidate third"),
                                  (2, "--base passing --candidate other third")):
            self.run_with(script, ["passing", "other", "third"], "--candidates=%d" % candidates)
            with open(path_of("asked"), encoding="utf-8") as file:
                asked = file.read().replace(DIRECTORY + "/", "").replace(".h5", "")
            self.assertEqual(asked.strip(), "compare --format=json " + sides)

    def test_an_answer_that_is_not_understood_is_a_defect_in_one_line(self):
        code, err = self.run_with("echo '{\"cases\": [{}]}'\n")
        self.assertEqual((code, err.count("\n")), (10, 1), err)
        self.assertIn("internal error: KeyError('outcome_change') at comparison.py:", err)

    def test_a_tool_that_cannot_compare_is_no_empty_section(self):
        code, err = self.run_with("echo 'lockstep: compare: no' >&2; exit 2\n")
        self.assertEqual((code, err.count("\n")), (2, 1), err)
        self.assertIn("compare: no", err)


class CommandTest(unittest.TestCase):
    def test_what_cannot_be_read_is_one_line_and_exit_code_2(self):
        with open(path_of("passing.h5"), "rb") as file:
            whole = file.read()
        for name, content in (("truncated.h5", whole[:-1]), ("text.h5", b"a,b\n")):
            with open(path_of(name), "wb") as file:
                file.write(content)
        for name in ("missing.h5", "truncated.h5", "text.h5"):
            code, out, err = report(path_of("passing.h5"), path_of(name), "--output",
                                    path_of("x.html"))
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn(name, err)
        self.assertFalse(os.path.exists(path_of("x.html")))
        for arguments in ([], [path_of("passing.h5")]):
            code, _, err = report(*arguments)
            self.assertEqual((code, err.count("\n")), (2, 1))

    def test_a_page_that_cannot_be_written_is_one_line_and_exit_code_4(self):
        code, out, err = report(path_of("passing.h5"), "--output", "/proc/no/page.html")
        self.assertEqual((code, out, err.count("\n")), (4, "", 1), err)
        self.assertIn("/proc/no/page.html", err)

    def test_figures_are_files_of_their_own(self):
        folder = path_of("figures")
        code, _, err = report(path_of("steps.h5"), path_of("passing.h5"), "--output",
                              path_of("f.html"),
                              "--figures=" + folder)
        if not shutil.which("rsvg-convert"):
            self.assertEqual((code, err.count("\n")), (4, 1))
            self.skipTest("apt-get install librsvg2-bin")
        self.assertEqual((code, err), (0, ""))
        names = sorted(os.listdir(folder))
        self.assertIn("latency-all_reduce-0.svg", names)
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            if name.endswith(".svg"):
                self.assertIn(name[:-4] + ".png", names)
                self.assertNotIn(b"var(", content)
                light, dark = content.split(b"prefers-color-scheme: dark")
                self.assertTrue(b".ground { fill: #ffffff; }" in light
                                and b".ground { fill: #14171a; }" in dark)
                self.assertEqual(xml.etree.ElementTree.fromstring(content).tag,
                                 "{http://www.w3.org/2000/svg}svg")
            else:
                self.assertEqual(content[:8], b"\x89PNG\r\n\x1a\n")
                self.assertEqual(int.from_bytes(content[16:20], "big"), 1440)


if __name__ == "__main__":
    make_examples()
    subprocess.run(["results/large_run", path_of("large.h5"), str(_LARGE_CASES)], check=True)
    unittest.main()
