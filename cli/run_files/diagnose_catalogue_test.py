#!/usr/bin/python3
"""`lockstep diagnose` says of every case of a stress run what the run itself said of it."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import mutated_files
except ImportError as error:
    print("SKIPPED: %s; apt-get install python3-h5py" % error)
    sys.exit(0)

LOCKSTEP = "cli/lockstep"
STRESS = "stress/stress"
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
MPIRUN = ["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root",
          "--mca", "mpi_yield_when_idle", "1"]


def finding_of(cause, culprits, proved):
    return cause, sorted(culprits), bool(proved)


def names_a_culprit(headline, culprits):
    """Of "ranks 0, 2-4 and 7 …" any of the five; or a link, or a host."""
    named = set()
    for ranks in re.findall(r"\branks? ([-\d, ]*(?:and [-\d]+)?)", headline):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", ranks):
            named.update(range(int(first), int(last or first) + 1))
    return "link " in headline or headline.startswith("host ") or bool(named & set(culprits))


def stored_in(path):
    """By case: its name, the findings, and whether ranks recovered."""
    cases = {}
    with h5py.File(path) as run:
        for index in range(len(run["cases"])):
            cases[index] = (run[f"cases/{index}"].attrs["name"], [], [])
        for row in run["verdicts/findings"][:]:
            if row["case"] >= 0:
                culprits = row["culprits"].decode()
                cases[row["case"]][1].append(finding_of(
                    row["cause"].decode(), map(int, culprits.split(",") if culprits else []),
                    row["proved"]))
        for row in run["recovery"][:]:
            cases[row["case"]][2].append(row["outcome"])
    return cases


def diagnose(path, *arguments):
    done = subprocess.run([LOCKSTEP, "diagnose", path, *arguments], capture_output=True,
                          text=True)
    assert done.returncode in (0, 1, 3) and done.stderr == "", (done.returncode, done.stderr)
    return done.stdout


def diagnosed(path, *arguments):
    return [json.loads(line) for line in diagnose(path, "--format=jsonl", *arguments).splitlines()]


class CatalogueTest(unittest.TestCase):
    def run_stress(self, name, launcher, arguments):
        path = os.path.join(FOLDER, name)
        done = subprocess.run([*launcher, STRESS, *arguments, "--output=" + path, "--no-progress"],
                              capture_output=True, text=True)
        # What a busy machine made of a case does not matter: only that both say the same of it.
        self.assertIn(done.returncode, (0, 1, 3), done.stdout + done.stderr)
        return path

    def expect_the_same(self, path, deadline):
        cases = stored_in(path)
        for rules in ((), ("--timeout=" + deadline,)):
            told = diagnosed(path, *rules)
            self.assertEqual(len(told), len(cases))
            for case in told:
                name, findings, recovered = cases[case["lifetime"]]
                said = [finding_of(f["cause"], f["culprits"], f["certainty"] == "proved")
                        for f in case["findings"]]
                self.assertEqual(case["case"], name)
                for finding in case["findings"]:
                    self.expect_a_headline(finding)
                self.assertEqual(case["judged_again"], bool(rules) and not recovered, name)
                self.assertEqual(case["whole_evidence"], not recovered, name)
                # A slow link is a note on how bytes came, of which a file keeps no more than this.
                if rules:
                    findings = [f for f in findings if f[0] != "slow_link"]
                self.assertEqual(said, findings, (name, rules))
        return cases

    def expect_a_headline(self, finding):
        headline = finding["headline"]
        self.assertIn(len(headline.split()), range(1, 26), finding)
        self.assertNotIn("\n", headline)
        if finding["culprits"]:
            self.assertTrue(names_a_culprit(headline, finding["culprits"]), finding)
        for general in finding.get("evidence", []):
            self.expect_a_headline(general)

    def test_in_simulation(self):
        # All but the largest models: only their buckets are larger.
        path = self.run_stress("sim.h5", [], ["--backend=sim", "--ranks=2", "[!m]*/*",
                                              "mismatch/*", "models/[!bgr]*"])
        self.assertGreater(len(self.expect_the_same(path, "5")), 100)

    def test_on_gloo(self):
        path = self.run_stress("gloo.h5", MPIRUN, [
            "--backend=gloo", "-T", "2", "uneven_inputs/*", "buffers/*", "mismatch/*", "groups/*",
            "imbalance/*", "isolation/*", "recovery/*", "links/*"])
        cases = self.expect_the_same(path, "2")
        self.assertGreater(len(cases), 80)
        self.expect_what_a_person_reads(path, cases)
        self.expect_the_same_of_an_older_file(path, cases)

    def expect_what_a_person_reads(self, path, cases):
        lines = diagnose(path).splitlines()
        for before, line in zip(lines, lines[1:]):
            said = before.startswith(("FAIL: ", "INCONCLUSIVE: "))
            if said and ", 2 ranks, backend gloo: " in line:
                self.assertLessEqual(len(before.split()), 25)
        heads = [line for line in diagnose(path).splitlines()
                 if ", 2 ranks, backend gloo: " in line]
        self.assertEqual([head.split(",")[0] for head in heads],
                         [cases[index][0] for index in sorted(cases)])

    def expect_the_same_of_an_older_file(self, path, cases):
        with h5py.File(path, "r+") as run:
            del run["verdicts/evidence"], run["verdicts/sockets"]
        mutated_files.seal(path)
        for case in diagnosed(path):
            said = [finding_of(f["cause"], f["culprits"], f["certainty"] == "proved")
                    for f in case["findings"]]
            self.assertEqual(said, cases[case["lifetime"]][1], case["case"])
            self.assertFalse(case["whole_evidence"])
        self.assertIn("judged again, by the journals: the file lacks",
                      diagnose(path, "--backend=mpi"))


if __name__ == "__main__":
    unittest.main()
