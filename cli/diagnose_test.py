#!/usr/bin/env python3
"""`lockstep diagnose` from the outside: a stored history, its culprit, its trace, its exit code."""

import csv
import json
import os
import subprocess
import tempfile
import unittest

_LOCKSTEP = "cli/lockstep"
_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def path_of(name):
    return os.path.join(_DIRECTORY, name + ".h5")


def diagnose(*arguments):
    done = subprocess.run([_LOCKSTEP, "diagnose"] + list(arguments), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


class DiagnoseTest(unittest.TestCase):
    def test_every_cause_is_found_again_with_its_exit_code(self):
        for name, code, cause, culprits in (("uneven_inputs", 1, "uneven_inputs", [0]),
                                            ("join_barrier", 1, "collective_mismatch", [0, 1]),
                                            ("killed", 1, "rank_killed", [1]),
                                            ("stopped", 1, "rank_stopped", [1]),
                                            ("stall", 1, "transport_stall", []),
                                            ("early", 3, None, None),
                                            ("healthy", 0, None, None)):
            got, out, err = diagnose(path_of(name), "--format=jsonl")
            self.assertEqual((got, err), (code, ""), name)
            findings = json.loads(out)["findings"]
            if cause is None:
                self.assertEqual(findings, [], name)
            else:
                self.assertEqual(findings[0]["cause"], cause)
                self.assertEqual(findings[0]["culprits"], culprits)

    def test_a_note_fails_no_case_and_what_the_run_could_not_tell_stays_unknown(self):
        for name, code, word, cause in (("slow_link", 0, "PASS", "slow_link"),
                                        ("no_memory", 3, "INCONCLUSIVE", "out_of_memory"),
                                        ("agent_lost", 3, "INCONCLUSIVE", "agent_lost")):
            got, out, _ = diagnose(path_of(name))
            self.assertEqual((got, out.splitlines()[0]), (code, word + ": ranks 0 and 1"), out)
            self.assertIn(f"  {cause} (", out)

    def test_a_slow_rank_is_a_note_where_nothing_failed(self):
        for name, code, notes, said in (("slow_rank", 0, ["slow_rank"], 1),
                                        ("slow_and_killed", 1, [], 0)):
            got, out, _ = diagnose(path_of(name))
            self.assertEqual((got, out.count("  note: slow_rank (proved, ranks 1): ")),
                             (code, said), out)
            answer = json.loads(diagnose(path_of(name), "--format=jsonl")[1])
            self.assertEqual([note["cause"] for note in answer["notes"]], notes)

    def test_csv_has_a_row_a_finding_and_one_where_nothing_was_found(self):
        code, out, err = diagnose(path_of("killed"), path_of("healthy"), "--format=csv")
        self.assertEqual((code, err), (1, ""))
        killed, healthy = csv.DictReader(out.splitlines())
        self.assertEqual([killed[key] for key in ("source", "verdict", "cause", "certainty",
                                                  "culprits")],
                         [path_of("killed"), "fail", "rank_killed", "proved", "1"])
        self.assertNotEqual(killed["headline"], "")
        self.assertEqual((healthy["verdict"], healthy["cause"]), ("pass", ""))

    def test_text_with_the_trace(self):
        code, out, _ = diagnose(path_of("join_barrier"), "--rows=1")
        self.assertEqual(code, 1)
        lines = out.splitlines()
        self.assertEqual(lines[0], "FAIL: rank 1 calls barrier 1 where rank 0 calls all_reduce 4 "
                                   "(join: alive): they cannot go on")
        self.assertEqual(lines[1], "Lifetime 0, 2 ranks, backend gloo: fail")
        self.assertIn("collective_mismatch (proved, ranks 0,1): ", lines[2])
        self.assertIn("-> Call no collectives of your own inside join()", lines[3])
        self.assertEqual([" ".join(line.split()) for line in lines[-4:]],
                         ["seq rank 0 rank 1",
                          "2 all_reduce f32[2] bucket 0 done all_reduce f32[2] bucket 0 done",
                          "> 3 all_reduce f32[1] join: alive WAITS barrier WAITS",
                          "exit code 1"])

    def test_a_specific_cause_shows_its_evidence(self):
        _, out, _ = diagnose(path_of("uneven_inputs"))
        self.assertIn("uneven_inputs (proved, ranks 0): rank 0 had inputs for 5 iterations", out)
        self.assertIn("evidence: rank_exited (proved, ranks 0)", out)
        self.assertIn("(exited with code 0)", out)

    def test_whom_a_rank_waits_for_is_said_once(self):
        _, out, _ = diagnose(path_of("killed"))
        self.assertEqual(out.count("waiting for rank 1, which was killed by SIGKILL"), 1)
        self.assertIn("stopped", diagnose(path_of("stopped"))[1])

    def test_other_rules_and_another_deadline(self):
        code, out, _ = diagnose(path_of("join_barrier"), "--backend=nccl")
        self.assertEqual(code, 1)
        self.assertIn("runs a barrier as an all_reduce of one f32", out)
        self.assertEqual(diagnose(path_of("stall"), "--timeout=60")[0], 3)
        self.assertEqual(diagnose(path_of("early"), "--timeout=0.5")[0], 1)

    def test_several_files_and_the_worst_of_them(self):
        code, out, _ = diagnose(path_of("healthy"), path_of("early"))
        self.assertEqual(code, 3)
        self.assertIn("early.h5\n", out)
        self.assertEqual(diagnose(path_of("early"), path_of("killed"), path_of("healthy"))[0], 1)

    def test_mistakes(self):
        for arguments, code, words in (
                ([os.path.join(_DIRECTORY, "none.h5")], 2, "none.h5"),
                ([path_of("passing")], 2, "holds no history of any rank"),
                ([path_of("killed"), "--backend=smoke"], 2, "--backend"),
                ([path_of("killed"), "--timeout=-1"], 2, "--timeout"),
                ([], 2, "RUN")):
            got, out, err = diagnose(*arguments)
            self.assertEqual((got, out), (code, ""), arguments)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(words, err)


if __name__ == "__main__":
    for program in ("cli/diagnose/examples", "results/example_runs"):
        subprocess.run([program, _DIRECTORY], check=True)
    unittest.main()
