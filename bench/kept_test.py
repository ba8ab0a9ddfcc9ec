#!/usr/bin/python3
"""No result is lost: to Ctrl-C, to a place that breaks, to another run of the same name."""
import contextlib
import glob
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import h5py

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch, lockstep, started, with_enough_time

BENCH = os.path.abspath("bench/bench_allreduce")
# A precision that is never reached: the run lasts as long as its budget, and sleeps meanwhile.
# Tests that end it give it more time than any machine needs until then.
LONG = ["-b", "8", "-e", "64K", "--precision=0.0001"]
ASLEEP = {"LD_PRELOAD": os.path.abspath("bench/peers/libfaulty_allreduce.so"),
          "FAULTY_KIND": "doze"}
HANG_SECONDS = 100


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


def launcher_of(launch):
    for pid in launch.processes(worker=False):
        if name_of(pid) in ("mpirun", "orterun", "mpiexec"):
            return pid
    raise AssertionError("no launcher")


def break_place(place):
    """A file stands where the folder was; one that is made anew meanwhile goes the same way."""
    for number in itertools.count():
        os.rename(place, f"{place}.gone{number}")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(place, os.O_CREAT | os.O_EXCL))
            return


def iterations_in(path):
    """Of a file that appears, and is replaced by later states of the run."""
    if not os.path.exists(path):
        return 0
    with h5py.File(path) as run:
        return int(run["summary"]["iterations"].sum())


def agent_of(launch, rank, name="bench_allreduce"):
    """… or what stands around it under that name."""
    for pid in launch.processes(worker=False):
        if name_of(pid) != name:
            continue
        with open(f"/proc/{pid}/environ", "rb") as file:
            if b"OMPI_COMM_WORLD_RANK=%d" % rank in file.read().split(b"\0"):
                return pid
    raise AssertionError(f"no agent of rank {rank}")


def on_a_small_disk(folder):
    """What starts a command for which so small a disk is mounted there."""
    return ["unshare", "-rm", "sh", "-c",
            f'mount -t tmpfs -o size=128k small "{folder}" && exec "$@"', "sh"]


