#!/usr/bin/python3
"""MPI that Python loads, in a scope of its own, under `lockstep watch`: as mpi4py does.

Lines of Python are those of py-spy. A script that prints what py-spy prints takes its place."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("core/base/testing"))
import started  # pylint: disable=wrong-import-position

LOCKSTEP = os.path.abspath("cli/lockstep")
PLUGIN = os.path.abspath("watch/preload/libplugin.so")
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
          "--mca", "btl", "self,tcp", "-n", "2"]
PY_SPY = """#!/bin/sh
echo 'Thread 1 (idle): "MainThread"'
echo '    recv (/usr/lib/python3/dist-packages/mpi4py/MPI.py:9)'
echo '    exchange (/home/me/solver.py:73)'
"""


def watched(wrong, py_spy=False, in_thread=False):
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    path = os.environ["PATH"]
    if py_spy:
        with open(folder + "/py-spy", "w", encoding="utf-8") as file:
            file.write(PY_SPY)
        os.chmod(folder + "/py-spy", 0o755)
        path = f"{folder}:{path}"
    call = f"ctypes.CDLL({PLUGIN!r}).program({wrong:d})"
    if in_thread:
        call = f"t = threading.Thread(target=lambda: {call}); t.start(); t.join()"
    program = "import ctypes, threading; " + call
    return started.run([LOCKSTEP, "watch", "--on-hang=kill", "--", *MPIRUN, sys.executable, "-c",
                        program], cwd=folder, env=dict(os.environ, PATH=path))


class PythonLoadsMpi(unittest.TestCase):

    def test_of_a_right_program_nothing_is_said(self):
        ended = watched(wrong=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stderr, r"lockstep watch: 2 ranks, \d+ events, no finding")

    def test_a_wrong_one_is_told_with_its_line_of_python(self):
        ended = watched(wrong=True, py_spy=True)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r"HUNG, deadlock \(proved\): rank 0 waits in MPI_Recv from "
                                       r"rank 1, tag 7, at solver\.py:73; rank 1 is in "
                                       r"MPI_Allreduce at solver\.py:73")

    # Python is not linked to the runtime, which comes too late to see it make a thread.
    @unittest.skipIf("TSAN_OPTIONS" in os.environ, "a thread of Python's is none of the runtime's")
    def test_the_line_of_the_main_thread_is_not_that_of_another(self):
        ended = watched(wrong=True, py_spy=True, in_thread=True)
        self.assertRegex(ended.stderr, r"HUNG, deadlock \(proved\): rank 0 waits in MPI_Recv from "
                                       r"rank 1, tag 7, at program@libplugin\.so;")
        self.assertNotIn("solver.py", ended.stderr)

    def test_without_py_spy_with_the_function_that_calls(self):
        ended = watched(wrong=True)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r"HUNG, deadlock \(proved\): rank 0 waits in MPI_Recv from "
                                       r"rank 1, tag 7, at (program@libplugin\.so|\S+\.py:\d+);")


if __name__ == "__main__":
    unittest.main()
