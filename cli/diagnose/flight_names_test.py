#!/usr/bin/python3
"""`lockstep diagnose --flight-recorder` on folders as people have them: names with hosts, several
jobs in one folder, ranks without a dump."""

import csv
import json
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.getcwd())
# pylint: disable=wrong-import-position
from cli.diagnose.testing import flight_dumps
from cli.diagnose.testing.flight_dumps import dump, entry, steps
from cli.diagnose.testing.flight_folder import FlightTest, run


class Names(FlightTest):
    """Files as people name them, hosts and several jobs in one folder."""

    def hung(self, late, ranks=range(4), **how):
        """Dumps of `ranks` of a job of four, of which rank `late` does not come."""
        calls = steps(3, **how) + [entry(3, "all_reduce", 4, "started", retired=True, **how)]
        return {rank: dump(calls[:3] if rank == late else calls) for rank in ranks}

    def write(self, prefix, dumps):
        flight_dumps.write(self.directory, dumps, prefix=prefix)

    def test_names_with_hosts(self):
        self.write("nccl_trace_rank_node01_", self.hung(2, (0, 1)))
        self.write("nccl_trace_rank_node02_", self.hung(2, (2, 3)))
        code, findings, answer = self.found()
        self.assertEqual((1, [("rank_busy", [2], "suspected")]), (code, findings))
        self.assertEqual({"node01": [0, 1], "node02": [2, 3]}, answer["hosts"])
        self.assertEqual("nccl_trace_rank_*_", answer["prefix"])
        self.assertEqual([], answer["missing"])
        self.assertIn("one job on 2 hosts (node01: ranks 0 to 1; node02: ranks 2 to 3)",
                      answer["notes"][0])
        # As PyTorch's own analyzer takes it: a part of the names.
        self.assertEqual((1, findings), self.found("--prefix=nccl_trace_rank_")[:2])
        self.assertEqual([0, 1], self.found("--prefix=node02")[2]["missing"])

    def write_in(self, folder, dumps, prefix="nccl_trace_rank_"):
        flight_dumps.write(os.path.join(self.directory, folder), dumps, prefix=prefix)

    def refusal(self, *words):
        code, out, err = run("diagnose", "--flight-recorder", self.directory, *words)
        self.assertEqual((2, "", 1), (code, out, err.count("\n")), err)
        return err

    def test_a_folder_a_host(self):
        self.write_in("node01", self.hung(2, (0, 1)))
        self.write_in("node02", self.hung(2, (2, 3)))
        self.write_in("checkpoints", {})
        with open(os.path.join(self.directory, "checkpoints/step_12"), "wb") as file:
            file.write(b"weights")
        code, findings, answer = self.found()
        self.assertEqual((1, [("rank_busy", [2], "suspected")]), (code, findings))
        self.assertEqual({"node01": [0, 1], "node02": [2, 3]}, answer["hosts"])
        self.assertEqual(("*/nccl_trace_rank_", []), (answer["prefix"], answer["missing"]))
        self.assertEqual("by their folders the dumps are of one job on 2 hosts (node01: ranks 0 to "
                         "1; node02: ranks 2 to 3)", answer["notes"][0])
        # A rank in two folders: several jobs, or lifetimes of one.
        self.write_in("again", self.hung(2, (2, 3)))
        said = self.refusal()
        self.assertRegex(said, r"again/nccl_trace_rank_2 and .*/node02/nccl_trace_rank_2 are both "
                         r"of rank 2, so they are not of one job; name one folder, as .*/again, or")
        shutil.rmtree(os.path.join(self.directory, "again"))
        # Of the ranks of folders that names cannot tell apart, what is in the dumps decides.
        self.write_in("node02", {2: dump(steps(3), (("0", "default_pg", range(8)),))})
        self.assertIn("(of 8 and of 4 ranks)", self.refusal())

    def test_one_folder_is_as_if_it_were_named(self):
        self.write_in("lifetime_1", self.hung(2))
        self.assertEqual((1, [("rank_busy", [2], "suspected")]), self.found()[:2])

    def test_folders_without_a_dump(self):
        self.write_in("checkpoints", {})
        with open(os.path.join(self.directory, "checkpoints/step_12"), "wb") as file:
            file.write(b"weights")
        self.assertIn("holds no file whose name is a prefix and a rank", self.refusal())

    def test_a_host_without_an_underline_before_the_rank(self):
        """nccl_trace_rank_$(hostname): node02 and 5 are read as one number."""
        self.write("nccl_trace_rank_node0", {21: dump(steps(3)), 22: dump(steps(3))})
        self.assertIn("nccl_trace_rank_node021: rank 21 is none, because PyTorch writes no zeros "
                      "before a rank; if a host's name stands before the rank, put '_'",
                      self.refusal())
        shutil.rmtree(self.directory)
        self.write("nccl_trace_rank_node", {20: dump(steps(3)), 21: dump(steps(3))})
        self.assertIn("nccl_trace_rank_node20: rank 20 is none, because its job has ranks 0 to 3; "
                      "if a host's name", self.refusal())

    def test_a_host_is_missing(self):
        self.write("nccl_trace_rank_node02_", self.hung(None, (2, 3)))
        code, findings, answer = self.found()
        self.assertEqual([("rank_lost", [0, 1], "suspected")], findings)
        self.assertEqual((1, [0, 1]), (code, answer["missing"]))
        self.assertIn("its file was not collected", answer["findings"][0]["message"])
        self.assertIn("\n2 dumps of format 2.10, backend nccl, none of ranks 0 and 1: fail\n",
                      run("diagnose", "--flight-recorder", self.directory)[1])

    def test_several_jobs_are_judged_one_by_one(self):
        self.write("first_", self.hung(2))
        self.write("second_", self.hung(1))
        self.write("done_", {rank: dump(steps(3)) for rank in range(4)})
        code, out, err = run("diagnose", "--flight-recorder", self.directory, "--format=jsonl")
        self.assertEqual((1, ""), (code, err))
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([("done_", []), ("first_", [[2]]), ("second_", [[1]])], [
            (one["prefix"], [finding["culprits"] for finding in one["findings"]])
            for one in answers])
        code, out, _ = run("diagnose", "--flight-recorder", self.directory, "--format=csv")
        rows = [(row["case"], row["culprits"]) for row in csv.DictReader(out.splitlines())]
        self.assertEqual((1, [("done_", ""), ("first_", "2"), ("second_", "1")]), (code, rows))
        code, out, _ = run("diagnose", "--flight-recorder", self.directory)
        self.assertEqual((1, 1), (code, out.count("exit code")))
        self.assertIn("%s/second_\nFAIL: rank 1 has not called" % self.directory, out)
        self.assertEqual((0, []), self.found("--prefix=done_")[:2])

    def test_what_is_left_over_from_another_job_is_not_mixed_in(self):
        """Rank 3 has no dump of this job; one of yesterday lies there, under another host."""
        self.write("t_a_", self.hung(None, (0, 1, 2)))
        old = {3: dump(steps(3))}
        for fields in old[3]["entries"]:
            for name in ("time_created_ns", "time_discovered_started_ns",
                         "time_discovered_completed_ns"):
                fields[name] -= 86400 * 10 ** 9
        self.write("t_b_", old)
        code, out, err = run("diagnose", "--flight-recorder", self.directory)
        self.assertEqual((2, ""), (code, out))
        self.assertIn("are of two jobs (the last calls are 24.0 h apart); choose one with", err)
        self.assertEqual([("rank_lost", [3], "suspected")], self.found("--prefix=t_a_")[1])
        self.write("t_b_", {3: dump(steps(3), (("0", "default_pg", range(8)),))})
        self.assertIn("(of 8 and of 4 ranks)", run("diagnose", "--flight-recorder",
                                                   self.directory)[2])

    def test_other_files_are_left_alone(self):
        self.write("nccl_trace_rank_", self.hung(2))
        for name in ("core.1234", "worker_0", "events.out.17"):
            with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                file.write("step 12\n")
        code, findings, answer = self.found()
        self.assertEqual((1, [("rank_busy", [2], "suspected")]), (code, findings))
        self.assertIn("'core.' (1 file), 'events.out.' (1 file), 'worker_' (1 file)",
                      answer["notes"][0])


