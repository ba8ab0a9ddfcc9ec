#!/usr/bin/python3
"""bench_links over hosts of our own: a link of 10 ms that loses packets is singled out, and none is
where nothing is wrong."""
import os
import subprocess
import sys
import tempfile
import unittest

import h5py

sys.path.insert(0, os.getcwd())
from bench.testing.launch import text, with_enough_time
from bench.testing.links import BENCH, rows

HOSTS = os.path.abspath("scripts/test_hosts")
WIRE = os.path.abspath("bench/testing/bad_wire.py")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
LAUNCHES = 5


def over_hosts(links, *arguments):
    """4 hosts of which these links are bad: (exit code, first line, pairs)."""
    path = os.path.join(tempfile.mkdtemp(dir=FOLDER), "hosts.h5")
    words = [HOSTS, "4", "--shell", "--", WIRE, *[f"--link={link}" for link in links],
             "--delay-ms=10", "--loss=0.01", "--", BENCH, *arguments, f"--output={path}"]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    out = done.stdout or done.stderr
    return done.returncode, out.splitlines()[0] if out else "", path


def leaves_pairs_out(done):
    code, line, path = done
    print(code, line)
    return code == 3 and "not_measured" in [row["standing"] for row in rows(path)]


def measured_over_hosts(links, *arguments):
    """As over_hosts(), with time enough to measure all pairs."""
    return with_enough_time(
        lambda budget_s: over_hosts(links, "--bytes=64K", f"--time-budget={budget_s}", *arguments),
        leaves_pairs_out, budget_s=3)


PROBE = subprocess.run([HOSTS, "1", "--shell", "--", "true"], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL)
NO_HOSTS = PROBE.stderr.strip() or "no hosts" if PROBE.returncode == 77 else ""
if not NO_HOSTS and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
    NO_HOSTS = "/dev/net/tun cannot be opened here, so no link can be made bad"


@unittest.skipIf(NO_HOSTS, NO_HOSTS)
class HostsTest(unittest.TestCase):
    def judged(self, links, *arguments, launches=LAUNCHES):
        """The first of so many launches that judges, or the last. On a machine that others use, no
        link is judged rather than one wrongly: then no finding is made."""
        for _ in range(launches):
            code, line, path = measured_over_hosts(links, *arguments)
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
        code, line, path = measured_over_hosts(["node2:node3"])
        standings = {(row["a"], row["b"]): row["standing"] for row in rows(path)}
        slow = {pair for pair, standing in standings.items() if standing.startswith("slow")}
        self.assertIn(code, (1, 3), line)
        self.assertEqual(slow, {(1, 2)} if code == 1 else set(), line)
        self.assertIn(standings[1, 2], ("slow_link", "too_busy"), line)

    def test_a_bad_link_is_singled_out(self):
        # Gloo's ranks sleep while they wait: beside busy loops, too, waits explain a part of 10 ms
        # only. Whoever judges nothing in LAUNCHES launches fails.
        code, line, path = self.judged(["node2:node3"], "--backend=gloo")
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
        code, line, path = self.judged([], "--backend=gloo", launches=1)
        # Beside busy loops no round may be left that calls a link good: then that is said of the
        # link, and of no other (which rounds count is tested with literal ones: link_survey_test).
        standings = [row["standing"] for row in rows(path)]
        self.assertLessEqual(set(standings), {"usual", "unsteady", "too_busy"})
        self.assertEqual(code, 3 if "too_busy" in standings else 0, line)
        if code == 0:
            self.assertIn("none of 6 judged is slow", line)

    def test_one_rank_of_each_host(self):
        code, line, path = over_hosts([], "--bytes=64K", "-n", "20", "--backend=gloo",
                                      "--per=host", "--benchmark_filter=round:0")
        self.assertIn(code, (0, 3), line)
        self.assertEqual([row["standing"] != "not_measured" for row in rows(path)], [True, True])


if __name__ == "__main__":
    unittest.main()
