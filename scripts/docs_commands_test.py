#!/usr/bin/python3
"""Runs the commands of the documentation, each whole, with an installed copy of the programs, in a
folder that has nothing of the source tree; only scripts/ are run in a tree. What is changed,
skipped or not expected to pass is in docs_commands.py; what was skipped is counted."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.path[:0] = [os.path.join(TREE, "scripts"), TREE]
# pylint: disable=wrong-import-position
from cli.diagnose.testing.ras_service import Service, answer
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
# On the first of two hosts of this machine, where mpirun reaches the other. A host begins in /.
ON_HOSTS = """#!/bin/sh
exec lockstep testbed 2 --shell -- sh -c 'cd "$0"
  export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$TEST_HOSTS_AGENT" OMPI_MCA_btl=self,vader,tcp
  export OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0
  exec "$@"' "$PWD" "$@"
"""
HOSTS = "10.77.0.1 slots=1\n10.77.0.2 slots=1\n"
# Pages whose whole commands within the text are run, too.
INLINE = ("README.md", "docs/troubleshooting.md")
OF_A_TREE = r"^scripts/"
# Of this test: what leads a program to its files instead of the installed ones.
OF_THE_TEST = ("RUNFILES", "JAVA_RUNFILES", "TEST_SRCDIR", "PYTHONPATH", "LOCKSTEP_")
CONFIGURATIONS = """[[configuration]]
name = "mpi"
[[configuration]]
name = "gloo"
backend = "gloo"
"""


def commands_of(page):
    """Every command of the ```sh blocks of a page; continued lines are one. Of INLINE also those in
    the text that have arguments."""
    with open(os.path.join(TREE, page), encoding="utf-8") as file:
        text = file.read()
    blocks = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    lines = "".join(code for kind, code in blocks.findall(text) if kind == "sh")
    # A comment begins after two blanks, or a line.
    found = [re.sub(r"(^|\s+)#\s.*$", "", line).strip()
             for line in lines.replace("\\\n", " ").splitlines()]
    if page in INLINE:
        found += re.findall(r"`((?:lockstep|mpirun|bazel-bin/\S+|scripts/\w+)(?:-\w+)* [^`…]+)`",
                            blocks.sub("", text))
    return [one for one in found if one]


def first(table, command):
    return next((row for row in table if re.search(row[0], command)), None)


class CommandsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A folder in which commands run, an installed copy, and a folder like the source tree."""
        base = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.folder, cls.tree = os.path.join(base, "work"), os.path.join(base, "tree")
        home = os.path.join(base, "home")
        cls.prefix = os.path.join(home, ".local")
        os.mkdir(cls.folder)
        cls.link_tree()
        ras = Service([answer([4, 4, 4])] * 20)
        # Of Open MPI: more ranks than processors.
        cls.environment = {name: value for name, value in os.environ.items()
                           if not name.startswith(OF_THE_TEST)}
        cls.environment.update(
            HOME=home, BUILT=os.getcwd(), PREFIX=cls.prefix, RAS=ras.address,
            NCCL=os.path.abspath("core/comm/nccl/testing/libfake_nccl_22809.so"),
            PATH=os.path.join(cls.prefix, "bin") + ":" + os.environ["PATH"],
            OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
            OMPI_MCA_mpi_yield_when_idle="1")
        cls.must("scripts/install --prefix=$HOME/.local --built=$BUILT")
        cls.write_inputs()

    @classmethod
    def link_tree(cls):
        """Where scripts/ are typed: the sources, and programs where Bazel has them."""
        os.makedirs(os.path.join(cls.tree, "results"))  # commands write into it
        names = [name for name in os.listdir(TREE) if name != "results"]
        names += ["results/" + name for name in os.listdir(os.path.join(TREE, "results"))]
        for name in names:
            if not name.startswith((".", "bazel-", "results/runs", "results/night", "results/mat")):
                os.symlink(os.path.join(TREE, name), os.path.join(cls.tree, name))
        os.symlink(os.getcwd(), os.path.join(cls.tree, "bazel-bin"))

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
        manifest = os.path.join(cls.prefix, "share/lockstep/datasets/manifests/resnet50.json")
        shutil.copy(manifest, os.path.join(cls.folder, "my_model.json"))
        scenario = program.replace("[5, 6]", "5").replace("ranks = 2", "ranks = 3")
        for name, text in (("my_program.toml", program),
                           ("my_scenario.toml",
                            scenario + '[expect.any]\nranks = "finished"\n'),
                           ("solver.c", SOLVER), ("on_hosts", ON_HOSTS), ("hosts", HOSTS),
                           ("small_night.toml", 'backends = ["gloo"]\n' + SMALL_STEP),
                           ("small_matrix.toml", SMALL_STEP + CONFIGURATIONS)):
            with open(os.path.join(cls.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        cls.must("chmod +x on_hosts && mpicc -g solver.c -o solver")

    @classmethod
    def run_one(cls, command):
        folder = cls.tree if re.search(OF_A_TREE, command) else cls.folder
        return subprocess.run(["timeout", "-k", "10", str(SECONDS), "bash", "-c", command],
                              cwd=folder, env=cls.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)

    @classmethod
    def must(cls, command):
        done = cls.run_one(command)
        assert done.returncode == 0, "%s\n%s" % (command, done.stdout)

    def test_every_command_runs(self):
        skipped, count, known = collections.Counter(), 0, set()
        for page in PAGES:
            for command in commands_of(page):
                if command in known:  # of two pages: once
                    continue
                known.add(command)
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
        self.assertGreater(count, 100)

    def test_programs_are_the_installed_ones(self):
        for name in ("lockstep", "lockstep-stress", "lockstep-fuzz", "bench_allreduce"):
            self.assertEqual(os.path.join(self.prefix, "bin", name),
                             self.run_one("command -v " + name).stdout.strip())
        done = self.run_one("PATH=/usr/bin:/bin $PREFIX/bin/lockstep buckets --model=resnet50")
        self.assertEqual(0, done.returncode, done.stdout)
        for path in (self.prefix, self.folder):
            for folder, _, names in os.walk(path):
                for name in names:
                    link = os.path.join(folder, name)
                    self.assertFalse(os.path.islink(link) and not
                                     os.path.realpath(link).startswith(path), link)

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
