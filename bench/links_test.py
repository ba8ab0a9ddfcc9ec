#!/usr/bin/python3
"""bench_links: matrices of all backends, wrong data, a hang; and over hosts of our own a link of
10 ms that loses packets is singled out, and nothing is where nothing is wrong."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch, text

BENCH = os.path.abspath("bench/bench_links")
SHIM = os.path.abspath("bench/peers/libfaulty_recv.so")
HOSTS = os.path.abspath("scripts/test_hosts")
WIRE = os.path.abspath("bench/testing/bad_wire.py")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
LAUNCHES = 5
SHORT = ["--bytes=64K", "--time-budget=3"]


def rows(path):
    with h5py.File(path) as file:
        return [{name: text(row[name]) if row[name].dtype.kind == "S" else row[name].item()
                 for name in row.dtype.names} for row in file["links/pairs"][:]]


class LinksTest(unittest.TestCase):
    def faulty(self, kind, *arguments, call=50):
        return Launch(BENCH, [*SHORT, "-T", "3", *arguments], ranks=2, environment={
            "LD_PRELOAD": SHIM, "FAULTY_KIND": kind, "FAULTY_CALL": str(call)}).finish()

    def test_every_pair_is_measured(self):
        for backend, ranks in (("mpi", 3), ("gloo", 4)):
            launch = Launch(BENCH, [*SHORT, f"--backend={backend}"], ranks=ranks).finish()
            self.assertEqual(launch.code, 0, launch.out + launch.err)
            pairs = rows(launch.path)
            self.assertEqual([(row["a"], row["b"]) for row in pairs],
                             [(a, b) for a in range(ranks) for b in range(a + 1, ranks)])
            with h5py.File(launch.path) as file:
                latency, rate = file["links/latency_ns"][:], file["links/gbps"][:]
                self.assertTrue((file["links/all_at_once_gbps"][:] > 0).all())
                self.assertGreater(int(file["summary"]["checked_elements"].sum()), 1 << 16)
                self.assertEqual(int(file["summary"]["wrong_elements"].sum()), 0)
            off = ~numpy.eye(ranks, dtype=bool)
            self.assertTrue((latency[off] > 0).all() and (rate[off] > 0).all())
            self.assertTrue(numpy.isnan(latency[~off]).all())
            self.assertEqual(latency[0, 1], pairs[0]["latency_ns"])
            self.assertEqual(rate[1, 0], pairs[0]["back_gbps"])
            # Links within a host of processors are not judged.
            self.assertEqual({row["standing"] for row in pairs}, {"not_judged"})
            self.assertIn("none is judged", launch.out.splitlines()[0])
            self.assertEqual(launch.leftovers(), [])

    def test_one_pair_at_a_time_and_json_lines(self):
        launch = Launch(BENCH, [*SHORT, "-n", "6", "--one-at-a-time", "--all-at-once=0",
                                "--format=jsonl", "-c", "full"], ranks=3).finish()
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        lines = [json.loads(line) for line in launch.out.splitlines()]
        links = [line for line in lines if line["record"] == "link"]
        self.assertEqual([(link["a"], link["b"]) for link in links], [(0, 1), (0, 2), (1, 2)])
        self.assertEqual({line["name"] for line in lines if line["record"] == "case"},
                         {"links/pair:0-1", "links/pair:0-2", "links/pair:1-2"})
        self.assertEqual([line["sent_gbps"] for line in lines if line["record"] == "all_at_once"],
                         [[]])

    def test_one_flipped_bit_is_found_and_located(self):
        launch = self.faulty("flip")
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn("rank 1 received wrong data", launch.out.splitlines()[0])
        self.assertIn("from rank 0", launch.out.splitlines()[0])
        self.assertEqual(launch.outcomes(), {0: "finished", 1: "corrupt"})

    def test_a_link_that_stalls_is_named(self):
        launch = self.faulty("hang", call=80)
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn("rank 1", launch.out.splitlines()[0])
        self.assertIn("link 0 - 1", launch.out)
        self.assertEqual(rows(launch.path)[0]["rounds"] > 0, True)
        self.assertEqual(launch.leftovers(), [])

    def test_bad_input_is_one_line(self):
        for words, said in ((["--per=rack"], "--per"), (["--bytes=0"], "--bytes"),
                            (["--slow-factor=1"], "--slow-factor"), (["--per=host"], "--per=host"),
                            (["--format=nccl-tests"], "nccl-tests"),
                            (["--all-at-once=2"], "--all-at-once")):
            launch = Launch(BENCH, words).finish()
            self.assertEqual(launch.code, 2, launch.out + launch.err)
            self.assertIn(said, launch.err.splitlines()[0])


def over_hosts(links, *arguments):
    """4 hosts of which these links are bad: (exit code, first line, pairs)."""
    path = os.path.join(tempfile.mkdtemp(dir=FOLDER), "hosts.h5")
    words = [HOSTS, "4", "--shell", "--", WIRE, *[f"--link={link}" for link in links],
             "--delay-ms=10", "--loss=0.01", "--", BENCH, *arguments, f"--output={path}"]
    done = subprocess.run(["timeout", "-k", "5", "120", *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    out = done.stdout or done.stderr
    return done.returncode, out.splitlines()[0] if out else "", path


PROBE = subprocess.run(["timeout", "-k", "5", "60", HOSTS, "1", "--shell", "--", "true"],
                       capture_output=True, text=True, stdin=subprocess.DEVNULL)
NO_HOSTS = PROBE.stderr.strip() or "no hosts" if PROBE.returncode == 77 else ""
if not NO_HOSTS and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
    NO_HOSTS = "/dev/net/tun cannot be opened here, so no link can be made bad"


@unittest.skipIf(NO_HOSTS, NO_HOSTS)
class HostsTest(unittest.TestCase):
    def judged(self, links, *arguments, launches=LAUNCHES):
        """The first of so many launches that judges, or the last. On a machine that others use, no
        link is judged rather than one wrongly: then no finding is made."""
        for _ in range(launches):
            code, line, path = over_hosts(links, *arguments)
            print(code, line)
            if code != 3:
                break
            self.assertTrue(line.startswith("INCONCLUSIVE: the hosts are too busy to judge"), line)
            standings = [row["standing"] for row in rows(path)]
            self.assertIn("too_busy", standings)
            self.assertEqual([one for one in standings if one.startswith("slow")], [])
        return code, line, path

    def test_a_bad_link_over_mpi_is_never_passed_and_no_other_is_accused(self):
        # Open MPI's ranks spin: four of them leave few rounds in which none waited for a
        # processor. What holds on any load: the link is named, or none is judged.
        code, line, path = over_hosts(["node2:node3"], *SHORT)
        print(code, line)
        standings = {(row["a"], row["b"]): row["standing"] for row in rows(path)}
        slow = {pair for pair, standing in standings.items() if standing.startswith("slow")}
        self.assertIn(code, (1, 3), line)
        self.assertEqual(slow, {(1, 2)} if code == 1 else set(), line)
        self.assertIn(standings[1, 2], ("slow_link", "too_busy"), line)

    def test_a_bad_link_is_singled_out(self):
        # Gloo's ranks sleep while they wait: beside busy loops, too, waits explain a part of 10 ms
        # only. Whoever judges nothing in LAUNCHES launches fails.
        code, line, path = self.judged(["node2:node3"], *SHORT, "--backend=gloo")
        self.assertEqual(code, 1, line)
        # On a busy machine it may be known in one direction only.
        self.assertRegex(line, "^FAIL: link (node2 -> node3|node3 -> node2)")
        slow = [(row["a"], row["b"]) for row in rows(path) if row["standing"] == "slow_link"]
        self.assertEqual(slow, [(1, 2)])
        with h5py.File(path) as file:
            found = file["verdicts/findings"][:]
        self.assertEqual([text(row["cause"]) for row in found], ["slow_link"])
        self.assertEqual(text(found[0]["culprits"]), "1,2")

    def test_good_links_are_not(self):
        code, line, path = self.judged([], *SHORT, "--backend=gloo", launches=1)
        # Beside busy loops no round may be left that calls a link good: then that is said of the
        # link, and of no other (which rounds count is tested with literal ones: link_survey_test).
        standings = [row["standing"] for row in rows(path)]
        self.assertLessEqual(set(standings), {"usual", "unsteady", "too_busy"})
        self.assertEqual(code, 3 if "too_busy" in standings else 0, line)
        if code == 0:
            self.assertIn("none of 6 judged is slow", line)


if __name__ == "__main__":
    unittest.main()
