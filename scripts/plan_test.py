#!/usr/bin/python3
"""Plans of nightly and matrices that are wrong: they are refused in one line, or every launch of
theirs has a command. Mutations are drawn from a seed that is printed."""

import copy
import datetime
import json
import os
import random
import subprocess
import tempfile
import tomllib
import unittest
import unittest.mock

from qualification import matrix, plan, runner
from qualification.plan_values import PlanError, read_toml

SEED = int(os.environ.get("PLAN_TEST_SEED", "20261122"))
MUTATIONS = 1500  # of each plan
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
EVERYTHING = """name = "all"
backends = ["mpi", "gloo"]
ranks = 2
launcher = "mpirun -x 'A=b c'"
time_budget = "5min"
timeout = 10
baseline = "somewhere"
skip = ["nothing*"]
[environment]
A = "b"
N = 3
[[step]]
name = "latency"
program = "bench_allreduce"
arguments = ["-b", "8"]
seconds = 3
launches = 2
backends = ["gloo"]
[[step]]
name = "catalogue"
kind = "stress"
scenarios = ["uneven_inputs/case2"]
seconds = 5.5
required = false
[[step]]
name = "simulation"
kind = "simulation"
scenarios = ["uneven_inputs/*"]
repeat = 3
seconds = 5
[[step]]
name = "fuzz"
kind = "fuzz"
seconds = 0.5
[[step]]
name = "soak"
kind = "soak"
seconds = 40
launch_seconds = 30
"""
VALUES = [None, True, False, 0, 1, -1, 3, 10**30, 2.5, -0.0, 1e308, float("nan"), float("inf"), "",
          "x", "a/b", "a\0b", "a\nb", "\u0000", "²", "1\u0661s", "'", "\\", "5min", "0s",
          "9" * 400,
          "9" * 400 + "s", "mpi", "*", "[", "x" * 300, "\U0001f600", [], [[]], [1], ["mpi", "mpi"],
          ["a", 1], [None], [True], [{}], ["-b", "8"], ["*"], {}, {"a": {}}, {"a=b": "c"},
          {"": "x"}, {"a": [1]}, {"name": "x"}, [{"name": "x", "seconds": 1}],
          datetime.date(2026, 1, 31), datetime.time(1, 2)]


def places(table, found=None):
    """(container, key) of every value below `table`."""
    found = [] if found is None else found
    for key in list(table) if isinstance(table, dict) else range(len(table)):
        found.append((table, key))
        if isinstance(table[key], (dict, list)):
            places(table[key], found)
    return found


