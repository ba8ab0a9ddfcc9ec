#!/usr/bin/python3
"""Hosts of our own on this machine: they come up, run, and go, and the benchmarks and stress run
across them. Without namespaces it is said why, and nothing else is tested."""
import glob
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

import h5py

HOSTS = os.path.abspath("scripts/test_hosts")
BENCH = os.path.abspath("bench/bench_allreduce")
STEPS = os.path.abspath("bench/bench_ddp_step")
STRESS = os.path.abspath("stress/stress")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
MARK = uuid.uuid4().hex


def environment():
    return dict(os.environ, LOCKSTEP_HOSTS_MARK=MARK, HOME=FOLDER)


def hosts(number, *words, ranks=1):
    return subprocess.run([HOSTS, str(number), f"--ranks-per-host={ranks}", *words],
                          capture_output=True, text=True, env=environment(),
                          stdin=subprocess.DEVNULL)


def left_over():
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if MARK.encode() in file.read() and int(path.split("/")[2]) != os.getpid():
                    found.append(path.split("/")[2])
        except OSError:
            continue
    return found


def runs(program):
    for pid in left_over():
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                if file.read().strip() == program:
                    return True
        except OSError:
            continue
    return False


PROBE = hosts(1, "--shell", "--", "true")


@unittest.skipIf(PROBE.returncode == 77, PROBE.stderr.strip())
class HostsTest(unittest.TestCase):
    def tearDown(self):
        deadline = time.monotonic() + 60
        while left_over() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(left_over(), [])

    def test_every_host_has_a_name_an_address_and_nothing_else(self):
        script = "hostname; ip -4 -o addr show | awk '{print $4}'; ip route; ls /dev/shm | wc -l"
        done = hosts(3, "--shell", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split("\n")[:3], ["node1", "127.0.0.1/8", "10.77.0.1/24"])
        self.assertNotIn("default", done.stdout)
        self.assertEqual(hosts(1, "--shell", "--", "sh", "-c", "exit 5").returncode, 5)

    def test_ranks_are_placed(self):
        done = hosts(2, "--", "hostname", ranks=2)
        self.assertEqual(sorted(done.stdout.split()), ["node1", "node1", "node2", "node2"],
                         done.stderr)

    def test_training_steps_across_hosts(self):
        # By MPI a thread beside the one that computes calls it, which has to be said at its start.
        model = os.path.join(FOLDER, "two_layers.json")
        with open(model, "w", encoding="utf-8") as file:
            json.dump({"name": "two_layers", "ready_order": [1, 0], "buffers": [],
                       "params": [{"name": f"layer{i}.weight", "shape": [64, 64], "dtype": "f32"}
                                  for i in range(2)]}, file)
        for backend in ("mpi", "gloo"):
            path = os.path.join(FOLDER, backend + "-steps.h5")
            done = hosts(2, "--", STEPS, f"--model={model}", "-n", "3", f"--backend={backend}",
                         f"--output={path}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue(done.stdout.startswith("PASS: 1 of 1 cases"), done.stdout)

    def test_a_measurement_across_hosts_by_mpi_and_gloo(self):
        for backend in ("mpi", "gloo"):
            path = os.path.join(FOLDER, backend + ".h5")
            done = hosts(2, "--", BENCH, "-b", "8", "-e", "4K", "-f", "8", "-n", "30",
                         f"--backend={backend}", f"--output={path}", ranks=2)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with h5py.File(path) as run:
                names = [run[f"environment/ranks/{rank}"].attrs["host"] for rank in range(4)]
                names = [name.decode() if isinstance(name, bytes) else name for name in names]
                self.assertEqual(names, ["node1", "node1", "node2", "node2"])
                self.assertEqual(len(run["summary"]), 4)

    def test_a_scenario_across_hosts(self):
        path = os.path.join(FOLDER, "stress.json")
        done = hosts(2, "--", STRESS, "--scenario=uneven_inputs/case[124]", f"--verdicts={path}",
                     f"--output={FOLDER}/stress.h5", "-T", "10")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(path, encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        self.assertEqual([case["verdict"] for case in cases], ["pass"] * 3)
        self.assertEqual(cases[1]["findings"][0]["cause"], "uneven_inputs")

    def test_killed_it_leaves_nothing(self):
        # But for its folder: nobody is left who could remove that.
        process = subprocess.Popen([HOSTS, "3", "--shell", "--", "sleep", "60"],
                                   env={**environment(), "TMPDIR": FOLDER},
                                   stdin=subprocess.DEVNULL)
        try:
            limit = time.monotonic() + 200
            while not runs("sleep") and time.monotonic() < limit:
                time.sleep(0.05)
            self.assertTrue(runs("sleep"))  # all hosts are there before it
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def test_bad_input_is_one_line(self):
        for words in (["0", "--", "true"], ["2", "--ranks-per-host=1000", "--", "true"]):
            done = subprocess.run([HOSTS, *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
