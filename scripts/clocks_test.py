#!/usr/bin/python3
"""Two hosts with two clocks: the second one's is 1000 s ahead and 50 ppm fast, and a rank comes
late. Both are found again, within the stated bounds. Without namespaces it is said why, and
nothing is tested."""
import os
import subprocess
import tempfile
import time
import unittest

import h5py

HOSTS = os.path.abspath("scripts/test_hosts")
BENCH = os.path.abspath("bench/bench_allreduce")
SHOW = os.path.abspath("cli/lockstep")
PLANTED = os.path.abspath("core/coordinator/testing/libplanted_clock.so")
LATE = os.path.abspath("bench/peers/liblate_barrier.so")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
OFFSET_NS = 1_000_000_000_000  # no load makes a skew of half of it
DRIFT_PPM = 50
LATE_US = 200_000


def hosts(*words):
    return subprocess.run([HOSTS, "2", *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, HOME=FOLDER))


def raw_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def measure(name, late_us, planted=True, boot_ids=True):
    """A run with two clocks, and when the planted one was right."""
    path = os.path.join(FOLDER, name + ".h5")
    since_ns = raw_ns()
    plant = [f"--set=2:PLANTED_CLOCK={OFFSET_NS} {DRIFT_PPM} {since_ns}"] if planted else []
    done = hosts(*(["--boot-ids"] if boot_ids else []), *plant, "--", "env",
                 f"LD_PRELOAD={PLANTED}:{LATE}", "LOCKSTEP_TICKS=clock_monotonic", "LATE_RANK=1",
                 f"LATE_US={late_us}", BENCH, "-b", "8", "-e", "8", "-n", "11", "-w", "2",
                 f"--output={path}")
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return path, since_ns


PROBE = hosts("--shell", "--", "true")


@unittest.skipIf(PROBE.returncode == 77, PROBE.stderr.strip())
class ClocksTest(unittest.TestCase):
    def test_a_planted_clock_and_a_late_rank(self):
        path, since_ns = measure("late", LATE_US)
        with h5py.File(path) as run:
            reference, clock = run["clocks"][:]
            anchors = run["clock_anchors"][:]
            arrivals = run["arrivals"][0]
            scale = run["history"].attrs["ns_per_tick"]
            origin = int(run["history"].attrs["origin_ticks"])
        self.assertEqual(reference["state"], b"reference")
        self.assertEqual((reference["error_ns"], reference["drift_ppm"]), (0, 0))
        self.assertEqual(clock["state"], b"estimated")
        self.assertEqual(clock["ranks"], b"1")
        self.assertLess(abs(clock["drift_ppm"] - DRIFT_PPM), clock["drift_error_ppm"] + 0.01)
        # It went fast from since_ns on.
        self.assertGreaterEqual(clock["day_offset_ns"], OFFSET_NS - clock["day_offset_error_ns"])
        self.assertLess(clock["day_offset_ns"],
                        OFFSET_NS + clock["day_offset_error_ns"] +
                        (raw_ns() - since_ns) * DRIFT_PPM * 1e-6)
        # Every anchor holds what was planted: the truth is the one kernel's clock.
        ahead_ns = raw_ns() - time.monotonic_ns()  # of the monotonic clock
        self.assertGreaterEqual(len(anchors), 2)
        for anchor in anchors:
            fast = DRIFT_PPM * 1e-6
            shown = int(anchor["ticks"]) - OFFSET_NS - since_ns + ahead_ns
            truth = (shown / (1 + fast) + since_ns - ahead_ns - origin) * scale
            self.assertLessEqual(anchor["low_ns"] - 100, truth)
            self.assertLessEqual(truth, anchor["high_ns"] + 100)
            half = (anchor["high_ns"] - anchor["low_ns"]) / 2
            if anchor["low_ns"] >= 0:  # the bound is for stamps: there are none before
                self.assertLessEqual(half, clock["error_ns"] + 1)
            # The other direction: another offset would have been found out.
            self.assertGreater(abs(truth + 2.1 * half - (anchor["low_ns"] + half)), half)
        self.assertEqual(arrivals["last_rank"], 1)
        # Times that are not brought to one clock are 1000 s apart.
        self.assertLess(abs(arrivals["skew_ns"] - LATE_US * 1e3), 0.5 * OFFSET_NS)
        self.assertLessEqual(arrivals["clock_error_ns"], 2 * clock["error_ns"] + 1)
        table = subprocess.run([SHOW, "show", "--skew", path], capture_output=True, text=True)
        self.assertRegex(table.stdout, r"clocks beside node1's: node2 \+(999\.99|1000\.0)")
        self.assertRegex(table.stdout, r"1 \(\d+ %\)")

    def test_the_clocks_are_one(self):
        path, _ = measure("even", 0, planted=False)
        with h5py.File(path) as run:
            clock = run["clocks"][1]
            self.assertLessEqual(abs(clock["day_offset_ns"]), clock["day_offset_error_ns"])

    def test_ranks_of_one_kernel_share_a_clock(self):
        path, _ = measure("one", 0, planted=False, boot_ids=False)
        with h5py.File(path) as run:
            self.assertEqual(len(run["clocks"]), 1)
            self.assertEqual(run["clocks"][0]["ranks"], b"0,1")
            self.assertEqual(len(run["clock_anchors"]), 0)
            self.assertEqual(run["arrivals"][0]["clock_error_ns"], 0)


if __name__ == "__main__":
    unittest.main()
