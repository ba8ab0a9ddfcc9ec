#!/usr/bin/python3
"""scripts/compat_matrix: real launches over two MPI transports, gloo and stand-ins of NCCL; planted
faults land in their cells; it goes on where it was ended; two answers are compared."""
import json
import os
import subprocess
import tempfile
import unittest

MATRIX = os.path.abspath("scripts/compat_matrix")
PROGRAMS = os.getcwd()
FAKES = os.path.abspath("core/comm/nccl/testing")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

STEP = """ranks = 2
budget = "10min"
[[step]]
name = "latency"
program = "bench_allreduce"
arguments = ["-b", "8", "-e", "8", "-n", "40", "-w", "2"]
seconds = 20
"""
MPI = """[[configuration]]
name = "shared memory"
backend = "mpi"
[[configuration]]
name = "loopback tcp"
backend = "mpi"
launcher = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca btl self,tcp"
[[configuration]]
name = "gloo"
backend = "gloo"
"""


def nccl(name, library, faults=""):
    table = f'[[configuration]]\nname = "{name}"\nnccl_library = "{library}"\n'
    return table + (f'environment = {{ LOCKSTEP_FAKE_NCCL = "{faults}" }}\n' if faults else "")


def damaged_library():
    """A file that says it is NCCL 2.18.3, and is nothing else."""
    path = os.path.join(FOLDER, "libnccl.so.2")
    with open(path, "wb") as file:
        file.write(b"\0" * 100_000 + b"NCCL version 2.18.3+cuda12.0\0" + b"\0" * 100)
    return path


def matrix(name, *arguments, content=None):
    output = os.path.join(FOLDER, name)
    words = [MATRIX, f"--output={output}", f"--programs={PROGRAMS}", *arguments]
    if content is not None:
        path = os.path.join(FOLDER, name + ".toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        words.append(path)
    done = subprocess.run(words, capture_output=True, text=True, timeout=200)
    path = os.path.join(output, "matrix.json")
    answer = None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            answer = json.load(file)
    return done, answer


def cells(answer):
    return {cell["configuration"]: cell["cell"] for cell in answer["cells"]}


class CompatMatrixTest(unittest.TestCase):
    def test_transports_of_mpi_and_gloo_run_for_real(self):
        done, answer = matrix("real", content=STEP + MPI)
        found = cells(answer)
        self.assertEqual(set(found), {"shared memory", "loopback tcp", "gloo"}, done.stderr)
        for cell in found.values():
            self.assertIn(cell, ("ok", "slower"), done.stdout)
        self.assertIn("Open MPI", answer["configurations"][0]["versions"]["backend_version"])
        # Nothing is run twice, and the answer is the same.
        again, same = matrix("real", content=STEP + MPI)
        self.assertEqual(again.stderr, "")
        self.assertEqual(same["cells"], answer["cells"])
        # Another plan in the same place is refused.
        other, _ = matrix("real", content=STEP.replace("\"40\"", "\"41\"") + MPI)
        self.assertEqual(other.returncode, 2, other.stdout)

    def test_planted_faults_land_in_their_cells(self):
        good = f"{FAKES}/libfake_nccl_22809.so"
        content = STEP.replace("ranks = 2", "ranks = 2\ndeadline = 3") + "".join([
            nccl("good", good),
            nccl("old", f"{FAKES}/libfake_nccl_21801.so"),
            nccl("corrupting", good, "ncclAllReduce:corrupt:rank=1:nth=20"),
            nccl("hanging", good, "ncclAllReduce:stuck:rank=1:nth=20"),
            nccl("absent", "/nowhere/libnccl.so.2"), nccl("damaged", damaged_library())])
        done, answer = matrix("planted", content=content)
        self.assertEqual(cells(answer), {"good": "ok", "old": "ok", "corrupting": "wrong",
                                         "hanging": "hang", "absent": "missing",
                                         "damaged": "missing"},
                         done.stdout + done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.startswith("FAIL: 2 of 6 cells; latency with corrupting: "
                                               "wrong"), done.stdout)
        self.assertIn("/nowhere/libnccl.so.2", done.stdout)
        old = os.path.join(FOLDER, "old.json")
        # Of a library that cannot be loaded the version is read, and judged.
        damaged = answer["configurations"][5]
        self.assertEqual(damaged["versions"], {"nccl": "2.18.3", "built for CUDA": "12.0"})
        self.assertIn("nccl_abort_hangs", [rule["rule"] for rule in damaged["rules"]])
        self.assertIn("ncclCommAbort can hang", done.stdout)
        for cell in answer["cells"]:
            if cell["configuration"] not in ("absent", "damaged"):
                cell["cell"] = "ok"
        with open(old, "w", encoding="utf-8") as file:
            json.dump(answer, file)
        new = os.path.join(FOLDER, "planted", "matrix.json")
        worse = subprocess.run([MATRIX, "--diff", old, new], capture_output=True, text=True)
        self.assertEqual(worse.returncode, 5, worse.stdout)
        self.assertIn("latency, corrupting: ok -> wrong", worse.stdout)
        better = subprocess.run([MATRIX, "--diff", new, old], capture_output=True, text=True)
        self.assertEqual(better.returncode, 0, better.stdout)
        self.assertIn("0 for the worse", better.stdout)

    def test_bad_input_is_one_line(self):
        for content, part in ((STEP, "two [[configuration]]"),
                              (STEP + MPI + "typo = 1\n", "typo"),
                              ("baseline = \"x\"\n" + STEP + MPI, "baseline"),
                              ("name = \n", "mend the TOML")):
            done, _ = matrix("bad", content=content)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(part, done.stderr)
        done = subprocess.run([MATRIX, "--diff", "/nowhere", "/nowhere"], capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1))


if __name__ == "__main__":
    unittest.main()