def mutate(content, draw):
    """One to three changes: another value, one from elsewhere in the plan, none, or a new key."""
    content = copy.deepcopy(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        found = places(content)
        if not found:
            break
        where, key = draw.choice(found)
        how = draw.random()
        if how < 0.1:
            del where[key]
            continue
        other, name = draw.choice(found)
        value = draw.choice(VALUES) if how < 0.8 else other[name]
        if how > 0.9 and isinstance(where, dict):
            key = draw.choice(("seconds", "part", "repeat", "kind", "nccl_library", "min_effect",
                               "x"))
        where[key] = copy.deepcopy(value)
    return content


class Mutations(unittest.TestCase):
    def check(self, content, read):
        """`read` either refuses it in one line, or gives plans whose launches have commands."""
        try:
            plans = read(content)
        except PlanError as error:
            self.assertNotIn("\n", str(error))
            self.assertTrue(str(error).startswith("p.toml: "), error)
            return True
        for one in plans:
            run = runner.Runner(one, "/bin/{}".format, FOLDER, None)
            run.night = 20261122
            launches = one.launches()
            soak, backends = one.soak()
            launches += [plan.Launch(soak, backends[0], 0)] if soak else []
            self.assertTrue(launches)
            for launch in launches[:20]:
                with unittest.mock.patch("qualification.runner.subprocess.run") as listed:
                    listed.return_value.stdout = "uneven_inputs/case1  finished\n"
                    words = run.command(launch, run.result_of(launch))
                self.assertIsInstance(words, list, launch.step)
                for word in words + list(one.environment.values()):
                    self.assertIsInstance(word, str)
                    self.assertNotIn("\0", word)
                self.assertEqual(FOLDER + "/launches", os.path.dirname(run.result_of(launch)))
        return False

    def run_all(self, text, read):
        print("seed %d" % SEED)
        draw = random.Random(SEED)
        content = tomllib.loads(text)
        self.assertFalse(self.check(content, read))
        refused = 0
        for number in range(MUTATIONS):
            mutant = mutate(content, draw)
            with self.subTest(number=number, mutant=mutant):
                refused += self.check(mutant, read)
        self.assertGreater(refused, MUTATIONS // 4)
        self.assertLess(refused, MUTATIONS)

    def test_nightly(self):
        self.run_all(EVERYTHING, lambda content: [plan.Plan("p.toml", content)])

    def test_profile(self):
        self.run_all('profile = "quick"\nranks = 2\nbackends = ["gloo"]\ntime_budget = "5min"\n'
                     'skip = ["doctor"]\n', lambda content: [plan.Plan("p.toml", content)])

    def test_matrix(self):
        with open("scripts/examples/matrix.toml", encoding="utf-8") as file:
            text = file.read()
        self.run_all(text, lambda content: matrix.Matrix("p.toml", content).plans.values())

    def test_damaged_text(self):
        draw = random.Random(SEED)
        for number in range(MUTATIONS):
            text = list(EVERYTHING)
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(len(text))
                text[at:at + draw.choice((0, 1, 8))] = draw.choice('"[]={}\'\\\n\0 9.xé')
            with self.subTest(number=number):
                self.check("".join(text), lambda text: [plan.Plan("p.toml",
                                                                 read_toml("p.toml", text))])


class FromOutside(unittest.TestCase):
    """What the programs themselves say: one line, and exit code 2."""

    WRONG = [b"x = " + b"[" * 5000, b"x = " + b"1" * 5000, b"name = \"\xff\"", b"ranks = true",
             b"backends = \"mpi\"", b"launcher = \"mpirun 'x\"", b"launcher = 3",
             b"skip = \"doctor\"",
             b"environment = 3", b"[environment]\na = []", b"timeout = nan", b"step = 3",
             b"step = [1]", b"step = []", b"[[step]]", b"[[step]]\nname = [1]\nseconds = 1",
             b"[[step]]\nname = \"a/b\"\nkind = \"fuzz\"\nseconds = 1",
             b"[[step]]\nname = \"a\"\nkind = \"fuzz\"\nseconds = 1\nlaunches = 0",
             b"[[step]]\nname = \"a\"\nkind = \"fuzz\"\nseconds = 1\nrequired = \"no\"",
             b"[[step]]\nname = \"a\"\nseconds = 1\nprogram = \"bench_barrier\"\narguments = \"\"",
             b"[[step]]\nname = \"a\"\nseconds = 1\nprogram = \"none\""]

    def said(self, program, content):
        path = os.path.join(FOLDER, "wrong.toml")
        with open(path, "wb") as file:
            file.write(content)
        done = subprocess.run(["scripts/" + program, path, "--output-folder=" + FOLDER + "/out",
                               "--programs=" + os.getcwd()], capture_output=True, text=True,
                               check=False)
        self.assertEqual((2, "", 1), (done.returncode, done.stdout, done.stderr.count("\n")),
                         (content[:80], done.stderr[-2000:]))
        self.assertTrue(done.stderr.startswith(program + ": " + path + ": "), done.stderr)

    def test_plans(self):
        for content in self.WRONG:
            self.said("nightly", content)

    def test_matrices(self):
        names = b"[[configuration]]\nname = \"a\"\n[[configuration]]\nname = \"b\"\n"
        step = b"[[step]]\nname = \"s\"\nprogram = \"bench_barrier\"\nseconds = 1\n"
        for content in (b"configuration = 3\n" + step, b"configuration = [1]\n" + step,
                        step + names + b"[[configuration]]\nname = [1]\n",
                        step + names + b"environment = 3\n", step + names + b"launcher = \"'\"\n",
                        b"min_effect = 5\n" + step + names, b"baseline = [1]\n" + step + names,
                        step + b"backends = [\"gloo\"]\n" + names,
                        b"[[step]]\nname = \"s\"\nkind = \"fuzz\"\nseconds = 1\n" + names):
            self.said("compat_matrix", content)

    def test_answers_that_are_none(self):
        path = os.path.join(FOLDER, "matrix.json")
        for answer in (3, [], {}, {"cells": 3}, {"cells": [3]},
                       {"cells": [{"step": [], "cell": 1}]},
                       {"cells": [{"step": "a", "configuration": "b", "cell": "new"}]}):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(answer, file)
            done = subprocess.run(["scripts/compat_matrix", "--diff", path, path], text=True,
                                  capture_output=True, check=False)
            self.assertEqual((2, 1), (done.returncode, done.stderr.count("\n")), done.stderr)


if __name__ == "__main__":
    unittest.main()
