#!/usr/bin/python3
"""Every subcommand that reads run files, and files that were tampered with: an answer or one line
of error, never a crash or a defect of Lockstep."""
import os
import shutil
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
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
MUTATED = os.path.join(FOLDER, "mutated.h5")
OTHER = os.path.join(FOLDER, "other.h5")  # of another run
DUMPS = os.path.join(FOLDER, "dumps")


def lockstep(*arguments):
    shutil.rmtree(DUMPS, ignore_errors=True)
    return subprocess.run([LOCKSTEP, *arguments], capture_output=True)


def readers_of(path):
    return [["diagnose", path], ["diagnose", "--format=jsonl", "--backend=nccl", path],
            ["show", "--history", "--environment", path], ["score", path], ["trend", OTHER, path],
            ["compare", OTHER, "--candidate", path],
            ["report", path, "--output", os.path.join(FOLDER, "report.html")],
            ["export", path, "--format=flight-recorder", "--output-folder", DUMPS]] + [
                ["export", path, "--format=" + name]
                for name in ("chrome-trace", "prometheus", "openmetrics", "junit", "jsonl",
                             "csv", "gbench")]


class MutatedFilesTest(unittest.TestCase):
    def expect_an_answer(self, arguments, what):
        done = lockstep(*arguments)
        said = (what, arguments, done.returncode, done.stderr[-500:])
        self.assertIn(done.returncode, (0, 1, 2, 3, 4, 5), said)
        self.assertLessEqual(done.stderr.count(b"\n"), 1 if done.returncode == 2 else 9, said)

    def test_what_is_whole_is_read(self):
        for arguments in readers_of(os.path.join(FOLDER, "stress.h5")):
            done = lockstep(*arguments)
            self.assertNotEqual(done.returncode, 2, (arguments, done.stderr[-500:]))

    def test_changed_values(self):
        sources = [os.path.join(FOLDER, name + ".h5")
                   for name in ("stress", "failing", "links", "watched")]
        for seed in range(200):
            whole = sources[seed % 6 if seed % 6 < 4 else 0]
            what = f"{os.path.basename(whole)}, seed {seed}: " + mutated_files.mutate(
                whole, MUTATED, seed)
            readers = readers_of(MUTATED)
            self.expect_an_answer(readers[seed % len(readers)], what)

    def test_changed_bytes(self):
        whole = os.path.join(FOLDER, "stress.h5")
        for seed in range(100):
            what = mutated_files.flip_bytes(whole, MUTATED, seed)
            done = lockstep("diagnose", MUTATED)
            self.assertIn(done.returncode, (0, 1, 2), (what, done.stderr))

    def test_an_event_of_no_kind(self):
        path = os.path.join(FOLDER, "stress.h5")
        for column in ("kind", "collective", "type", "reduction", "phase"):
            shutil.copyfile(path, MUTATED)
            with h5py.File(MUTATED, "r+") as run:
                events = run["history/0"][:]
                events[column][7] = 200
                run["history/0"][...] = events
            mutated_files.seal(MUTATED)
            done = lockstep("diagnose", MUTATED)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count(b"\n")), (2, b"", 1))
            self.assertIn(column.encode(), done.stderr)
            self.assertIn(b"row 7 of /history/0", done.stderr)


if __name__ == "__main__":
    subprocess.run(["results/example_runs", FOLDER], check=True)
    for path in (os.path.join(FOLDER, "stress.h5"), OTHER):
        subprocess.run(["stress/stress", "--backend=sim", "--ranks=2", "uneven_inputs/case*",
                        "recovery/kill*", "--output=" + path], check=True,
                        stdout=subprocess.DEVNULL)
    unittest.main()
