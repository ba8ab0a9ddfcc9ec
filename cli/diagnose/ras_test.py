#!/usr/bin/python3
"""`lockstep diagnose --ras` against a service that speaks as NCCL's does, on kept answers, and
beside dumps of the Flight Recorder."""
import csv
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.getcwd())
# pylint: disable=wrong-import-position
from cli.diagnose.testing import flight_dumps
from cli.diagnose.testing.flight_dumps import dump, entry, steps
from cli.diagnose.testing.flight_folder import FlightTest
from cli.diagnose.testing.ras_service import Service, answer

LOCKSTEP = "cli/lockstep"
TEXT = """NCCL version 2.26.5 compiled with CUDA 12.8

Communicators... (0.00s)
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  Rank 0 has launched up to operation 7 -- GPU 0 managed by process 11 on node 10.0.0.1
  Rank 1 has launched up to operation 6 -- GPU 1 managed by process 12 on node 10.0.0.2
"""


def diagnose(*words):
    done = subprocess.run([LOCKSTEP, "diagnose", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class RasTest(unittest.TestCase):
    def kept(self, text):
        handle, path = tempfile.mkstemp(dir=os.environ.get("TEST_TMPDIR"))
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_a_rank_that_is_behind_in_both_looks(self):
        service = Service([answer([412, 411, 412])] * 2)
        code, out, err = diagnose("--ras", service.address, "--ras-interval=0.1")
        self.assertEqual((code, err), (3, ""), out)
        lines = out.splitlines()
        self.assertEqual(lines[0],
                         "INCONCLUSIVE: rank 1 (pid 101 on 10.0.0.1) launched 411 AllReduce, "
                         "2 ranks 412; no launch between the looks")
        self.assertIn("NCCL 2.29.2, 1 communicator: a suspicion at most", lines[1])
        self.assertIn("rank_busy (suspected, ranks 1)", out)
        self.assertEqual(lines[-1], "exit code 3")
        self.assertEqual(service.heard, ["CLIENT PROTOCOL 2", "SET FORMAT json",
                                         "VERBOSE STATUS"] * 2)

    def test_a_job_that_goes_on(self):
        service = Service([answer([5, 6]), answer([7, 6])])
        code, out, _ = diagnose("--ras", service.address, "--ras-interval=0.1", "--format=jsonl")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out)["verdict"], "pass")

    def test_text_of_an_older_nccl(self):
        service = Service([TEXT] * 2, knows_json=False)
        code, out, _ = diagnose("--ras", service.address, "--ras-interval=0.1")
        self.assertEqual(code, 3)
        self.assertIn("rank 1 (pid 12 on 10.0.0.2) launched 6 AllReduce, rank 0 7", out)

    def test_a_rank_that_does_not_answer(self):
        for version in ("2.28.7", "2.30.7"):
            service = Service([answer([5], missing=[1], version=version)] * 2)
            code, out, err = diagnose("--ras", service.address, "--ras-interval=0.1")
            self.assertEqual((code, err), (3, ""), out)
            self.assertIn("rank_lost (suspected, ranks 1): rank 1 (pid 101 on 10.0.0.2) does not "
                          "answer NCCL's RAS", out)

    def test_kept_answers(self):
        first, second = self.kept(answer([5, 5])), self.kept(answer([5, 5]))
        code, out, _ = diagnose("--ras", first, "--ras", second)
        self.assertEqual(code, 3)
        self.assertIn("INCONCLUSIVE: all ranks launched the same and nothing since", out)
        code, out, _ = diagnose("--ras", first, "--ras", second, "--format=csv")
        rows = list(csv.DictReader(out.splitlines()))
        self.assertEqual((code, rows[0]["source"], rows[0]["backend"]), (3, first, "nccl"))

    def test_what_is_wrong_is_one_line(self):
        silent = socket.create_server(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        silent.close()
        one = self.kept(answer([1]))
        for words, expected, said in (
                (["--ras", "127.0.0.1:%d" % port], 4, "what is NCCL_RAS_ADDR?"),
                (["--ras", one], 2, "one look shows no progress"),
                (["--ras", one, "--ras", self.kept("hello")], 2, "no status of NCCL's RAS"),
                (["--ras", one, "--ras", one, "--ras", one], 2, "is given 3 times"),
                (["--ras", "localhost:99999"], 2, "99999 is no port; write HOST:PORT"),
                (["--ras", "localhost", "run.h5"], 2, "--ras goes without")):
            code, out, err = diagnose(*words)
            self.assertEqual((code, out), (expected, ""), words)
            self.assertIn(said, err)
            self.assertEqual(err.count("\n"), 1, err)


class WithDumps(FlightTest):
    """Rank 2 of four has not come to the fourth all_reduce, by the dumps; or all calls are done."""

    def heard(self, counts, late=2, prefix="nccl_trace_rank_", *words):
        calls = steps(3) + ([] if late is None else [entry(3, "all_reduce", 4, "started",
                                                           retired=True)])
        flight_dumps.write(self.directory, {
            rank: dump(calls[:3] if rank == late else calls) for rank in range(4)}, prefix=prefix)
        looks = []
        for number in (1, 2):
            looks += ["--ras", self.directory + ".ras%d" % number]
            with open(looks[-1], "w", encoding="utf-8") as file:
                file.write(answer(counts))
        return diagnose("--flight-recorder", self.directory, *looks, *words)

    def test_ras_agrees_with_the_dumps(self):
        code, out, err = self.heard([4, 4, 3, 4])
        self.assertEqual((code, err), (1, ""), out)
        self.assertRegex(out, r"\AFAIL: rank 2 has not called all_reduce")
        self.assertEqual(out.count("rank_busy (suspected, ranks 2)"), 1, out)
        self.assertIn("  note: NCCL's RAS suspects the same: rank 2 (pid 102 on 10.0.0.1) launched "
                      "3 AllReduce, 3 ranks 4;", out)

    def test_ras_saw_the_same_counts(self):
        code, out, _ = self.heard([4, 4, 4, 4])
        self.assertEqual(code, 1)
        self.assertIn("  note: NCCL's RAS: all ranks launched the same and nothing since", out)

    def test_ras_suspects_whom_no_dump_blames(self):
        code, out, _ = self.heard([3, 2, 3, 3], None, "nccl_trace_rank_", "--format=jsonl")
        found = json.loads(out)
        self.assertEqual((code, found["verdict"]), (3, "unknown"))
        self.assertEqual([(one["cause"], one["culprits"], one["certainty"])
                          for one in found["findings"]], [("rank_busy", [1], "suspected")])
        self.assertEqual(found["ras"]["nccl_version"], "2.29.2")
        self.assertEqual(self.heard([3, 3, 3, 3], None)[0], 0)

    def test_dumps_of_two_jobs_are_refused(self):
        self.heard([4, 4, 3, 4], 2, "first_")
        code, out, err = self.heard([4, 4, 3, 4], 2, "second_")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("holds dumps of 2 jobs, and RAS is of one; choose one with --prefix", err)
        self.assertEqual(err.count("\n"), 1, err)


if __name__ == "__main__":
    unittest.main()
