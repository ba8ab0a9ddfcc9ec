#!/usr/bin/env python3
"""scripts/scoreboard: real launches, a second run that goes on with the first, bad input."""

import os
import re
import subprocess
import tempfile
import unittest

_SCOREBOARD = "scripts/scoreboard"
_STRESS, _LOCKSTEP = "stress/stress", "cli/lockstep"


def scoreboard(*arguments):
    done = subprocess.run(
        [_SCOREBOARD, f"--stress={_STRESS}", f"--lockstep={_LOCKSTEP}", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class ScoreboardTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(".h5"))

    def test_an_interrupted_run_goes_on(self):
        few = ["--ranks=2", "--repeat=1", "--healthy=20", f"--output-folder={self.folder}",
               "--scenario=uneven_inputs/case[14]"]
        code, out, err = scoreboard(*few, "--time-budget=0.001")
        print(out, err)
        self.assertEqual(code, 3, "one launch was made, the others are left")
        self.assertIn("catalogue-gloo-2ranks-seed1: 2 cases on 2 ranks, each at most ", err)
        self.assertEqual(self.files(), ["catalogue-gloo-2ranks-seed1.h5"])
        self.assertIn("5 of 6 launches are left", out)
        code, out, err = scoreboard(*few)
        print(out, err)
        self.assertEqual(code, 0)
        self.assertEqual(err.count("PASS"), 5, "what is there is not run again")
        self.assertTrue(out.startswith("PASS: 22 of 22 faults found"), out)
        self.assertIn("0 false alarms in 32 healthy runs", out)
        self.assertEqual(self.files(), [
            f"{kind}-{backend}-2ranks-seed{seed}.h5"
            for kind, backend, seed in (("catalogue", "gloo", 1), ("catalogue", "sim", 1),
                                        ("healthy", "gloo", 1), ("hogged", "gloo", 10),
                                        ("random", "gloo", 1), ("relayed", "gloo", 10))])
        code, out, err = scoreboard(*few)
        self.assertEqual((code, err), (0, ""))
        code, out, err = scoreboard(*few[:-1], "--scenario=*")
        self.assertEqual((code, out), (2, ""), "the files there have two cases of the catalogue")
        self.assertIn("its launches are of --scenario=uneven_inputs/case[14], not *; give that, or "
                      "another --output-folder\n", err)

    def test_another_build_is_refused(self):
        stress = os.path.join(self.folder, "rebuilt")
        with open(stress, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {os.path.abspath(_STRESS)} "$@"\n')
        os.chmod(stress, 0o755)
        one = ["--ranks=2", "--repeat=0", "--healthy=1", f"--output-folder={self.folder}",
               f"--stress={stress}"]
        code, out, err = scoreboard(*one, "--time-budget=0.001")
        print(out, err)
        self.assertEqual((code, len(self.files())), (3, 1))
        with open(stress, "r+", encoding="utf-8") as file:
            text = file.read().replace("exec", 'echo "# built again" >> "$0"\nexec')
            file.seek(0)
            file.write(text)
        for folder, left in ((self.folder, 1), (self.folder + "/new", 0)):
            code, out, err = scoreboard(*one, f"--output-folder={folder}")
            print(out, err)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f"{folder}: its launches are of another build of {stress}; give that by "
                          "--stress, or another --output-folder", err.splitlines()[-1])
            self.assertEqual(len([name for name in os.listdir(folder) if name.endswith(".h5")]),
                             left, "what was built again between its ranks does not count")
        os.remove(os.path.join(self.folder, "asked.json"))
        code, out, err = scoreboard(*one)
        self.assertEqual((code, out, len(err.splitlines())), (2, "", 1), err)
        self.assertIn("no asked.json that tells what they are of; give another --output-folder",
                      err)

    def test_a_noisy_machine(self):
        launches, stopped = set(), set()
        for attempt in range(5):  # what stops them may have no processor for a whole launch
            folder = os.path.join(self.folder, str(attempt))
            code, out, err = scoreboard("--ranks=3", "--repeat=0", "--healthy=30", "--busy-loops=1",
                                        "--stop-agents=50ms", "--stop-workers=50ms",
                                        f"--output-folder={folder}")
            print(out, err)
            self.assertEqual(code, 0)
            self.assertIn("0 false alarms in 30 healthy runs", out)
            launches.update(name for name in os.listdir(folder) if name.endswith(".h5"))
            stopped.update(re.findall(r"(\S+): (agents|workers) were stopped [1-9]\d* times", err))
            if len(stopped) == 6:
                break
        self.assertEqual({(f"{name}.h5", what) for name, what in stopped},
                         {(name, what) for name in launches for what in ("agents", "workers")})

    def test_no_scenario_for_so_many_ranks_is_no_error(self):
        code, out, err = scoreboard("--ranks=3", "--repeat=1", "--healthy=0",
                                    f"--output-folder={self.folder}",
                                    "--scenario=uneven_inputs/case4")
        print(out, err)
        self.assertEqual(code, 0)
        self.assertEqual(self.files(), ["random-gloo-3ranks-seed1.h5"])

    def test_bad_input(self):
        for argument, part in (("--ranks=1", "--ranks: '1'"), ("--repeat=x", "--repeat"),
                               ("--repeat=-1", "--repeat"), ("--busy-loops=-1", "--busy-loops"),
                               ("--stop-workers=2s", "--stop-workers=2: a rank that is stopped"),
                               ("--stress=/absent/stress", "cannot be run"),
                               ("--stress=/", "cannot be run")):
            code, _, err = scoreboard(f"--output-folder={self.folder}", argument)
            self.assertEqual(code, 2)
            self.assertIn(part, err.splitlines()[-1])
        code, _, err = scoreboard(f"--output-folder={self.folder}", "--ranks=2",
                                  "--scenario=nothing")
        self.assertEqual(code, 2)
        self.assertIn("'nothing' names nothing", err)


if __name__ == "__main__":
    unittest.main()