def may_mount():
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    done = subprocess.run([*on_a_small_disk(folder), "true"], capture_output=True)
    os.rmdir(folder)
    return done.returncode == 0


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
        launch = Launch(BENCH, [*LONG, "--time-budget=1000", *self.output],
                        environment={"OMPI_MCA_odls_base_sigkill_timeout": "60", **ASLEEP})
        said = await_measuring(launch)
        self.assertIn(self.path, said[-1])
        os.kill(launcher_of(launch), signal.SIGINT)
        self.kill_when_samples_are_kept(launch)

    def test_samples_are_kept_when_nobody_warns(self):
        launch = Launch(BENCH, [*LONG, "--time-budget=1000", *self.output], environment=ASLEEP)
        await_measuring(launch)
        self.kill_when_samples_are_kept(launch)

    def await_samples(self, path):
        deadline = time.monotonic() + HANG_SECONDS
        while iterations_in(path) == 0 and time.monotonic() < deadline:
            time.sleep(0.01)

    def kill_when_samples_are_kept(self, launch):
        self.await_samples(self.path)
        for pid in launch.processes():
            with contextlib.suppress(ProcessLookupError):  # it may have ended with its launcher
                os.kill(pid, signal.SIGKILL)
        launch.finish()
        self.assertGreater(iterations_in(self.path), 0)
        with h5py.File(self.path) as run:
            self.assertFalse(run.attrs["complete"])
            self.assertGreater(run.attrs["duration_seconds"], 0)
            self.assertEqual(run.attrs["exit_code"], 3)
        self.assertEqual(launch.leftovers(), [])

    def test_the_end_of_a_wrapper_is_not_that_of_the_launcher(self):
        launch = Launch("timeout", ["1000", BENCH, *LONG, "--time-budget=1000"], environment=ASLEEP)
        await_measuring(launch)
        wrappers = {rank: agent_of(launch, rank, "timeout") for rank in (0, 1)}
        self.await_samples(launch.path)
        os.kill(wrappers[1], signal.SIGKILL)
        launch.finish()
        self.assertEqual(launch.attribute("exit_code"), 3, launch.out + launch.err)
        with lockstep.open(launch.path) as run:
            causes = [row["cause"] for row in run.rows("verdicts/findings")]
        self.assertNotIn("launcher_lost", causes, launch.out + launch.err)
        self.assertGreater(iterations_in(launch.path), 0)
        self.assertEqual(launch.leftovers(), [])

    def test_of_the_shortest_cases_every_iteration_is_kept(self):
        # More than an outbox, an order or a batch of rounds holds.
        for words, least in ((["-n", "300000"], 300000), (["--time-budget=20"], 1)):
            words += ["--backend=null", "-b", "8", "-e", "16", "-w", "3", "--check=0"]
            launch = Launch(BENCH, words).finish()
            self.assertEqual(launch.code, 0, launch.out + launch.err)
            with h5py.File(launch.path) as run:
                for row in run["summary"][:]:
                    samples = run["cases/%d/samples" % row["case"]]
                    entry, leave = samples["entry_ns"][:], samples["exit_ns"][:]
                    self.assertEqual(entry.shape, (row["iterations"], 2))
                    self.assertGreaterEqual(len(entry), least)
                    # Each is an iteration of its own, one after the other.
                    self.assertGreaterEqual(entry.min(), 0)
                    self.assertTrue((leave >= entry).all())
                    self.assertTrue((entry[1:] >= leave[:-1]).all())

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

    def test_a_terminal_shows_a_path_and_does_not_obey_it(self):
        path = os.path.join(os.path.dirname(self.path), "two\nlines\x1b[31m.h5")
        launch = Launch(BENCH, ["-b", "8", "-e", "8", "-n", "5", f"--output={path}"]).finish()
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertTrue(os.path.exists(path))
        shown = path.replace("\n", "\\n").replace("\x1b", "\\x1b")
        self.assertIn(f"results go to {shown}\n", launch.err)
        self.assertIn(f"result file: {shown}\n", launch.out)

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
        other = os.path.join(self.folder, "other")
        os.mkdir(other)

        def broken(budget_s):
            place = tempfile.mkdtemp(dir=self.folder)
            launch = Launch(BENCH, [*LONG, f"--time-budget={budget_s}", "--output",
                                    os.path.join(place, "run.h5")],
                            environment={"TMPDIR": other, **ASLEEP})
            await_measuring(launch)
            break_place(place)
            launch.note_hit(budget_s)
            return launch.finish()

        def was_over(launch):  # 3: and before anything was measured
            return launch.may_have_missed() and launch.code in (0, 3)

        launch = with_enough_time(broken, was_over, budget_s=30)
        self.assertEqual(launch.code, 4, launch.out + launch.err)
        found = glob.glob(os.path.join(other, "run-*.h5"))
        self.assertEqual(len(found), 1, launch.out + launch.err)
        self.assertIn(f"The run is in {found[0]} instead", launch.err)
        self.assertIn(f"result file: {found[0]}", launch.out)
        self.assertIn("exit code 4", launch.out.splitlines()[1])
        with h5py.File(found[0]) as run:
            self.assertEqual(run.attrs["exit_code"], 4)
            self.assertTrue(run.attrs["complete"])

    def test_a_successor_overwrites_nothing(self):
        # A successor has until mpirun's SIGKILL, which follows its SIGTERM.
        launch = Launch(BENCH, [*LONG, "--time-budget=1000", *self.output], ranks=3,
                        environment={"OMPI_MCA_odls_base_sigkill_timeout": "10", **ASLEEP})
        await_measuring(launch)
        deadline = time.monotonic() + HANG_SECONDS
        while not os.path.exists(self.path) and time.monotonic() < deadline:
            time.sleep(0.01)
        other = self.path + ".other"
        with open(other, "w", encoding="utf-8") as file:
            file.write("of another run")
        agent = agent_of(launch, 0)
        # It would put its own file in the place of this one.
        os.kill(agent, signal.SIGSTOP)
        while started.state_of(agent) != "T":
            time.sleep(0.01)
        os.replace(other, self.path)
        os.kill(agent, signal.SIGKILL)
        launch.finish()
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "of another run")
        found = glob.glob(os.path.join(self.folder, "run-*.h5"))
        self.assertEqual(len(found), 1, launch.out + launch.err)
        self.assertIn(f"The run is in {found[0]} instead", launch.err)
        with h5py.File(found[0]) as run:
            self.assertGreater(run.attrs["duration_seconds"], 0)

    @unittest.skipUnless(may_mount(), "user namespaces are not permitted here")
    def test_a_full_disk_is_left_for_another(self):
        place, other = os.path.join(self.folder, "place"), os.path.join(self.folder, "other")
        os.mkdir(place)
        os.mkdir(other)
        # What is asked for before the run begins fits in, the run does not.
        launch = Launch(BENCH, [*LONG, "-n", "3000", "--output", os.path.join(place, "run.h5")],
                        environment={"TMPDIR": other}, through=on_a_small_disk(place)).finish()
        self.assertEqual(launch.code, 4, launch.out + launch.err)
        found = glob.glob(os.path.join(other, "run-*.h5"))
        self.assertEqual(len(found), 1, launch.out + launch.err)
        said = [line for line in launch.err.splitlines() if "No space left" in line]
        self.assertEqual(len(said), 1, launch.err)
        self.assertIn(f"The run is in {found[0]} instead", said[0])
        with h5py.File(found[0]) as run:
            self.assertTrue(run.attrs["complete"])


if __name__ == "__main__":
    unittest.main()
