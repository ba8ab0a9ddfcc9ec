#!/usr/bin/python3
"""The preload library as the dynamic linker sees it, and in programs that know nothing of MPI."""
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

LIBRARY = os.path.abspath("watch/preload/liblockstep_watch.so")
# A sanitizer's runtime is needed too, where .bazelrc built with one, and what a failed assertion of
# the standard library says is in it.
RUNTIMES = tuple("lib%s.so" % name for name in ("asan", "ubsan", "tsan")
                 if name.upper() + "_OPTIONS" in os.environ)
RUNTIMES += ("libstdc++.so",) if RUNTIMES else ()


def shown(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class LibraryTest(unittest.TestCase):

    def test_it_needs_the_c_library_alone(self):
        needed = [line.split("[")[1].rstrip("]") for line in
                  shown("readelf", "-dW", LIBRARY).splitlines() if "(NEEDED)" in line]
        ours = {name for name in needed if not name.startswith(RUNTIMES)}
        self.assertLessEqual(ours, {"libc.so.6", "libm.so.6", "libgcc_s.so.1",
                                    "ld-linux-x86-64.so.2"})

    def test_it_shows_calls_of_mpi_under_both_names_and_of_gloo_and_nccl_and_nothing_else(self):
        lines = [line.split() for line in
                 shown("nm", "-D", "--defined-only", LIBRARY).splitlines()]
        names = [name for _, kind, name in lines if kind.isupper() or kind == "i"]
        calls = {name[4:] for name in names if name.startswith("MPI_")}
        for call in calls:  # with large counts, beside the others
            self.assertIn(call.removesuffix("_c"), calls)
        self.assertEqual({name[5:] for name in names if name.startswith("PMPI_")}, calls)
        with open("watch/events/calls.h", encoding="utf-8") as file:
            listed = set(re.findall(r"^  X\((\w+), k", file.read(), re.M)) - {"None"}
        self.assertEqual({call for call in calls if not call.endswith("_c")}, listed)
        edges = {"__bss_start", "_edata", "_end", "_exit", "_Exit", "kill", "killpg"}
        ours = ("MPI_", "PMPI_", "_ZN4gloo", "_ZN4c10d11PrefixStoreC1E", "nccl")
        self.assertFalse([name for name in names
                          if not name.startswith(ours) and name not in edges])

    def test_what_it_wants_of_mpi_may_be_absent(self):
        strong = [line.split()[-1] for line in shown("nm", "-D", LIBRARY).splitlines()
                  if " U " in line]
        self.assertFalse([name for name in strong if "mpi" in name.lower() or "nccl" in name])

    def test_a_program_without_mpi_runs_and_leaves_nothing(self):
        folder = os.environ["TEST_TMPDIR"]
        before = os.listdir(folder)
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, LOCKSTEP_WATCH_FOLDER=folder)
        ended = subprocess.run(["/bin/echo", "same"], check=True, capture_output=True, text=True,
                               env=environment)
        self.assertEqual((ended.stdout, ended.stderr), ("same\n", ""))
        self.assertEqual(os.listdir(folder), before)

    def test_who_is_told_to_end_is_written_down_before(self):
        """Processes and groups; not signals that end nobody, nor what a process does to itself."""
        folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        script = ("import os, signal, subprocess\n"
                  "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
                  "os.kill(child.pid, signal.SIGCONT)\n"
                  "os.kill(child.pid, 0)\n"
                  "os.kill(child.pid, signal.SIGTERM)\n"
                  "os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)\n"
                  "os.killpg(child.pid, signal.SIGKILL)\n"
                  "print(child.pid, child.wait(), flush=True)\n"
                  "os.kill(os.getpid(), signal.SIGKILL)\n")
        ended = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True,
                               text=True, timeout=60,
                               env=dict(os.environ, LD_PRELOAD=LIBRARY,
                                        LOCKSTEP_WATCH_FOLDER=folder))
        self.assertEqual(ended.returncode, -signal.SIGKILL, ended.stderr)
        child, code = map(int, ended.stdout.split())
        self.assertEqual(code, -signal.SIGTERM)
        with open(os.path.join(folder, "endings"), "rb") as file:
            words = struct.iter_unpack("<Qqq", file.read())
        self.assertEqual([word[1:] for word in words], [(child, 0), (-child, child)])


if __name__ == "__main__":
    unittest.main()
