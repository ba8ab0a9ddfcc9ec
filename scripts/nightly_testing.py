"""What the tests of scripts/nightly share: a folder of their own, and nightly in it."""

import json
import os
import subprocess
import tempfile
import unittest

LATENCY = """[[step]]
name = "latency"
program = "bench_allreduce"
arguments = ["-b", "8", "-e", "16", "-n", "100"]
seconds = 60
launches = %d
"""


class Folder(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.output = os.path.join(self.folder, "out")

    def plan(self, text):
        path = os.path.join(self.folder, "plan.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def begin(self, path):
        return subprocess.Popen(
            ["scripts/nightly", path, "--output-folder=" + self.output, "--programs=" + os.getcwd(),
             "--format=json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        """(exit code, answer or None, what it said)"""
        out, err = process.communicate()
        return process.returncode, json.loads(out) if out else None, err

    def nightly(self, text):
        return self.finish(self.begin(self.plan(text)))

    def state(self):
        with open(os.path.join(self.output, "state.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
