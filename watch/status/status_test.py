#!/usr/bin/python3
"""`lockstep status` and `lockstep watch --report` beside one real MPI program, step by step: status
says when a rank is where it should be, then the next step is allowed."""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

LOCKSTEP = os.path.abspath("cli/lockstep")
CASES = os.path.abspath("watch/preload/cases")
OPTIONS = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
DEADLINE_S = 250  # only ends what hangs


def status(*options):
    return subprocess.run([LOCKSTEP, "status", *options], check=False, capture_output=True,
                          text=True, timeout=DEADLINE_S)


def line_of(text):
    """cases.c:31 of the only line of the program that holds `text`."""
    with open("watch/preload/testing/cases.c", encoding="utf-8") as file:
        lines = [number for number, line in enumerate(file, 1) if text in line]
    assert len(lines) == 1, text
    return "cases.c:%d" % lines[0]


class StatusTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.go = os.path.join(self.folder, "go")

    def watch(self, *options, case="late"):
        command = [LOCKSTEP, "watch", *options, "--", "mpirun", "-np", "3", *OPTIONS, CASES,
                   case, self.go]
        errors = open(os.path.join(self.folder, "errors"), "w+", encoding="utf-8")
        self.addCleanup(errors.close)
        watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors,
                                   cwd=self.folder)
        self.addCleanup(self.end, watcher)
        return watcher, errors

    def end(self, watcher):
        """The program may be anywhere, or stand for ever."""
        watcher.terminate()  # of one that ended: nothing
        watcher.wait(DEADLINE_S)

    def allow(self, step):
        with open(self.go + step, "w", encoding="utf-8"):
            pass

    def job(self, watcher):
        """Ours among those that run on this machine; None: it is not there."""
        done = status("--format=json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        jobs = [job for job in json.loads(done.stdout)["jobs"] if job["watcher"] == watcher.pid]
        self.assertLessEqual(len(jobs), 1)
        return jobs[0] if jobs else None

    def until(self, watcher, reached):
        """The job, as soon as it is as `reached` says."""
        end = time.monotonic() + DEADLINE_S
        job = self.job(watcher)
        while not job or not reached(job):
            self.assertIsNone(watcher.poll(), "it ended early")
            self.assertLess(time.monotonic(), end, job)
            job = self.job(watcher)
        return job

    def until_calls(self, watcher, wanted):
        """… until ranks are in the calls of {rank: text}."""
        return self.until(watcher, lambda job: wanted.items() <= {
            rank["rank"]: rank["calls"][0]["text"] for rank in job["ranks"]
            if rank["calls"]}.items())

    def test_where_ranks_are_and_who_waited_for_whom(self):
        result = os.path.join(self.folder, "run.h5")
        watcher, errors = self.watch("--report", "--output=" + result)
        # Rank 1 may leave MPI_Init last. Then it is in no call, and waits for us.
        job = self.until_calls(watcher, {0: "MPI_Barrier", 1: None, 2: "MPI_Barrier"})
        self.assertEqual((job["size"], [rank["rank"] for rank in job["ranks"]]), (3, [0, 1, 2]))
        self.assertIn("mpirun -np 3", job["command"])
        call = job["ranks"][0]["calls"][0]
        self.assertEqual((call["inside"], call["communicator"]), (True, "world"))
        self.assertRegex(call["site"], r"^cases\.c:\d+$")
        self.assertGreaterEqual(call["seconds"], 0)
        job = self.until(watcher, lambda job: job["ranks"][1]["polls"])
        rank = job["ranks"][1]
        self.assertEqual((rank["poll_call"], rank["poll_site"]),
                         ("MPI_Iprobe", line_of("MPI_Iprobe(rank, 99")))
        late = rank["pid"]
        os.kill(late, signal.SIGSTOP)
        self.until(watcher, lambda job: job["ranks"][1]["state"] == "stopped")
        os.kill(late, signal.SIGCONT)
        self.until(watcher, lambda job: job["ranks"][1]["state"] != "stopped")
        self.allow(".barrier")
        job = self.until_calls(watcher, {0: "MPI_Recv from 1, tag 7"})
        call = job["ranks"][0]["calls"][0]
        self.assertEqual((call["call"], call["peer"], call["tag"], call["site"]),
                         ("MPI_Recv", 1, 7, line_of("MPI_Recv(&value, 1, MPI_INT, 1, 7")))
        table = status().stdout
        self.assertRegex(table, r"(?m)^ +0 +%d .* MPI_Recv from 1, tag 7 +world +cases\.c:\d+$" %
                         job["ranks"][0]["pid"])
        self.allow(".message")
        self.assertEqual(watcher.wait(DEADLINE_S), 0)
        self.assertIsNone(self.job(watcher))
        errors.seek(0)
        self.check_report(result, errors.read())

    def check_report(self, result, printed):
        self.assertRegex(printed, r"(?m)^Waiting: .* of 3 ranks ")
        for line in printed[printed.index("Waiting: "):].splitlines()[:-1]:
            self.assertLessEqual(len(line), 80, line)
        self.assertIn("MPI_Recv at " + line_of("MPI_Recv(&value, 1, MPI_INT, 1, 7"), printed)
        shown = subprocess.run([LOCKSTEP, "show", result], check=False, capture_output=True,
                               text=True, timeout=DEADLINE_S)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(printed[printed.index("Waiting: "):printed.index("lockstep watch: lockstep "
                                                                       "show")], shown.stdout)
        trace = subprocess.run([LOCKSTEP, "export", "--format=chrome-trace", result], check=True,
                               capture_output=True, text=True, timeout=DEADLINE_S)
        slices = [event for event in json.loads(trace.stdout)["traceEvents"]
                  if event["ph"] == "X"]
        # Rank 1 was let go when the others were in the barrier, and rank 0 in its receive.
        for rank, name in ((0, "MPI_Barrier"), (2, "MPI_Barrier"), (0, "MPI_Recv")):
            calls = [event for event in slices if (event["pid"], event["name"]) == (rank, name)]
            self.assertEqual(len(calls), 1, name)
            waits = [event for event in slices if event["name"] == "waits for rank 1" and
                     (event["pid"], event["ts"]) == (rank, calls[0]["ts"])]
            self.assertEqual(len(waits), 1, name)
        self.assertEqual([event for event in slices if event["pid"] == 1 and
                          event["name"] == "waits for rank 1"], [])

    def test_a_watcher_that_was_killed_leaves_no_lie(self):
        watcher, _ = self.watch()
        job = self.until_calls(watcher, {0: "MPI_Barrier", 2: "MPI_Barrier"})
        watcher.kill()
        watcher.wait(DEADLINE_S)
        # Its files may be there for a moment yet.
        self.assertIsNone(self.job(watcher))
        self.assertNotIn("watcher %d" % watcher.pid, status().stdout)
        # The program goes on.
        self.allow(".barrier")
        self.allow(".message")
        for rank in job["ranks"]:
            while os.path.exists("/proc/%d" % rank["pid"]):
                time.sleep(0.01)

    def test_the_watcher_keeps_the_newest_events_for_us(self):
        watcher, errors = self.watch(case="edge")
        end = time.monotonic() + DEADLINE_S
        while "HUNG" not in errors.read():  # then it has read all
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
            errors.seek(0)
        job = self.job(watcher)
        self.assertEqual([rank["events"] for rank in job["ranks"]], [4096] * 3)
        self.assertEqual([rank["calls"][0]["text"] for rank in job["ranks"]],
                         ["MPI_Recv from %d, tag 7" % peer for peer in (1, 2, 0)])

    def test_bad_options(self):
        for options, message in ((["--watch=0"], "--watch"), (["--watch=soon"], "--watch"),
                                 (["--format=json", "--watch"], "leave out --watch"),
                                 (["--sideways"], "--sideways")):
            done = status(*options)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_report_without_a_name_goes_below_results_runs(self):
        command = ["mpirun", "-np", "2", *OPTIONS, CASES, "ring"]
        done = subprocess.run([LOCKSTEP, "watch", "--report", "--", *command], check=False,
                              capture_output=True, text=True, timeout=DEADLINE_S, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), ["rank 0: 1", "rank 1: 1"])
        [result] = glob.glob(os.path.join(self.folder, "results/runs/*-watch-*.h5"))
        self.assertIn("lockstep show results/runs/" + os.path.basename(result), done.stderr)
        lines = subprocess.run([LOCKSTEP, "export", "--format=chrome-trace", result], check=True,
                               capture_output=True, text=True, timeout=DEADLINE_S).stdout
        names = [event["name"] for event in json.loads(lines)["traceEvents"]
                 if event["ph"] == "X" and not event["name"].startswith("waits")]
        for name, calls in (("MPI_Allreduce", 100), ("MPI_Waitall", 100), ("MPI_Isend", 100),
                            ("MPI_Finalize", 2)):
            self.assertEqual(names.count(name), calls)

    def test_a_named_result_is_written_though_nothing_was_found(self):
        named, folder = (os.path.join(self.folder, name) for name in ("named.h5", "results"))
        for words, pattern in (([f"--output={named}"], named),
                               ([f"--output-folder={folder}"], folder + "/*-watch-*.h5")):
            done = subprocess.run([LOCKSTEP, "watch", *words, "--", "true"], check=False,
                                  capture_output=True, text=True, timeout=DEADLINE_S)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            [result] = glob.glob(pattern)
            self.assertIn(f"lockstep show {result}\n", done.stderr)
            shown = subprocess.run([LOCKSTEP, "show", result], check=True, capture_output=True,
                                   text=True, timeout=DEADLINE_S)
            self.assertIn("no finding", shown.stdout)

    def test_one_result_has_one_name(self):
        done = subprocess.run([LOCKSTEP, "watch", "--output=a.h5", "--output-folder=b", "--",
                               "true"], check=False, capture_output=True, text=True,
                              timeout=DEADLINE_S)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Alockstep: --output names one file, [^\n]+\n\Z")

    def test_a_report_that_cannot_be_written_is_refused_first(self):
        done = subprocess.run([LOCKSTEP, "watch", "--output=/proc/no/run.h5", "--", "true"],
                              check=False, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^lockstep: /proc/no/run\.h5: [^\n]+\n$")


if __name__ == "__main__":
    unittest.main()
