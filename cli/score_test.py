#!/usr/bin/env python3
"""`lockstep score` on real runs of stress, and on what it must refuse."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

_LOCKSTEP = "cli/lockstep"
_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

_LOOP = 'ranks = 2\n[workload]\nkind = "all_reduce_loop"\nrounds = 10\n'
_KILL = _LOOP + '[[fault]]\nkind = "kill"\nrank = 1\nat = "iteration:3"\n'


def path_of(name):
    return os.path.join(_DIRECTORY, name)


def stress(name, scenarios, *arguments):
    """Runs scenarios given as texts by name; returns the result file."""
    for scenario, text in scenarios.items():
        with open(path_of(scenario + ".toml"), "w", encoding="utf-8") as file:
            file.write('name = "own/%s"\n%s' % (scenario, text))
    output = path_of(name)
    command = ["timeout", "600", "mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none",
               "--mca", "mpi_yield_when_idle", "1", "stress/stress", "--output=" + output]
    command += ["--scenario=" + path_of(scenario + ".toml") for scenario in scenarios]
    subprocess.run(command + list(arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=False)
    return output


def score(*arguments):
    done = subprocess.run([_LOCKSTEP, "score"] + list(arguments), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


class ScoreTest(unittest.TestCase):
    def test_right_findings_of_real_runs(self):
        expected = '[expect.any]\nranks = [["hung", "failed"], "killed"]\n' \
                   'cause = "rank_killed"\nculprits = [1]\n'
        path = stress("right.h5", {"healthy": _LOOP, "kill": _KILL + expected}, "--repeat=3")
        code, out, err = score(path)
        print(out)
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("PASS: 3 of 3 faults found, cause right in 3 of 3; "), out)
        self.assertIn("; 0 false alarms in 3 healthy runs\n", out)
        self.assertIn("; proved 3 times, p50 ", out)
        code, out, _ = score(path, "--format=json")
        self.assertEqual(code, 0)
        rows = {row["cause"]: row for row in json.loads(out)["rows"]}
        self.assertEqual(rows["(healthy)"]["trials"], 3)
        self.assertEqual(rows["rank_killed"]["culprits_right"], {"right": 3, "of": 3})
        self.assertEqual(rows["rank_killed"]["timed"], 3)
        self.assertGreater(rows["rank_killed"]["seconds_max"], 0)

    def test_what_the_scenario_says_decides(self):
        wrong = stress("wrong.h5", {
            "other_cause": _KILL + '[expect.any]\nranks = [["hung", "failed"], "killed"]\n'
                                   'cause = "rank_stopped"\nculprits = [0]\n'})
        code, out, _ = score(wrong)
        self.assertEqual(code, 1)
        self.assertIn("own/other_cause (gloo): wrong cause, culprits", out)
        silent = stress("silent.h5", {
            "silent": _LOOP + '[[fault]]\nkind = "kill"\nrank = 1\nat = "iteration:99"\n'})
        code, out, _ = score(silent)
        self.assertEqual(code, 3)
        self.assertIn("nothing can be said: the fault did not fire", out)
        code, out, _ = score(wrong, silent)
        self.assertEqual(code, 1, "a failure outweighs what nobody knows")

    def test_what_is_no_stress_run_is_one_line_and_exit_code_2(self):
        for arguments, part in (([path_of("missing.h5")], "missing.h5"),
                                ([path_of("passing.h5")], "holds no trials"),
                                ([], "--help"),
                                (["--format=xml", path_of("passing.h5")], "--format")):
            code, out, err = score(*arguments)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), arguments)
            self.assertIn(part, err)

    def test_a_run_counts_once(self):
        path = stress("once.h5", {"healthy": _LOOP})
        shutil.copy(path, path_of("twice.h5"))
        code, out, err = score(path, path_of("twice.h5"))
        self.assertEqual((code, out), (2, ""))
        self.assertIn("twice.h5: the same run as", err)


if __name__ == "__main__":
    subprocess.run(["results/example_runs", _DIRECTORY], check=True)
    unittest.main()
