#!/usr/bin/python3
"""Workers killed and stopped at random moments: every file readable, every outcome right, nothing
left. KILL_TEST_SEED repeats a failure; KILL_TEST_TRIALS asks for more."""
import contextlib
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch, with_enough_time

BENCH = "bench/bench_allreduce"
SEED = int(os.environ.get("KILL_TEST_SEED", time.time_ns() % 1_000_000))
TRIALS = int(os.environ.get("KILL_TEST_TRIALS", "4"))


def has_rank(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return b"OMPI_COMM_WORLD_RANK=" in file.read()


class KillTest(unittest.TestCase):
    def struck(self, backend, delay, strike, **how):
        """A launch that was not over before strike(launch, {rank: worker}); it has ended."""
        def launched(budget_s):
            # A precision that is never reached: the run lasts until the fault or the budget.
            launch = Launch(BENCH, ["-b", "8", "-e", "256K", "-T", "5", "--precision", "0.0001",
                                    "--time-budget", str(budget_s), "--backend", backend], **how)
            # It may be over before its workers are seen, or while they are.
            with contextlib.suppress(AssertionError, FileNotFoundError, ProcessLookupError):
                workers = launch.await_workers()
                time.sleep(delay)  # a moment that is drawn: any is right
                strike(launch, workers)
                launch.note_hit(budget_s)
            return launch.finish()
        return with_enough_time(launched, Launch.was_over_before, budget_s=10)

    def trial(self, backend, fault, rank, delay):
        launch = self.struck(backend, delay, lambda _, workers: os.kill(workers[rank], fault))
        expected = "stopped" if fault == signal.SIGSTOP else "killed"
        self.assertEqual(launch.outcomes()[rank], expected, launch.out + launch.err)
        self.assertIn(launch.outcomes()[1 - rank], ["hung", "failed", "finished"])
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn(f"rank {rank}", launch.out.splitlines()[0])
        self.assertEqual(launch.leftovers(), [])

    def test_a_batch_system_that_ends_every_process_is_no_fault_of_a_rank(self):
        def end_all(launch, workers):
            agents = [pid for pid in launch.processes(worker=False) if has_rank(pid)]
            # All at once: who hears of it first must not have told before it comes to the last.
            for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):
                for pid in [*workers.values(), *agents]:
                    with contextlib.suppress(ProcessLookupError):  # it may have ended since
                        os.kill(pid, number)

        for backend in ("gloo", "mpi"):
            # An mpirun that kills nobody because one has left: that is kept_test's part.
            patient = {"OMPI_MCA_orte_abort_on_non_zero_status": "0"}
            launch = self.struck(backend, 1, end_all, environment=patient)
            self.assertNotIn("killed", launch.outcomes().values(), launch.out + launch.err)
            self.assertFalse(launch.attribute("complete"))
            self.assertEqual(launch.attribute("exit_code"), 3, launch.out + launch.err)
            self.assertEqual(launch.leftovers(), [])

    def test_a_worker_that_alone_is_terminated_is_named(self):
        self.trial("gloo", signal.SIGTERM, 1, 1)

    def test_random_kills_and_stops(self):
        print(f"KILL_TEST_SEED={SEED} KILL_TEST_TRIALS={TRIALS}")
        chance = random.Random(SEED)
        for number in range(TRIALS):
            backend = chance.choice(["mpi", "mpi", "gloo"])
            fault = chance.choice([signal.SIGKILL, signal.SIGSTOP])
            rank = chance.randrange(2)
            delay = chance.uniform(0, 3)
            with self.subTest(trial=number, backend=backend, fault=fault.name, rank=rank,
                              delay=round(delay, 3)):
                self.trial(backend, fault, rank, delay)


if __name__ == "__main__":
    unittest.main()
