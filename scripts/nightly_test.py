#!/usr/bin/python3
"""scripts/nightly from the outside: real launches, killed and resumed, with planted faults."""

import collections
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib
import unittest

from nightly_testing import LATENCY, Folder
from qualification import journal, plan, runner, verdict

_CORRUPTED = """backends = ["mpi"]
timeout = 3
[environment]
LD_PRELOAD = "%s"
FAULTY_KIND = "flip"
FAULTY_CALL = "51"
FAULTY_RANK = "1"
""" % os.path.abspath("bench/peers/libfaulty_allreduce.so") + (
    LATENCY % 1).replace('"8", "-e", "16"', '"1K", "-e", "4K"')

# It lasts until its rank is stopped, however late that is; on MPI nothing goes on then.
_UNTIL_STOPPED = """backends = ["mpi"]
timeout = 3
[[step]]
name = "latency"
program = "bench_allreduce"
arguments = ["-b", "8", "-e", "8", "--time-budget=200s", "--precision=0.0001"]
seconds = 200
launches = 1
"""

# Its parent is timeout, and nightly is the parent of that.
_KILLS_NIGHTLY_IN_THE_THIRD = """#!/bin/sh
echo >> "$0.launches"
[ "$(wc -l < "$0.launches")" != 3 ] || kill -KILL "$(cut -d ' ' -f 4 "/proc/$PPID/stat")"
exec mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@"
"""


