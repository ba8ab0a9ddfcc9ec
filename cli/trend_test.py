#!/usr/bin/env python3
"""`lockstep trend` from the outside, over 60 made-up nights of four machines."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

_LOCKSTEP = "cli/lockstep"
_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def trend(*arguments):
    done = subprocess.run([_LOCKSTEP, "trend"] + list(arguments), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


class TrendTest(unittest.TestCase):
    def test_changes_are_found_with_what_changed(self):
        code, out, err = trend("--format=json", _DIRECTORY)
        self.assertEqual((code, err), (5, ""))  # node4 is slow
        result = json.loads(out)
        self.assertEqual(result["launches"], 480)
        self.assertEqual(len(result["histories"]), 12)
        first = result["events"][-1]
        self.assertEqual((first["machine"], first["when"][:10], len(first["cases"])),
                         ("node1", "2026-09-21", 3))
        self.assertAlmostEqual(first["effect"], 0.10, delta=0.02)
        self.assertEqual(first["changed_with_it"],
                         [{"fact": "host/driver", "before": "570", "after": "580"}])
        second = result["events"][0]
        self.assertEqual([one["case"] for one in second["cases"]], ["all_reduce/f32/sum/4096"])
        self.assertTrue("2026-10-11" <= second["when"][:10] <= "2026-10-21", second["when"])
        self.assertAlmostEqual(second["effect"], 0.03, delta=0.01)
        self.assertEqual(second["changed_with_it"], [])
        self.assertEqual(len(result["events"]), 2)

    def test_a_bad_night_is_an_outlier_and_a_slow_machine_is_named(self):
        result = json.loads(trend("--format=json", _DIRECTORY)[1])
        node2 = [one for one in result["histories"] if one["machine"] == "node2"]
        for history in node2:
            self.assertEqual(history["changes"], [])
            self.assertTrue(history["nights"][30]["outlier"])
        slow = [one for one in result["machines"] if one["slow"]]
        self.assertIn("node4", [one["machine"] for one in slow])
        self.assertNotIn("node3", [one["machine"] for one in slow])

    def test_recent_changes_alone_fail(self):
        node1 = os.path.join(_DIRECTORY, "node1")
        self.assertEqual(trend(node1)[0], 0)  # the last change is 15 nights old
        self.assertEqual(trend("--recent=20", node1)[0], 5)
        self.assertEqual(trend(os.path.join(_DIRECTORY, "node2"))[0], 0)

    def test_the_table_and_markdown(self):
        _, out, _ = trend(_DIRECTORY)
        self.assertIn("2026-09-21 on node1: 3 of 3 cases slower", out)
        self.assertIn("changed with it: host/driver: 570 -> 580", out)
        self.assertIn("node4: +1", out)
        self.assertIn("<- SLOW", out)
        self.assertIn("2026-10-01 on node2: 3 cases", out)
        self.assertIn("### Level changes", trend("--format=markdown", _DIRECTORY)[1])

    def test_junit(self):
        code, out, _ = trend("--format=junit", "--recent=20", _DIRECTORY)
        self.assertEqual(code, 5)
        suite = xml.etree.ElementTree.fromstring(out).find("testsuite")
        failed = {(case.get("classname"), case.get("name")): case.find("failure").get("message")
                  for case in suite if case.find("failure") is not None}
        # 12 histories, 4 machines and the whole; node1 became slower by 3 % in one case.
        self.assertEqual([suite.get(key) for key in ("tests", "failures", "errors", "skipped")],
                         ["17", "3", "0", "0"])
        self.assertEqual(set(failed), {  # node1 is slow since its new driver
            ("bench_allreduce.node1", "all_reduce/f32/sum/4096 (mpi x 2)"),
            ("machines", "node1"), ("machines", "node4")})
        self.assertRegex(failed["bench_allreduce.node1", "all_reduce/f32/sum/4096 (mpi x 2)"],
                         r"^\+[234]\.\d % since 2026-10-1")
        self.assertIn("beside its peers", failed["machines", "node4"])
        code, out, _ = trend("--format=junit", os.path.join(_DIRECTORY, "node2"))
        suite = xml.etree.ElementTree.fromstring(out).find("testsuite")
        self.assertEqual((code, suite.get("failures"), suite.get("errors")), (0, "0", "0"))

    def test_few_nights_are_inconclusive_and_bad_files_are_named(self):
        folder = os.path.join(_DIRECTORY, "few")
        os.makedirs(folder)
        for name in sorted(os.listdir(os.path.join(_DIRECTORY, "node3")))[:6]:
            shutil.copy(os.path.join(_DIRECTORY, "node3", name), folder)
        with open(os.path.join(folder, "bad.h5"), "w", encoding="utf-8") as file:
            file.write("no run\n")
        code, out, _ = trend(folder)
        suite = xml.etree.ElementTree.fromstring(
            trend("--format=junit", folder)[1]).find("testsuite")
        shutil.rmtree(folder)
        # The whole and the file are errors, three histories are too short.
        self.assertEqual([suite.get(key) for key in ("tests", "failures", "errors", "skipped")],
                         ["5", "0", "2", "3"])
        self.assertEqual(code, 3)
        self.assertIn("INCONCLUSIVE", out)
        self.assertIn("bad.h5: not an HDF5 file of Lockstep", out)

    def test_launches_that_lost_their_coordinator_are_the_newest_night(self):
        folder = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "node2")
        shutil.copytree(os.path.join(_DIRECTORY, "node2"), folder)
        names = sorted(os.listdir(folder))[-2:]
        for name in names:
            shutil.copy(os.path.join(folder, name),
                        os.path.join(folder, name.replace(".h5", "-rank1-partial.h5")))
        code, out, _ = trend(folder)
        self.assertEqual(code, 0, "the whole files are there, too")
        self.assertEqual(trend(folder, folder)[0], 0, "nothing is lost that is named twice")
        for name in names:
            os.remove(os.path.join(folder, name))
        code, out, _ = trend(folder)
        self.assertEqual(code, 3)
        self.assertEqual(out.count("(mpi x 2) on node2: no time in the newest night: "), 3, out)

    def test_mistakes_are_one_line_and_exit_code_2(self):
        for arguments in ([], ["nowhere"], ["--night-gap=soon", _DIRECTORY],
                          ["--recent=0", _DIRECTORY], ["--min-change=x", _DIRECTORY]):
            code, out, err = trend(*arguments)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), (arguments, err))


if __name__ == "__main__":
    subprocess.run(["results/compare/example_nights", _DIRECTORY], check=True)
    unittest.main()
