#!/usr/bin/python3
"""scripts/compat_matrix: real launches over two MPI transports, gloo and stand-ins of NCCL; planted
faults land in their cells; it goes on where it was ended; two answers are compared."""
import json
import os
import subprocess
import tempfile
import tomllib
import unittest

from qualification import compat_matrix, verdict
from qualification import matrix as of_cells

MATRIX = os.path.abspath("scripts/compat_matrix")
PROGRAMS = os.getcwd()
FAKES = os.path.abspath("core/comm/nccl/testing")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

STEP = """ranks = 2
time_budget = "10min"
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
    """A library that says it is NCCL 2.18.3 and has its symbols, and that nothing can load."""
    path = os.path.join(FOLDER, "libnccl.so.2")
    with open(f"{FAKES}/libfake_nccl_21801.so", "rb") as file:
        content = bytearray(file.read())
    content[56:58] = b"\0\0"  # e_phnum (elf(5)): no segment to load
    with open(path, "wb") as file:
        file.write(content + b"NCCL version 2.18.3+cuda12.0\0" + b"\0" * 100)
    return path


def matrix(name, *arguments, content=None):
    output = os.path.join(FOLDER, name)
    words = [MATRIX, f"--output-folder={output}", f"--programs={PROGRAMS}", *arguments]
    if content is not None:
        path = os.path.join(FOLDER, name + ".toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        words.append(path)
    done = subprocess.run(words, capture_output=True, text=True)
    path = os.path.join(output, "matrix.json")
    answer = None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            answer = json.load(file)
    return done, answer


def cells(answer):
    return {cell["configuration"]: cell["cell"] for cell in answer["cells"]}


def case(verdict, estimate, low=None, high=None):
    return {"case": "all_reduce/8", "verdict": verdict, "why": "the interval is too wide",
            "resolve": "3 more launches a side",
            "effect": {"estimate": estimate, "low": low, "high": high}}


class CellTest(unittest.TestCase):
    """What `lockstep compare` says of cases, as one cell."""

    def check(self, cases, word, shown, part, not_read=()):
        found, why, times = of_cells.judge_cases(cases, list(not_read))
        self.assertEqual(found, word)
        self.assertEqual(of_cells._shown({"cell": found, "times": times}), shown)
        self.assertIn(part, why)

    def test_words_and_numbers(self):
        same, faster = case("same", 0.01, -0.01, 0.03), case("faster", -0.5, -0.6, -0.4)
        slower, torn = case("slower", 1.5, 1.2, 1.8), case("ambiguous", 0.9, -0.8, 3.57)
        self.check([same, same], "ok", "ok 1.01-1.01x", "")
        self.check([same, faster], "ok", "ok 0.5-1.01x", "")
        self.check([same, slower], "slower", "slower 1.01-2.5x",
                   "1 same, 1 slower (of 2 cases); most: all_reduce/8, 2.50 times the time")
        self.check([slower, torn], "slower", "slower 1.9-2.5x", "1 ambiguous (of 2 cases)")
        self.check([same, torn], "ambiguous", "ambiguous 0.2..4.57x", "3 more launches a side")
        self.check([torn], "ambiguous", "ambiguous 0.2..4.57x", "1 ambiguous (of 1 cases)")

    def test_what_was_not_compared_is_unknown(self):
        same, missing = case("same", 0.01, -0.01, 0.03), case("missing", None)
        self.check([same, missing], "unknown", "unknown 1.01-1.01x", "1 missing (of 2 cases)")
        self.check([missing], "unknown", "unknown", "1 missing")
        self.check([same], "unknown", "unknown 1.01-1.01x", "a.h5: damaged", ["a.h5: damaged"])
        self.check([], "unknown", "unknown", "(of 0 cases)")

    def test_a_launch_without_a_result_is_not_ok(self):
        end = {"exit": 0, "seconds": 1.0, "said": "it said nothing"}
        self.assertEqual(("ok", ""), of_cells.cell_of(end, "run.h5"))
        self.assertEqual(("unknown", "it wrote no result; it said nothing"),
                         of_cells.cell_of(end, None))

    def test_a_limit_is_no_hang(self):
        end = {"exit": None, "seconds": 35.2, "said": "bench_allreduce: 48 cases"}
        word, why = of_cells.cell_of(end, None)
        self.assertEqual("unfinished", word)
        self.assertIn("was ended by the plan's limit after 35 s", why)
        for others, worst in (("unknown", "unfinished"), ("crash", "crash")):
            self.assertEqual(worst, max(word, others, key=of_cells.ORDER.index))
        code, headline = compat_matrix.judge([{"step": "s", "configuration": "a", "cell": word,
                                               "why": why}])
        self.assertEqual((3, "INCONCLUSIVE: 1 of 1 cells; s with a: unfinished"),
                         (code, headline[:48]))

    def test_what_is_not_known_is_not_worse(self):
        for before, after, change in (
                ("ok", "hang", "worse"), ("slower", "wrong", "worse"), ("ok", "slower", "worse"),
                ("hang", "ok", ""), ("slower", "ok", ""), ("unknown", "ok", ""), (None, "ok", ""),
                ("ok", "ambiguous", "not known"), ("slower", "ambiguous", "not known"),
                ("ok", "unknown", "not known"), ("ok", "unfinished", "not known"),
                ("unfinished", "ok", ""), ("unfinished", "hang", "worse"),
                ("ok", "missing", "not known"),
                ("ok", None, "not known"), ("hang", "unknown", "not known"),
                ("ambiguous", "slower", "not known"), ("unknown", "hang", "worse"),
                ("missing", "fail", "worse")):
            self.assertEqual(change, of_cells.change_of(before, after), (before, after))

    def test_a_program_that_answers_something_else(self):
        def ask(script):
            return of_cells.ask(["sh", "-c", script], ("cases",), codes=(0, 3))
        self.assertEqual(({"cases": [1]}, ""), ask('echo \'{"cases": [1], "more": 2}\'; exit 3'))
        self.assertEqual((None, "no (exit code 4)"), ask("echo no >&2; echo so >&2; exit 4"))
        for said in ("", "[]", "1", "{", '{"case": []}', "\\377"):
            answer, why = ask("printf '%s'" % said)
            self.assertIsNone(answer)
            self.assertRegex(why, r"^it answered .*; do its version and this one differ\?$")

    def test_the_example_can_be_decided(self):
        for path in ("scripts/examples/matrix.toml", "scripts/examples/mpich/matrix.toml"):
            with open(path, encoding="utf-8") as file:
                example = of_cells.Matrix("matrix.toml", tomllib.loads(file.read()))
            self.assertEqual(4, len(example.plans))
            benches = [step for step in example.plans["gloo"].steps if step["kind"] == "bench"]
            # So many prove a difference in each of 100 cases.
            self.assertTrue(all(step["launches"] >= 9 for step in benches))
            planned = sum(launch.seconds for _, launch in example.launches())
            self.assertLess(planned, example.budget)


class CompatMatrixTest(unittest.TestCase):
    def test_transports_of_mpi_and_gloo_run_for_real(self):
        done, answer = matrix("real", content=STEP + MPI)
        found = cells(answer)
        self.assertEqual(set(found), {"shared memory", "loopback tcp", "gloo"}, done.stderr)
        # One launch a side proves nothing, and what is not proved is not ok.
        self.assertEqual(found, {"shared memory": "ok", "loopback tcp": "ambiguous",
                                 "gloo": "ambiguous"}, done.stdout)
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertGreater(answer["cells"][1]["times"]["mean"], 0)
        self.assertRegex(done.stdout, r"\nlatency +ok +ambiguous [0-9.e+]+-[0-9.e+]+x ")
        self.assertIn("Open MPI", answer["configurations"][0]["versions"]["backend_version"])
        # Nothing is run twice, and that is said.
        again, same = matrix("real", content=STEP + MPI)
        self.assertEqual((again.stderr, again.returncode), ("", 3))
        self.assertRegex(again.stdout, r"^NOT RUN: .*/real was finished on 20..-..-.. ..:..,.*ago: "
                                       r"INCONCLUSIVE: 2 of 3 cells.*Nothing was run now")
        self.assertEqual(same, answer)
        # Another plan in the same place is refused.
        other, _ = matrix("real", content=STEP.replace("\"40\"", "\"41\"") + MPI)
        self.assertEqual(other.returncode, 2, other.stdout)

    def test_planted_faults_land_in_their_cells(self):
        good = f"{FAKES}/libfake_nccl_22809.so"
        content = STEP.replace("ranks = 2", "ranks = 2\ntimeout = 3") + "".join([
            nccl("good", good),
            nccl("old", f"{FAKES}/libfake_nccl_21801.so"),
            nccl("corrupting", good, "ncclAllReduce:corrupt:rank=1:nth=20"),
            nccl("hanging", good, "ncclAllReduce:stuck:rank=1:nth=20"),
            nccl("absent", "/nowhere/libnccl.so.2"), nccl("damaged", damaged_library()),
            nccl("text", __file__)])
        done, answer = matrix("planted", content=content)
        self.assertEqual(cells(answer), {"good": "ok", "old": "ambiguous", "corrupting": "wrong",
                                         "hanging": "hang", "absent": "missing",
                                         "damaged": "missing", "text": "missing"},
                         done.stdout + done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.startswith("FAIL: 2 of 7 cells; latency with corrupting: "
                                               "wrong"), done.stdout)
        self.assertIn("/nowhere/libnccl.so.2", done.stdout)
        # Had the limit ended these: a file that proves a hang proves it, and others tell nothing.
        for name, word in (("hanging", "hang"), ("corrupting", "wrong"), ("good", "unfinished")):
            path = f"{FOLDER}/planted/runs/{name}/launches/latency.nccl.0.h5"
            end = {"exit": None, "seconds": 90.0, "said": "FAIL: so it is"}
            end.update(verdict.told_by(path, end, 2))
            self.assertEqual(word, of_cells.cell_of(end, path)[0])
        text = answer["configurations"][6]
        self.assertIn("is no ELF shared library", text["note"])
        self.assertIn("text: %s\n" % text["note"], done.stdout)
        old = os.path.join(FOLDER, "old.json")
        # Of a library that cannot be loaded the version is read, and judged.
        damaged = answer["configurations"][5]
        self.assertEqual(damaged["versions"], {"nccl": "2.18.3", "built for CUDA": "12.0"})
        self.assertIn("nccl_abort_hangs", [rule["rule"] for rule in damaged["rules"]])
        self.assertIn("ncclCommAbort can hang", done.stdout)
        for cell in answer["cells"]:
            if cell["configuration"] not in ("absent", "damaged", "text"):
                cell["cell"] = "ok"
        self.assertEqual([answer["lockstep"]], answer["measured_by"])
        answer["measured_by"] = ["1.2.3"]
        with open(old, "w", encoding="utf-8") as file:
            json.dump(answer, file)
        new = os.path.join(FOLDER, "planted", "matrix.json")
        worse = subprocess.run([MATRIX, "--diff", old, new], capture_output=True, text=True)
        self.assertEqual(worse.returncode, 5, worse.stdout)
        self.assertIn("latency, corrupting: ok -> wrong", worse.stdout)
        self.assertIn("different versions of Lockstep: 1.2.3 -> " + answer["lockstep"],
                      worse.stdout)
        # Beside the older one are no launches, so its times are not known.
        better = subprocess.run([MATRIX, "--diff", new, old], capture_output=True, text=True)
        self.assertEqual(better.returncode, 3, better.stdout)
        self.assertIn("0 for the worse, of 5 it is not known", better.stdout)
        self.assertIn("latency, good: beside its times before: unknown: no launch of it beside " +
                      old, better.stdout)

    def test_times_are_compared_with_those_before(self):
        folder = os.path.join(FOLDER, "two nights")

        def diff(before, after, case):
            for night, word in (("old", before), ("new", after)):
                os.makedirs(f"{folder}/{night}", exist_ok=True)
                with open(f"{folder}/{night}/matrix.json", "w", encoding="utf-8") as file:
                    json.dump({"min_effect": "25%", "cells": [
                        {"step": "latency", "configuration": "a", "cell": word}]}, file)
                with open(f"{folder}/{night}/state.jsonl", "w", encoding="utf-8") as file:
                    json.dump({"event": "end", "launch": "a/latency_0", "step": "latency",
                               "exit": 0, "file": "runs/a/launches/latency_0.h5"}, file)
            answer = json.dumps({"cases": [case], "not_read": []})
            with open(f"{folder}/lockstep", "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho \"$@\" > '{folder}/words'\necho '{answer}'\n")
            os.chmod(f"{folder}/lockstep", 0o755)
            done = subprocess.run([MATRIX, f"--programs={folder}", "--diff", "old/matrix.json",
                                   "new/matrix.json"], cwd=folder, capture_output=True, text=True)
            return done.returncode, done.stdout.splitlines() + done.stderr.splitlines()

        same, slower = case("same", 0.01, -0.01, 0.03), case("slower", 0.3, 0.2, 0.4)
        self.assertEqual(diff("ok", "ok", same),
                         (0, ["OK: 0 of 1 cells changed, 0 for the worse"]))
        with open(f"{folder}/words", encoding="utf-8") as file:
            self.assertRegex(file.read(), "^compare old/runs/a/launches/latency_0.h5 -- "
                                          "new/runs/a/.* --min-effect=25%\n$")
        # Every configuration became slower alike: the words are those of the night before.
        self.assertEqual(diff("ok", "ok", slower), (5, [
            "WORSE: 0 of 1 cells changed, 1 for the worse",
            "  latency, a: beside its times before: slower: 1 slower (of 1 cases); most: "
            "all_reduce/8, 1.30 times the time"]))
        self.assertEqual(diff("ok", "ok", case("ambiguous", 0.1))[0], 3)
        for word in ("ambiguous", "unknown", "missing"):
            self.assertEqual(diff(word, word, same), (3, [
                "INCONCLUSIVE: 0 of 1 cells changed, 0 for the worse, of 1 it is not known",
                f"  latency, a: {word} -> {word}"]))
        self.assertEqual(diff("hang", "hang", slower)[0], 0)

    def test_a_missing_program_is_one_line(self):
        folder = os.path.join(FOLDER, "without")
        os.makedirs(folder)
        os.symlink(os.path.join(PROGRAMS, "cli/lockstep"), f"{folder}/lockstep")
        done, answer = matrix("without_bench", f"--programs={folder}", content=STEP + MPI)
        self.assertEqual((done.returncode, done.stdout, answer), (4, "", None))
        self.assertRegex(done.stderr, r"^compat_matrix: bench_allreduce is not installed.*\n$")

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
