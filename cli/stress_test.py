#!/usr/bin/python3
"""`lockstep stress`: a launch for every case of the MPI that started it, and one result of them
all; a launch without a result is unknown; told to end, it keeps what it has."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import h5py

sys.path.insert(0, os.path.abspath("core/base/testing"))
import started  # pylint: disable=wrong-import-position

LOCKSTEP = os.path.abspath("cli/lockstep")
# Of a launcher that starts no ranks: which file they would write.
OUTPUT_OF_LAUNCH = """#!/bin/sh
for word; do case $word in --output=*) run=${word#*=};; esac; done
"""


class StressTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.path = os.path.join(self.folder, "all.h5")
        self.json = os.path.join(self.folder, "all.json")

    def command(self, *arguments):
        return [LOCKSTEP, "stress", "--ranks=2", f"--output={self.path}", f"--verdicts={self.json}",
                *arguments]

    def run_it(self, *arguments):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True)

    def test_cases_of_mpi_come_into_one_file(self):
        # case2: a rank fails and the other one finishes; mpirun calls that an error, we do not.
        # All is proved when it happens: the deadline, which a start on a busy machine may need, is
        # not waited for.
        done = self.run_it("--backend=mpi", "--scenario=uneven_inputs/case[126]", "-T", "600")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(done.stdout.startswith("PASS: all 3 cases"), done.stdout)
        with open(self.json, encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        names = [f"uneven_inputs/case{number}" for number in (1, 2, 6)]
        self.assertEqual([case["name"] for case in cases], names)
        with h5py.File(self.path) as run:
            self.assertEqual(len(run["cases"]), 3)
            self.assertEqual(run.attrs["exit_code"], 0)
        again = subprocess.run([LOCKSTEP, "show", self.path], capture_output=True, text=True)
        for name in names:
            self.assertIn(name, again.stdout)

    def test_a_failing_case_fails_all_and_shows_its_trace(self):
        path = self.scenario("own/hangs", 'rank.0 = ["barrier world"]\n'
                             'rank.1 = ["all_reduce world f32 4"]\n')
        done = self.run_it(f"--scenario={path}", "--scenario=groups/same_order", "-T", "600")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout,
                         r"^FAIL: rank 1 .* calls all_reduce 1 where rank 0 calls barrier 1")
        self.assertIn("WAITS", done.stdout)

    def test_a_launch_that_leaves_nothing_is_unknown(self):
        done = self.run_it("--backend=mpi", "--scenario=groups/same_order",
                           "--launcher=sh -c 'exit 7'")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertTrue(done.stdout.startswith("INCONCLUSIVE: 1 of 1 cases"), done.stdout)
        self.assertIn("the launch left no result", done.stdout)

    def test_what_a_launch_cannot_show_is_not_run(self):
        # Of streams it is known beforehand; of the other one only its launch can tell.
        launcher = os.path.join(self.folder, "launcher")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$@" >>{self.folder}/words\n'
                       'case "$*" in *case6*) echo "lockstep-stress: only on Sundays"; exit 2;; '
                       'esac\nexec mpirun --oversubscribe --bind-to none "$@"\n')
        os.chmod(launcher, 0o755)
        done = self.run_it("--backend=mpi", "--scenario=custom_kernel/buffer_reuse_event",
                           "--scenario=uneven_inputs/case[16]", f"--launcher={launcher}",
                           "--no-gpu-samples", "--allow-network-faults")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(self.folder, "words"), encoding="utf-8") as file:
            for words in file:
                self.assertIn("--allow-network-faults --no-gpu-samples", words)
        self.assertTrue(done.stdout.startswith("PASS: all 1 cases"), done.stdout)
        self.assertIn("not run: custom_kernel/buffer_reuse_event: it needs a stream", done.stdout)
        self.assertIn("not run: uneven_inputs/case6: only on Sundays", done.stdout)
        alone = self.run_it("--backend=mpi", "--scenario=custom_kernel/buffer_reuse_event")
        self.assertEqual(alone.returncode, 2, alone.stdout + alone.stderr)
        self.assertEqual(len(alone.stderr.splitlines()), 1, alone.stderr)

    def test_told_to_end_it_keeps_what_is_over(self):
        # A line for each launch, of which there is one a case.
        launcher = os.path.join(self.folder, "counting")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho launch >>{self.folder}/launches\n'
                       'exec mpirun --oversubscribe --bind-to none "$@"\n')
        os.chmod(launcher, 0o755)
        words = self.command("--backend=mpi", "--scenario=groups/same_order", "--repeat=500",
                             f"--launcher={launcher}")
        with started.Started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) as process:
            process.until(lambda: self.launches() >= 3)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate()
        self.assertEqual(process.returncode, 3, out + err)
        with h5py.File(self.path) as run:
            done = len(run["cases"])
            self.assertFalse(bool(run.attrs["complete"]))
        self.assertGreater(done, 0)
        self.assertLess(done, 500)

    def test_what_outlives_its_launcher_is_awaited(self):
        # An agent whose launcher was killed still writes its file, and the file's folder.
        launcher = os.path.join(self.folder, "killed")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(OUTPUT_OF_LAUNCH +
                       '(sleep 1; mkdir -p "${run%/*}"; echo late >"$run.late"\n'
                       f' echo over >{self.folder}/over) &\nexit 1\n')
        os.chmod(launcher, 0o755)
        temporary = tempfile.mkdtemp(dir=self.folder)
        words = self.command("--scenario=groups/same_order", f"--launcher={launcher}")
        done = subprocess.run(words, capture_output=True, text=True, check=False,
                              env=dict(os.environ, TMPDIR=temporary))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        while not os.path.exists(f"{self.folder}/over"):
            time.sleep(0.05)
        self.assertEqual(os.listdir(temporary), [])

    def test_what_a_launch_says_of_its_own_end_is_no_verdict(self):
        # Told to end, it writes what it would write of a launcher that is lost: a failure.
        path = self.scenario("own/lost", 'rank.0 = ["barrier world"]\nrank.1 = ["exit 3"]\n')
        said = os.path.join(self.folder, "said.h5")
        subprocess.run(["stress/stress", "--backend=sim", "--ranks=2", f"--scenario={path}",
                        f"--output={said}"], check=False, stdout=subprocess.DEVNULL)
        launcher = os.path.join(self.folder, "told")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(OUTPUT_OF_LAUNCH +
                       f'trap \'cp {said} "$run"; sleep 1; exit 1\' TERM\n'
                       f'echo launch >>{self.folder}/launches\n'
                       'while :; do sleep 0.1; done\n')
        os.chmod(launcher, 0o755)
        words = self.command(f"--scenario={path}", f"--launcher={launcher}")
        with started.Started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) as process:
            process.until(self.launches)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate()
        self.assertEqual(process.returncode, 3, out + err)
        self.assertNotIn("rank_exited", out)

    def scenario(self, name, ranks):
        path = os.path.join(self.folder, name.replace("/", "_") + ".toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'name = "{name}"\ndescription = "of a test"\nranks = 2\n'
                       f'[workload]\nkind = "script"\n{ranks}')
        return path

    def launches(self):
        path = os.path.join(self.folder, "launches")
        if not os.path.exists(path):
            return 0
        with open(path, encoding="utf-8") as file:
            return len(file.readlines())

    def test_bad_input_is_one_line(self):
        for words, part in ((("--backend=sim", "--scenario=*"), "stress --backend=sim"),
                            (("--scenario=no/such",), "names nothing"),
                            (("--scenario=*", "--nonsense"), "nonsense")):
            done = self.run_it(*words)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
