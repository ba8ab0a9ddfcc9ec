#!/usr/bin/python3
"""No result is lost: to Ctrl-C, to a place that breaks, to another run of the same name."""
import glob
import os
import signal
import sys
import tempfile
import time
import unittest

import h5py

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch

BENCH = os.path.abspath("bench/bench_allreduce")
# A precision that is never reached: the run lasts as long as its budget.
LONG = ["-b", "8", "-e", "64K", "--precision=0.0001"]
HANG_SECONDS = 100


def launcher_of(launch):
    for pid in launch.processes(worker=False):
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            if file.read().strip() in ("mpirun", "orterun", "mpiexec"):
                return pid
    raise AssertionError("no launcher")


def await_measuring(launch):
    """Until the benchmark says where its results go: the lines up to that one."""
    lines = []
    for line in launch.process.stderr:
        lines.append(line)
        if "results go to" in line:
            return lines
    raise AssertionError("".join(lines))


class KeptTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.path = os.path.join(self.folder, "run.h5")
        self.output = ["--output", self.path]

    def test_samples_are_kept_before_the_launcher_ends_anything(self):
        # Its first signal is SIGCONT; here a minute passes until SIGTERM, which nobody waits for.
        launch = Launch(BENCH, [*LONG, "--time-budget=60", *self.output],
                        environment={"OMPI_MCA_odls_base_sigkill_timeout": "60"})
        said = await_measuring(launch)
        self.assertIn(self.path, said[-1])
        os.kill(launcher_of(launch), signal.SIGINT)
        deadline = time.monotonic() + HANG_SECONDS
        while not os.path.exists(self.path) and time.monotonic() < deadline:
            time.sleep(0.01)
        for pid in launch.processes():
            os.kill(pid, signal.SIGKILL)
        launch.finish()
        with h5py.File(self.path) as run:
            self.assertFalse(run.attrs["complete"])
            self.assertEqual(run.attrs["exit_code"], 3)
            self.assertGreater(int(run["summary"]["iterations"].sum()), 0)
        self.assertEqual(launch.leftovers(), [])

    def test_a_file_that_exists_is_not_overwritten(self):
        words = ["-b", "8", "-e", "8", "-n", "5", *self.output]
        self.assertEqual(Launch(BENCH, words).finish().code, 0)
        with open(self.path, "rb") as file:
            before = file.read()
        again = Launch(BENCH, words).finish()
        self.assertEqual(again.code, 2, again.out + again.err)
        self.assertIn(f"{self.path} exists", again.err)
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_two_runs_of_one_name_at_the_same_time(self):
        words = ["-b", "8", "-e", "64K", "-n", "50", *self.output]
        launches = [launch.finish() for launch in [Launch(BENCH, words) for _ in range(2)]]
        said = "".join(launch.out + launch.err for launch in launches)
        codes = sorted(launch.code for launch in launches)
        files = glob.glob(os.path.join(self.folder, "*.h5"))
        self.assertIn(codes, [[0, 2], [0, 4]], said)
        self.assertEqual(len(files), 1 if codes == [0, 2] else 2, said)
        for path in files:
            self.assertIn(path, said)
            with h5py.File(path) as run:
                self.assertEqual(run.attrs["exit_code"], 0 if path == self.path else 4)

    def test_a_place_that_breaks_is_left_for_another(self):
        place, other = os.path.join(self.folder, "place"), os.path.join(self.folder, "other")
        os.mkdir(place)
        os.mkdir(other)
        path = os.path.join(place, "run.h5")
        launch = Launch(BENCH, [*LONG, "--time-budget=8", "--output", path],
                        environment={"TMPDIR": other})
        await_measuring(launch)
        os.rename(place, place + ".gone")
        open(place, "w", encoding="utf-8").close()
        launch.finish()
        self.assertEqual(launch.code, 4, launch.out + launch.err)
        found = glob.glob(os.path.join(other, "run-*.h5"))
        self.assertEqual(len(found), 1, launch.out + launch.err)
        self.assertIn(f"The run is in {found[0]} instead", launch.err)
        self.assertIn(f"result file: {found[0]}", launch.out)
        self.assertIn("exit code 4", launch.out.splitlines()[1])
        with h5py.File(found[0]) as run:
            self.assertEqual(run.attrs["exit_code"], 4)
            self.assertTrue(run.attrs["complete"])


if __name__ == "__main__":
    unittest.main()
