#!/usr/bin/python3
"""A library that lies, hangs, exits or dawdles under bench_allreduce: each is found and named."""
import os
import signal
import sys
import unittest

import h5py

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch, text, with_enough_time

BENCH = "bench/bench_allreduce"
SHIM = os.path.abspath("bench/peers/libfaulty_allreduce.so")


def begin(kind, *arguments, bench=BENCH, call=51, rank=1, deadline="3"):
    """With a count of iterations: a time budget may be over before that call. Calls of odd numbers
    count; each is followed by one that does not, unless all are compared (-c full)."""
    environment = {"LD_PRELOAD": SHIM, "FAULTY_KIND": kind, "FAULTY_CALL": str(call),
                   "FAULTY_RANK": str(rank)}
    arguments = arguments or ("-n", "100")
    return Launch(bench, ["-b", "1K", "-e", "64K", "-T", deadline, *arguments],
                  environment=environment)


def run(kind, *arguments, **named):
    return begin(kind, *arguments, **named).finish()


def iterations_in(launch):
    with h5py.File(launch.path) as file:
        return int(file["summary"]["iterations"].sum())


class FaultTest(unittest.TestCase):
    def check_wrong(self, launch, count_from):
        first = launch.out.splitlines()[0]
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn("rank 1", first)
        self.assertIn("expected", first)
        with h5py.File(launch.path) as file:
            wrong = sum(int(row["wrong_elements"]) for row in file["summary"][:])
        self.assertGreaterEqual(wrong, count_from)
        self.assertEqual(launch.outcomes(), {0: "finished", 1: "corrupt"})
        self.assertEqual(launch.leftovers(), [])
        return wrong

    def test_added_half_is_found_and_located(self):
        self.check_wrong(run("add"), 2)

    def test_one_flipped_bit_is_found_and_located(self):
        self.assertEqual(self.check_wrong(run("flip"), 1), 1)
        # Which calls count is not known here: one of two that follow each other, or both.
        launch = with_enough_time(
            lambda budget_s: run("flips", f"--time-budget={budget_s}s",
                                 "--benchmark_filter=/1024$", call=11),
            lambda launch: iterations_in(launch) < 12, budget_s=20)
        self.assertIn(self.check_wrong(launch, 1), (1, 2))

    def test_a_full_check_misses_no_call(self):
        for call in (50, 51):
            launch = run("flip", "-c", "full", "-n", "100", call=call)
            self.assertEqual(self.check_wrong(launch, 1), 1)

    def test_what_sharded_training_uses_is_checked_too(self):
        for bench in ("bench/bench_allgather", "bench/bench_reduce_scatter"):
            self.assertEqual(self.check_wrong(run("flip", "-n", "100", bench=bench), 1), 1)

    def test_no_fault_is_silent(self):
        for bench in (BENCH, "bench/bench_allgather", "bench/bench_reduce_scatter"):
            launch = run("none", bench=bench)
            self.assertEqual(launch.code, 0, launch.out + launch.err)
            self.assertEqual(launch.outcomes(), {0: "finished", 1: "finished"})

    def test_a_call_that_never_returns_is_a_hang_of_that_rank(self):
        for kind in ("hang", "spin"):
            launch = run(kind, call=500)
            self.assertEqual(launch.code, 1, launch.out + launch.err)
            first = launch.out.splitlines()[0]
            self.assertIn("all_reduce 500", first)
            self.assertIn("(sequence ", launch.out)
            if kind == "hang":  # a busy rank cannot be told from one that polls for its peers
                self.assertIn("rank 1", first)
            self.assertEqual(launch.outcomes(), {0: "hung", 1: "hung"})
            self.assertNotIn("slow_rank", launch.out)  # it never went on
            with h5py.File(launch.path) as file:
                rows = sum(case["samples/round"].shape[0] for case in file["cases"].values())
            self.assertGreater(rows, 100)
            self.assertEqual(launch.leftovers(), [])

    def test_an_exit_is_reported_with_its_code(self):
        # Proved: a deadline that is longer than the launch may last is not waited for.
        launch = run("exit", deadline="600")
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        first = launch.out.splitlines()[0]
        self.assertIn("rank 1", first)
        self.assertIn("9", first)
        self.assertEqual(launch.outcomes(), {0: "hung", 1: "failed"})

    def test_a_crash_is_a_crash(self):
        launch = run("crash")
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertEqual(launch.outcomes(), {0: "hung", 1: "crashed"})

    def test_a_stop_is_told_at_once_and_survived(self):
        # It stops itself at a call that is known; the deadline is far from that.
        launch = begin("stop", deadline="100")
        try:
            line = ""
            while "was stopped" not in line:
                line = launch.process.stderr.readline()
                self.assertTrue(line, "the launch ended without a word of the stop")
        finally:
            for pid in launch.processes(worker=True):
                os.kill(pid, signal.SIGCONT)
        self.assertIn("rank 1", line)
        self.assertIn("kill -CONT", line)
        launch.finish()
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertIn("rank 1", launch.err)
        self.assertIn("was continued", launch.err)

    def test_a_slow_rank_is_not_a_hung_rank(self):
        launch = run("sleep", "-n", "200", deadline="60")
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        with h5py.File(launch.path) as file:
            rows = file["summary"][:]
        # It slept for six seconds: a load only adds.
        self.assertTrue([row for row in rows if row["max_ns"] > 5.9e9 and row["max_rank"] == 1])
        self.assertRegex(launch.out.splitlines()[0],
                         r"^PASS: rank 1 \(host .*, pid \d+\) slept in ")
        self.assertEqual({text(row["verdict"]) for row in rows}, {"pass"})
        self.assertEqual(launch.outcomes(), {0: "finished", 1: "finished"})


if __name__ == "__main__":
    unittest.main()
