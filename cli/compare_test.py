#!/usr/bin/env python3
"""`lockstep compare` from the outside: its verdicts, formats and exit codes, on made-up runs and on
real launches."""

import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

_LOCKSTEP = "cli/lockstep"
_BENCH = "bench/bench_allreduce"
_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


_VERSION = subprocess.run([_LOCKSTEP, "--version"], stdout=subprocess.PIPE, check=True,
                          text=True).stdout.strip().partition(" ")[2]


def path_of(*names):
    return os.path.join(_DIRECTORY, *names)


def compare(*arguments):
    done = subprocess.run([_LOCKSTEP, "compare"] + list(arguments), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def compare_json(*arguments):
    code, out, err = compare("--format=json", *arguments)
    assert err == "", err
    result = json.loads(out)
    assert result["exit_code"] == code
    return code, result, {one["case"]: one for one in result["cases"]}


def launch(folder, name):
    """One real launch."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command = ["timeout", "600", "mpirun", "--oversubscribe", "--bind-to", "none", "--mca",
               "mpi_yield_when_idle", "1", "-np", "2"] + root
    command += [_BENCH, "-b", "64K", "-e", "64K", "-n", "2000", "--no-progress", "--output",
                os.path.join(folder, name + ".h5")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class VerdictTest(unittest.TestCase):
    def test_each_case_has_its_verdict(self):
        code, result, cases = compare_json(path_of("base"), path_of("candidate"))
        self.assertEqual(code, 5)
        self.assertEqual({name: one["verdict"] for name, one in cases.items()},
                         {"all_reduce/slower": "slower", "all_reduce/faster": "faster",
                          "all_reduce/fails": "ambiguous", "all_reduce/same": "same",
                          "all_reduce/missing": "missing", "broadcast/noisy": "ambiguous"})
        self.assertEqual(result["cases"][0]["case"], "all_reduce/fails")  # outcomes first
        self.assertEqual(cases["all_reduce/fails"]["outcome_change"], "worse")
        self.assertIn("fail: rank_stopped; rank 1 hung (1 of 8 launches",
                      cases["all_reduce/fails"]["why"])
        effect = cases["all_reduce/slower"]["effect"]
        self.assertAlmostEqual(effect["estimate"], 0.10, delta=0.015)
        self.assertLess(effect["low"], effect["estimate"])
        self.assertGreater(effect["high"], effect["estimate"])
        self.assertRegex(cases["broadcast/noisy"]["resolve"],
                         r"^\d+ more launches a side$|a quieter machine")
        self.assertIn("not in candidate", cases["all_reduce/missing"]["why"])
        self.assertTrue(result["interleaved"])
        self.assertEqual(result["differences"],
                         [{"fact": "host/driver", "base": "570", "candidate": "580"},
                          {"fact": "software/lockstep", "base": "1.2.3 (1a2b3c4)",
                           "candidate": "1.3.0 (5d6e7f8, modified)"}])

    def test_another_version_of_lockstep_is_said(self):
        said = "measured by different versions of Lockstep: 1.2.3 (1a2b3c4) -> 1.3.0 (5d6e7f8, mod"
        _, result, _ = compare_json(path_of("base"), path_of("candidate"))
        self.assertEqual((said + "ified)", _VERSION), (result["other_version"],
                                                       result["lockstep"]))
        for form in ("text", "markdown"):
            _, out, _ = compare("--format=" + form, path_of("base"), path_of("candidate"))
            self.assertIn("The sides were " + said, out)
            _, out, _ = compare("--format=" + form, path_of("base"), path_of("same"))
            self.assertNotIn("different versions", out)
        self.assertEqual("", compare_json(path_of("base"), path_of("same"))[1]["other_version"])

    def test_what_did_not_change_passes_and_faster_is_no_failure(self):
        code, _, cases = compare_json("--cases=all_reduce/same", path_of("base"), path_of("same"))
        self.assertEqual((code, cases["all_reduce/same"]["verdict"]), (0, "same"))
        code, _, cases = compare_json("--cases=all_reduce/faster", path_of("base"),
                                      path_of("candidate"))
        self.assertEqual((code, cases["all_reduce/faster"]["verdict"]), (0, "faster"))

    def test_a_failure_that_is_gone_is_no_failure(self):
        code, _, cases = compare_json("--cases=all_reduce/fails", path_of("candidate"),
                                      path_of("base"))
        self.assertEqual(cases["all_reduce/fails"]["outcome_change"], "better")
        self.assertEqual(code, 0)

    def test_missing_and_ambiguous_fail_closed(self):
        for case, other in (("all_reduce/missing", "candidate"), ("broadcast/noisy", "same"),
                            ("no_such_case", "same")):
            code, _, _ = compare_json("--cases=" + case, path_of("base"), path_of(other))
            self.assertEqual(code, 3, case)

    def test_the_minimum_effect_of_a_case(self):
        only = ["--cases=all_reduce/slower", path_of("base"), path_of("candidate")]
        self.assertEqual(compare("--min-effect=20%", *only)[0], 0)
        self.assertEqual(compare("--min-effect=20%", "--min-effect=all_reduce/*=3%", *only)[0], 5)
        self.assertEqual(compare("--min-effect=3%", "--min-effect", "*/slower=0.2", *only)[0], 0)
        rules = path_of("rules.toml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write('min_effect = ["3%", "*/slower=20%"]\n')
        self.assertEqual(compare("--min-effect-file", rules, *only)[0], 0)

    def test_sides_as_files_directories_and_globs(self):
        some = sorted(glob.glob(path_of("base", "*.h5")))
        for arguments in ([path_of("base", "*.h5"), path_of("candidate", "*.h5")],
                          some + ["--", path_of("candidate")],
                          ["--base"] + some + ["--candidate", path_of("candidate")]):
            code, result, _ = compare_json(*arguments)
            self.assertEqual((code, result["launches"]), (5, {"base": 8, "candidate": 8}))

    def test_three_launches_decide_nothing(self):
        base = sorted(glob.glob(path_of("base", "*.h5")))[:3]
        other = sorted(glob.glob(path_of("candidate", "*.h5")))[:3]
        code, _, cases = compare_json("--cases=all_reduce/slower", *base, "--", *other)
        self.assertEqual((code, cases["all_reduce/slower"]["verdict"]), (3, "ambiguous"))
        self.assertRegex(cases["all_reduce/slower"]["resolve"], r"^\d+ more launches? a side$")


class FormatTest(unittest.TestCase):
    def test_the_table(self):
        code, out, err = compare(path_of("base"), path_of("candidate"))
        self.assertEqual((code, err), (5, ""))
        lines = out.splitlines()
        self.assertTrue(lines[0].startswith("REGRESSION: 1 outcome worse, 1 slower"), out)
        self.assertTrue(lines[3].startswith("FAILS NOW  all_reduce/fails"), out)
        self.assertIn("host/driver: 570 -> 580", out)
        self.assertEqual(lines[-1], "exit code 5")

    def test_markdown(self):
        _, out, _ = compare("--format=markdown", path_of("base"), path_of("candidate"))
        self.assertIn("| **slower** | all\\_reduce/slower | 998 us | 1.1 ms | +10.6 % (", out)

    def test_junit(self):
        _, out, _ = compare("--format=junit", path_of("base"), path_of("candidate"))
        suite = xml.etree.ElementTree.fromstring(out).find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")),
                         ("6", "2", "2"))
        passed = [case.get("name") for case in suite if len(case) == 0]
        self.assertEqual(sorted(passed), ["all_reduce/faster", "all_reduce/same"])


class InputTest(unittest.TestCase):
    def test_mistakes_are_one_line_and_exit_code_2(self):
        base, candidate = path_of("base"), path_of("candidate")
        os.makedirs(path_of("nothing"), exist_ok=True)
        for arguments, word in (([base], "candidate"), ([base, base, base], "candidate"),
                                ([base, "--"], "candidate"), ([base, base], "both sides"),
                                ([base, path_of("none.h5")], "none.h5"),
                                ([base, path_of("nothing")], "nothing"),
                                (["--min-effect=much", base, candidate], "much"),
                                (["--min-effect==3%", base, candidate], "=3%"),
                                (["--min-effect-file=no.toml", base, candidate], "no.toml"),
                                (["--launch-drift=-1", base, candidate], "-1"),
                                (["--format=xml", base, candidate], "xml")):
            code, out, err = compare(*arguments)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), (arguments, err))
            self.assertIn(word, err)

    def test_a_file_that_cannot_be_read_fails_closed(self):
        folder = path_of("damaged")
        shutil.copytree(path_of("same"), folder)
        with open(os.path.join(folder, "bad.h5"), "w", encoding="utf-8") as file:
            file.write("no run\n")
        code, out, _ = compare("--cases=all_reduce/same", path_of("base"), folder)
        self.assertEqual(code, 3)
        self.assertIn("bad.h5: not an HDF5 file of Lockstep", out)


class RealLaunchesTest(unittest.TestCase):
    """Files of real launches. Whether one that is really slower is called so, is a matter of
    scripts/benchmarks."""

    def test_the_case_of_both_sides_is_judged(self):
        for side in ("real_base", "real_new"):
            os.makedirs(path_of(side))
            for i in range(5):
                launch(path_of(side), str(i))
        code, result, cases = compare_json(path_of("real_base"), path_of("real_new"))
        (case,) = cases.values()
        self.assertEqual(code, {"same": 0, "faster": 0, "ambiguous": 3, "slower": 5}[
            case["verdict"]], result)
        self.assertTrue(case["why"], result)


if __name__ == "__main__":
    subprocess.run(["results/compare/example_sides", _DIRECTORY], check=True)
    unittest.main()
