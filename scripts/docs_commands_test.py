#!/usr/bin/python3
"""Runs the commands of the documentation, each whole, with an installed copy of the programs. What
is changed, skipped or not expected to pass is in docs_commands.py; what was skipped is counted."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.path.insert(0, os.path.join(TREE, "scripts"))
# pylint: disable=wrong-import-position
from docs_commands import CODES, SKIPPED, SUBSTITUTIONS
from docs_figures import PAGES

SECONDS = 240  # of one command: bounds a hang
SMALL_STEP = """[[step]]
name = "latency"
program = "bench_allreduce"
arguments = ["-b", "8", "-e", "8", "-n", "40", "-w", "2"]
seconds = 10
"""
SOLVER = """#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""
CONFIGURATIONS = """[[configuration]]
name = "mpi"
[[configuration]]
name = "gloo"
backend = "gloo"
"""


def commands_of(page):
    """Every command of the ```sh blocks of a page; continued lines are one."""
    with open(os.path.join(TREE, page), encoding="utf-8") as file:
        blocks = re.findall(r"^```sh\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    # A comment begins after two blanks, or a line.
    return [found for found in (re.sub(r"(^|\s+)#\s.*$", "", line).strip() for line in lines)
            if found]


def first(table, command):
    return next((row for row in table if re.search(row[0], command)), None)


class CommandsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A folder like the source tree, in which commands may write, and an installed copy."""
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.prefix = os.path.join(cls.folder, "home/.local")
        os.mkdir(os.path.join(cls.folder, "results"))  # commands write into it
        names = [name for name in os.listdir(TREE) if name != "results"]
        names += ["results/" + name for name in os.listdir(os.path.join(TREE, "results"))]
        for name in names:
            if not name.startswith((".", "bazel-", "results/runs", "results/night", "results/mat")):
                os.symlink(os.path.join(TREE, name), os.path.join(cls.folder, name))
        os.symlink(os.getcwd(), os.path.join(cls.folder, "bazel-bin"))
        # Of Open MPI: more ranks than processors.
        cls.environment = dict(
            os.environ, HOME=os.path.join(cls.folder, "home"), BUILT=os.getcwd(),
            PATH=os.path.join(cls.prefix, "bin") + ":" + os.environ["PATH"],
            OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
            OMPI_MCA_mpi_yield_when_idle="1")
        cls.must("scripts/install --prefix=$HOME/.local --built=$BUILT")
        cls.write_inputs()

    @classmethod
    def write_inputs(cls):
        run = "mpirun -np 2 bench_allreduce -b 8 -e 64 -n 20 --output="
        for name in ("run.h5", "gloo.h5", "mpi.h5", "old/a.h5", "new/a.h5"):
            os.makedirs(os.path.dirname(os.path.join(cls.folder, name)), exist_ok=True)
            cls.must(run + name)
        cls.must("mpirun -np 2 lockstep-stress --backend=gloo --scenario=uneven_inputs/case1 "
                 "--output=stress.h5")
        cls.must("lockstep export run.h5 --format=flight-recorder --output-folder=dumps")
        cls.must("mkdir -p results/runs results/nightly/1/launches && cp run.h5 results/runs && "
                 "cp run.h5 results/nightly/1/launches")
        with open(os.path.join(TREE, "docs/ddp_step.md"), encoding="utf-8") as page:
            program = re.search(r"```toml\n(.*?)```", page.read(), re.DOTALL).group(1)
        manifest = os.path.join(TREE, "datasets/manifests/resnet50.json")
        shutil.copy(manifest, os.path.join(cls.folder, "my_model.json"))
        scenario = program.replace("[5, 6]", "5").replace("ranks = 2", "ranks = 3")
        for name, text in (("my_program.toml", program),
                           ("my_scenario.toml",
                            scenario + '[expect.any]\nranks = "finished"\n'),
                           ("solver.c", SOLVER),
                           ("small_night.toml", 'backends = ["gloo"]\n' + SMALL_STEP),
                           ("small_matrix.toml", SMALL_STEP + CONFIGURATIONS)):
            with open(os.path.join(cls.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        cls.must("mpicc -g solver.c -o solver")

    @classmethod
    def run_one(cls, command):
        return subprocess.run(["timeout", "-k", "10", str(SECONDS), "bash", "-c", command],
                              cwd=cls.folder, env=cls.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)

    @classmethod
    def must(cls, command):
        done = cls.run_one(command)
        assert done.returncode == 0, "%s\n%s" % (command, done.stdout)

    def test_every_command_runs(self):
        skipped, count = collections.Counter(), 0
        for page in PAGES:
            for command in commands_of(page):
                row = first(SKIPPED, command)
                if row:
                    skipped[row[1]] += 1
                    continue
                count += 1
                changed = command
                for pattern, replacement, _ in SUBSTITUTIONS:
                    changed = re.sub(pattern, replacement, changed)
                with self.subTest(page=page, command=command, run=changed):
                    codes = first(CODES, command)
                    done = self.run_one(changed)
                    print("%3d  %s: %s" % (done.returncode, page, changed), flush=True)
                    self.assertIn(done.returncode, codes[1] if codes else (0,), done.stdout[-1500:])
                    self.assertNotIn("Traceback", done.stdout)
        for why, number in skipped.items():
            print("skipped: %d that need or do: %s" % (number, why))
        print("%d commands were run, %d skipped" % (count, sum(skipped.values())))
        self.assertGreater(count, 60)

    def test_every_rule_is_needed(self):
        commands = [command for page in PAGES for command in commands_of(page)]
        for pattern, *_ in SKIPPED + CODES:
            self.assertTrue(any(re.search(pattern, one) for one in commands), pattern)
        for at, (pattern, *_) in enumerate(SUBSTITUTIONS):
            changed = commands
            for earlier, replacement, _ in SUBSTITUTIONS[:at]:
                changed = [re.sub(earlier, replacement, one) for one in changed]
            self.assertTrue(any(re.search(pattern, one) for one in changed), pattern)


if __name__ == "__main__":
    unittest.main()