class MissingRanks(FlightTest):
    """A rank without a dump makes no other rank a culprit."""

    def test_the_last_rank_where_no_dump_tells_how_many_there_are(self):
        waits = steps(3) + [entry(3, "all_reduce", 4, "started", retired=True)]
        untold = (("0", "default_pg", ()),)
        code, findings, answer = self.judge({rank: dump(waits, untold) for rank in range(3)})
        self.assertEqual((3, [("unknown", [], "suspected")]), (code, findings))
        self.assertIn("do not say how many ranks the job has: one above rank 2",
                      answer["findings"][0]["message"])
        # Told, it is a stall of the links, or the missing rank.
        groups = (("0", "default_pg", range(3)),)
        shutil.rmtree(self.directory)
        self.assertEqual((1, [("transport_stall", [], "suspected")]),
                         self.judge({rank: dump(waits, groups) for rank in range(3)})[:2])
        shutil.rmtree(self.directory)
        self.assertEqual((1, [("rank_lost", [3], "suspected")]),
                         self.judge({rank: dump(waits) for rank in range(3)})[:2])

    def test_who_waits_for_a_rank_without_a_dump_is_not_to_blame(self):
        """Rank 2 waits for rank 3 in their group; 0 and 1 wait for rank 2."""
        groups = (("0", "default_pg", range(4)), ("1", "pair", (2, 3)))
        world = steps(3) + [entry(3, "all_reduce", 4, "started", retired=True)]
        pair = steps(3) + [entry(3, "all_reduce", 1, "started", retired=True,
                                 process_group=("1", "pair"))]
        dumps = {0: dump(world, groups), 1: dump(world, groups), 2: dump(pair, groups)}
        code, findings, answer = self.judge(dumps)
        self.assertNotIn([2], [culprits for cause, culprits, _ in findings if cause != "unknown"],
                         answer["findings"])
        self.assertIn([3], [culprits for _, culprits, _ in findings])
        self.assertEqual([3], answer["missing"])
        self.assertIn(code, (1, 3))

    def test_all_done_but_a_dump_is_missing(self):
        code, findings, answer = self.judge({rank: dump(steps(3)) for rank in (0, 2)})
        self.assertEqual((3, [("unknown", [1, 3], "suspected")]), (code, findings))
        self.assertEqual([1, 3], answer["missing"])


if __name__ == "__main__":
    unittest.main()