class Launches(Folder):

    def test_killed_and_resumed_nothing_is_lost_or_counted_twice(self):
        text = 'timeout = 3\ntime_budget = "1000s"\n' + LATENCY % 3 + """[[step]]
name = "simulation"
kind = "simulation"
scenarios = ["uneven_inputs/case2"]
seconds = 3
"""
        launcher = os.path.join(self.folder, "launcher")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(_KILLS_NIGHTLY_IN_THE_THIRD)
        os.chmod(launcher, 0o755)
        path = self.plan('launcher = "%s"\n' % launcher + text)
        process = self.begin(path)
        process.communicate()
        self.assertEqual(-signal.SIGKILL, process.returncode)
        before = {event["launch"]: event for event in self.state() if event["event"] == "end"}
        with open(os.path.join(self.output, "state.jsonl"), "ab") as file:
            file.write(b'{"event": "end", "laun')  # as a crash may leave it
        code, answer, err = self.finish(self.begin(path))
        self.assertEqual((0, "QUALIFIED", []), (code, answer["verdict"], answer["reasons"]), err)
        ends = [event for event in self.state() if event["event"] == "end"]
        counts = collections.Counter(event["launch"] for event in ends)
        self.assertEqual({"simulation.0": 1, **{"latency.%s.%d" % (backend, i): 1 for i in range(3)
                                          for backend in ("mpi", "gloo")}}, dict(counts))
        self.assertTrue(before)
        for event in ends:  # what was over is as it was, and its file is there
            self.assertEqual(event, before.get(event["launch"], event))
            self.assertTrue(os.path.exists(os.path.join(self.output, event["file"])))
        self.assertEqual(1, answer["resumed"])

    def test_a_library_that_corrupts_one_float(self):
        code, answer, _ = self.nightly(_CORRUPTED)
        self.assertEqual((1, "NOT QUALIFIED"), (code, answer["verdict"]))
        self.assertIn("rank 1 received wrong data", answer["reasons"][0])
        self.assertIn("1 wrong elements in all", answer["reasons"][0])
        self.assertEqual([(1, ["data_corruption"], True)],
                         [(one["rank"], one["causes"], one["proved"])
                          for one in answer["quarantine"]])

    def test_wrong_data_disqualifies_also_where_the_step_is_not_required(self):
        code, answer, _ = self.nightly(_CORRUPTED + "required = false\n")
        self.assertEqual((1, "NOT QUALIFIED"), (code, answer["verdict"]))
        self.assertIn("rank 1 received wrong data", answer["reasons"][0])

    def plugin(self, text):
        done = subprocess.run(
            ["scripts/nightly", self.plan(text), "--output-folder=" + self.output,
             "--programs=" + os.getcwd(), "--nagios"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_a_plugin_of_a_night_that_is_well(self):
        code, said = self.plugin('backends = ["gloo"]\n' + LATENCY % 1)
        self.assertEqual(0, code, said)
        self.assertRegex(said, r"\ALOCKSTEP NIGHTLY OK - QUALIFIED: plan plan, 2 ranks, gloo; "
                         r"[^|\n]* \| launches=1 passed=1 reasons=0 quarantined=0 "
                         r"time=[\d.]+s;;;0;300\n\Z")

    def test_a_plugin_of_a_night_that_is_not(self):
        code, said = self.plugin(_CORRUPTED)
        self.assertEqual(2, code, said)
        self.assertRegex(said, r"\ALOCKSTEP NIGHTLY CRITICAL - NOT QUALIFIED: plan plan, "
                         r"[^|\n]* \| launches=1 passed=0 reasons=1 quarantined=1 "
                         r"time=[\d.]+s;;;0;300\n\Z")

    def test_a_stopped_rank(self):
        process = self.begin(self.plan(_UNTIL_STOPPED))
        self.stop_worker(process, rank=1)
        code, answer, _ = self.finish(process)
        self.assertEqual((1, "NOT QUALIFIED"), (code, answer["verdict"]))
        self.assertEqual([(1, ["rank_stopped"], True)],
                         [(one["rank"], one["causes"], one["proved"])
                          for one in answer["quarantine"]])

    def stop_worker(self, process, rank):
        """Stops the worker of that rank, below our own nightly only, once it measures."""
        while process.poll() is None:
            for pid in os.listdir("/proc"):
                try:
                    with open("/proc/%s/environ" % pid, "rb") as file:
                        environment = file.read().split(b"\0")
                    with open("/proc/%s/cmdline" % pid, "rb") as file:
                        mine = self.output.encode() in file.read()
                    with open("/proc/%s/stat" % pid, encoding="utf-8") as file:
                        ticks = sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
                except (OSError, ValueError):
                    continue
                worker = any(one.startswith(b"LOCKSTEP_WORKER=") for one in environment)
                of_rank = b"OMPI_COMM_WORLD_RANK=%d" % rank in environment
                if mine and worker and of_rank and ticks > 30:  # 0.3 s of computing
                    os.kill(int(pid), signal.SIGSTOP)
                    return
            time.sleep(0.02)
        self.fail("no worker of rank %d was found" % rank)


    def test_random_programs_are_others_every_night(self):
        code, answer, err = self.nightly(
            '[[step]]\nname = "fuzz"\nkind = "fuzz"\nseconds = 1\nlaunches = 2\n'
            'launch_seconds = 100\n')  # its first trials take half a minute beside much load
        # They pass, and alone they qualify no machine.
        self.assertEqual((3, {"fuzz": 2}), (code, answer["passed"]), err)
        night = int(time.strftime("%Y%m%d", time.gmtime(self.state()[0]["at"])))
        for replicate in range(2):
            with open(os.path.join(self.output, "logs/fuzz.%d.log" % replicate),
                      encoding="utf-8") as file:
                said = file.read()
            self.assertIn("lockstep-fuzz: seed %d: " % (night * 10**11 + replicate * 10**10), said)
            self.assertGreater(int(said.split(": ")[2].split()[0]), 0)  # trials

    def test_scenarios_have_launches_of_mpi(self):
        code, answer, err = self.nightly(
            'backends = ["mpi"]\n[[step]]\nname = "catalogue"\nkind = "stress"\nseconds = 60\n'
            'scenarios = ["uneven_inputs/case1"]\n')
        self.assertEqual((0, "QUALIFIED", []), (code, answer["verdict"], answer["notes"]), err)

    def test_a_launcher_that_starts_nothing_says_nothing_of_the_machine(self):
        code, answer, err = self.nightly('launcher = "mpirun --hostfile /nonexistent/hosts"\n' +
                                         LATENCY % 1)
        self.assertEqual((3, "INCONCLUSIVE"), (code, answer["verdict"]), err)
        self.assertIn("hostfile", answer["reasons"][0])

    def test_a_wrong_verdict_of_the_judge_disqualifies(self):
        for name in ("stress", "fuzz"):
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho 'fuzz: seed 7: 9 trials; a wrong verdict'\nexit 1\n")
            os.chmod(path, 0o755)
        programs = {name: plan.find_program(name, self.folder) for name in ("stress", "fuzz")}
        self.assertEqual(os.path.join(self.folder, "fuzz"), programs["fuzz"])
        path = self.plan('[[step]]\nname = "fuzz"\nkind = "fuzz"\nseconds = 1\n')
        done = subprocess.run(
            ["scripts/nightly", path, "--output-folder=" + self.output, "--programs=" + self.folder,
             "--format=json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
             check=False)
        self.assertEqual(1, done.returncode, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual("NOT QUALIFIED", answer["verdict"])
        self.assertIn("fuzz: seed 7: 9 trials; a wrong verdict", answer["reasons"][0])


class Budget(Folder):

    def test_what_does_not_fit_is_not_begun_and_is_said(self):
        code, answer, _ = self.nightly('time_budget = "1s"\n' + LATENCY % 1)
        self.assertEqual((3, "INCONCLUSIVE", 0), (code, answer["verdict"], answer["launches"]))
        self.assertIn("latency.mpi: 1 launches were not run: the budget was spent",
                      answer["reasons"])

    def test_cases_without_a_sample_are_inconclusive(self):
        code, answer, _ = self.nightly(
            'backends = ["mpi"]\n' +
            (LATENCY % 1).replace('"-n", "100"', '"--time-budget=0.001s"'))
        self.assertEqual((3, "INCONCLUSIVE"), (code, answer["verdict"]))
        self.assertIn("0 of 2 cases measured before the time budget", answer["reasons"][0])


class Subcommand(Folder):
    """`lockstep nightly` is the same program."""

    def lockstep(self, *words):
        done = subprocess.run(["cli/lockstep", "nightly"] + list(words),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)
        return done.returncode, done.stderr

    def test_it_is_reached(self):
        code, err = self.lockstep(self.plan("ranks = 1"), "--output-folder=" + self.output)
        self.assertEqual(2, code)
        self.assertIn("nightly: ", err)
        self.assertIn("from 2 to", err)

    def test_a_plan_or_a_profile(self):
        self.assertEqual(2, self.lockstep()[0])
        self.assertEqual(2, self.lockstep("plan.toml", "--profile=quick")[0])


class Parts(Folder):
    """Without launches."""

    def test_replicates_are_interleaved(self):
        names = [launch.name for launch in plan.read_plan("p", LATENCY % 2 + LATENCY.replace(
            "latency", "bandwidth") % 1).launches()]
        self.assertEqual(["latency.mpi.0", "latency.gloo.0", "bandwidth.mpi.0",
                          "bandwidth.gloo.0", "latency.mpi.1", "latency.gloo.1"], names)

    def test_profiles_fit_their_budgets(self):
        for profile in plan.PROFILES:
            one = plan.read_plan(profile, 'profile = "%s"' % profile)
            soak, _ = one.soak()
            total = sum(launch.seconds for launch in one.launches()) + soak["seconds"]
            self.assertLess(total, one.budget, profile)

    def test_a_profile_is_made_shorter_to_fit(self):
        for profile, budget, launches in (("standard", 600, 5), ("standard", 420, 3),
                                          ("full", 3600, 10), ("full", 600, 2)):
            one = plan.read_plan("p", 'profile = "%s"\ntime_budget = "%ds"' % (profile, budget))
            whole = plan.read_plan("p", 'profile = "%s"' % profile)
            soak, _ = one.soak()
            total = sum(launch.seconds for launch in one.launches()) + soak["seconds"]
            self.assertLess(total, budget)
            self.assertGreater(total, 0.8 * budget)  # and the time is used
            self.assertEqual([step["name"] for step in whole.steps],
                             [step["name"] for step in one.steps])
            self.assertGreaterEqual(one.steps[1]["launches"], launches, (profile, budget))
        with self.assertRaisesRegex(plan.PlanError, "60 s are too few for profile standard"):
            plan.read_plan("p", 'profile = "standard"\ntime_budget = "60s"')

    def test_mpi_is_asked_for_all_that_it_can(self):
        """Streams, links and recovery are left out, by name; nothing else is."""
        paths = glob.glob("stress/scenarios/*/*.toml")
        self.assertGreater(len(paths), 100)
        for path in paths:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            table = tomllib.loads(text)
            faults = [fault["kind"] for fault in table.get("fault", [])]
            beyond = ("recovery" in table or table["workload"]["kind"] == "stream_race"
                      or " stream=" in text or table["workload"].get("streams") == "each"
                      or any(kind.startswith("link_") for kind in faults))
            name = path[len("stress/scenarios/"):-len(".toml")]
            left_out = name.startswith(runner.BEYOND["mpi"])
            if path.split("/")[2] in ("links", "recovery", "custom_kernel", "nccl", "graphs"):
                self.assertTrue(left_out, name)
            else:
                self.assertEqual(left_out, beyond, name)

    def test_a_launch_that_ends_nightly_again_and_again_is_given_up(self):
        text = 'backends = ["mpi"]\n' + LATENCY % 1
        one = plan.read_plan("p", text)
        for _ in range(3):
            state = journal.Journal(self.output)
            state.begin(one)
            state.start("latency.mpi.0", 7)
            state.close()
        code, answer, _ = self.nightly(text)
        self.assertEqual((3, "INCONCLUSIVE"), (code, answer["verdict"]))
        self.assertIn("does it take the machine down?", answer["reasons"][0])

    def test_slower_than_the_baseline(self):
        base = os.path.join(self.folder, "base")
        for folder in (base, os.path.join(self.output, "launches")):
            os.makedirs(folder)
            for name in ("latency.mpi.0.h5", "latency.gloo.0.h5", "soak.gloo.0.h5"):
                with open(os.path.join(folder, name), "wb"):
                    pass
        one = plan.read_plan("p", 'baseline = "%s"\n' % base + LATENCY % 1)
        state = journal.Journal(self.output)
        self.addCleanup(state.close)
        state.begin(one)
        for launch in one.launches():
            state.end(launch.name, kind="bench", exit=0, seconds=1, said="PASS",
                      file="launches/%s.h5" % launch.name)
        program = os.path.join(self.folder, "lockstep")
        table = {"headline": "so it is", "cases": [
            {"case": "all_reduce/8", "backend": "mpi", "verdict": "slower",
             "effect": {"estimate": 0.25}}],
                 "other_version": "measured by different versions of Lockstep: 1.2.3 -> 1.3.0",
                 "differences": [
                     {"fact": "software/lockstep", "base": "1.2.3", "candidate": "1.3.0"},
                     {"fact": "host/driver", "base": "570", "candidate": "580"}]}
        for code, expected in ((0, (0, "QUALIFIED")), (5, (5, "NOT QUALIFIED")),
                               (3, (3, "INCONCLUSIVE"))):
            with open(program, "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\n[ "$1" != --version ] || { echo lockstep 1.3.0; exit; }\n'
                           'echo "$@" > %s/words\necho \'%s\'\nexit %d\n' % (
                               self.folder, json.dumps(table), code))
            os.chmod(program, 0o755)
            answer = verdict.assess(one, state, self.output, program, None)
            self.assertEqual(expected, (answer["exit_code"], answer["verdict"]))
            if code == 5:
                self.assertIn("all_reduce/8 on mpi +25.0 %; not as it was: host/driver 570 -> 580;"
                              " the two were measured by different versions of Lockstep: 1.2.3 -> "
                              "1.3.0", answer["reasons"][0])
            self.assertEqual("1.3.0", answer["lockstep"])
            with open(os.path.join(self.folder, "words"), encoding="utf-8") as file:
                words = file.read().split()
            # Launches of benchmarks only: soaks are never alike.
            names = [os.path.relpath(word, self.folder) for word in words if word.endswith("h5")]
            self.assertEqual(["base/latency.gloo.0.h5", "base/latency.mpi.0.h5",
                              "out/launches/latency.gloo.0.h5", "out/launches/latency.mpi.0.h5"],
                             names)


class Examples(unittest.TestCase):

    def test_those_of_two_mpis_differ_in_its_words_alone(self):
        plans, batches = [], []
        for folder in ("scripts/examples/", "scripts/examples/mpich/"):
            with open(folder + "nightly.toml", "rb") as file:
                plans.append(tomllib.load(file))
            self.assertEqual(8, plan.Plan("nightly.toml", plans[-1]).ranks)
            del plans[-1]["launcher"], plans[-1]["environment"]
            with open(folder + "nightly.sbatch", encoding="utf-8") as file:
                batches.append(re.sub("(?m)^.*(Open MPI|Hydra|launcher).*$", "", file.read()))
        self.assertEqual(*plans)
        self.assertEqual(*batches)

    def test_slurm(self):
        path = "scripts/examples/nightly.sbatch"
        subprocess.run(["bash", "-n", path], check=True)
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            os.mkdir(os.path.join(folder, "bin"))
            stand_in = os.path.join(folder, "bin/lockstep")
            with open(stand_in, "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\ncat "$2"\necho "$3"\nexit 3\n')
            os.chmod(stand_in, 0o755)
            done = subprocess.run(["bash", path], stdout=subprocess.PIPE, text=True, check=False,
                                  env=dict(os.environ, LOCKSTEP_ROOT=folder, LOCKSTEP_OUTPUT=folder,
                                           SLURM_JOB_ID="7", SLURM_NTASKS="8",
                                           SLURM_JOB_NODELIST="node[1-2]"))
            text, _, option = done.stdout.strip().rpartition("\n")
            self.assertEqual((3, "--output-folder=%s/7" % folder), (done.returncode, option))
            self.assertEqual(8, plan.read_plan("p", text).ranks)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_systemd(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            for name in ("lockstep-nightly.service", "lockstep-nightly.timer"):
                shutil.copy(os.path.join("scripts/examples", name), folder)
            done = subprocess.run(
                ["systemd-analyze", "verify", "--man=no"] +
                [os.path.join(folder, name) for name in sorted(os.listdir(folder))],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            mine = [line for line in done.stdout.splitlines() if "lockstep-nightly" in line]
            self.assertEqual([], mine)


if __name__ == "__main__":
    unittest.main()
