"""A folder of dumps, and what `lockstep diagnose` finds in it."""

import json
import os
import pickle
import shutil
import subprocess
import tempfile
import unittest

from cli.diagnose.testing import flight_dumps

_LOCKSTEP = "cli/lockstep"
_REAL = "core/flight/testdata"


def run(*arguments):
    done = subprocess.run([_LOCKSTEP] + list(arguments), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


class FlightTest(unittest.TestCase):

    def setUp(self):
        self.directory = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "dumps")

    def found(self, *arguments):
        """(exit code, [(cause, culprits, certainty)], answer)"""
        code, out, err = run("diagnose", "--flight-recorder", self.directory, "--format=jsonl",
                             *arguments)
        self.assertEqual("", err)
        answer = json.loads(out)
        return code, [(finding["cause"], finding["culprits"], finding["certainty"])
                      for finding in answer["findings"]], answer

    def copy(self, name, seconds_later=60, retired=False):
        """Real dumps, written so long after the newest call; `retired`: with all calls over."""
        shutil.copytree(os.path.join(_REAL, name), self.directory)
        for file in os.listdir(self.directory):
            path = os.path.join(self.directory, file)
            with open(path, "rb") as stream:
                content = json.load(stream) if path.endswith("json") else pickle.load(stream)
            created = max(one["time_created_ns"] for one in content["entries"])
            os.chmod(path, 0o644)
            if retired:
                for one in content["entries"]:
                    one["retired"] = True
                with open(path, "wb") as stream:
                    pickle.dump(content, stream, 2)
            os.utime(path, ns=(created, created + int(seconds_later * 1e9)))

    def judge(self, dumps, **how):
        """NCCL's: the calls that did not complete are given up after 600 s."""
        flight_dumps.write(self.directory, dumps, **how)
        return self.found()
