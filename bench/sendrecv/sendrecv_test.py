#!/usr/bin/python3
"""bench_sendrecv: messages around rings of two to four ranks, over three libraries; wrong data and
a stopped rank are found and named."""
import contextlib
import os
import signal
import sys
import unittest

import h5py

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch, with_enough_time

BENCH = "bench/bench_sendrecv"
SHIM = os.path.abspath("bench/peers/libfaulty_recv.so")
FAKE = os.path.abspath("core/comm/nccl/testing/libfake_nccl_22809.so")


def run(ranks, *arguments, environment=None):
    return Launch(BENCH, ["-n", "40", "-w", "2", *arguments], ranks=ranks,
                  environment=environment).finish()


class SendRecv(unittest.TestCase):
    def check_sizes(self, launch, elements):
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        with h5py.File(launch.path) as file:
            rows = file["summary"][:]
            self.assertEqual([int(row["checked_elements"]) for row in rows], elements)
            for row in rows:
                self.assertEqual(int(row["wrong_elements"]), 0)
                self.assertGreater(row["algorithm_gbps"], 0)
                self.assertEqual(row["bus_gbps"], row["algorithm_gbps"])  # as nccl-tests' rule says
        self.assertEqual(launch.leftovers(), [])

    def test_every_element_of_every_rank_is_compared(self):
        for backend in ("mpi", "gloo"):
            for ranks in (2, 3, 4):
                launch = run(ranks, "-b", "64", "-e", "1M", "-f", "128", f"--backend={backend}")
                counts = [size // 4 for size in (64, 8192, 1 << 20)]
                self.check_sizes(launch, [count * 42 * ranks for count in counts])

    def test_nccl_groups_the_two(self):
        launch = run(3, "-b", "1K", "-e", "1M", "-f", "1024", "-d", "bf16", "--backend=nccl",
                     f"--nccl-library={FAKE}", environment={"TMPDIR": os.environ["TEST_TMPDIR"]})
        self.check_sizes(launch, [count * 42 * 3 for count in (512, 1 << 19)])

    def test_a_flipped_bit_is_found_by_the_right_neighbour(self):
        launch = run(3, "-b", "64K", "-e", "64K", environment={
            "LD_PRELOAD": SHIM, "FAULTY_KIND": "flip_sent", "FAULTY_CALL": "20"})
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn("rank 2 received wrong data in send_recv/f32/65536: element 0",
                      launch.out.splitlines()[0])
        self.assertEqual(launch.outcomes(), {0: "finished", 1: "finished", 2: "corrupt"})

    def test_a_stopped_rank_is_named(self):
        def stopped(budget_s):
            launch = Launch(BENCH, ["-b", "1M", "-e", "1M", "-T", "3", "--precision=0.0001",
                                    f"--time-budget={budget_s}", "--backend=gloo"], ranks=3)
            with contextlib.suppress(AssertionError, ProcessLookupError):  # it may be over
                os.kill(launch.await_workers(3, computed_seconds=0.5)[1], signal.SIGSTOP)
                launch.note_hit(budget_s)
            return launch.finish()

        launch = with_enough_time(stopped, Launch.was_over_before, budget_s=30)
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn("rank 1 ", launch.out.splitlines()[0])
        self.assertEqual(launch.outcomes()[1], "stopped")
        self.assertEqual(launch.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
