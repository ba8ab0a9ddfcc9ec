#!/usr/bin/python3
"""six_cases.py on gloo: it tells what ranks do apart, and what was not predicted."""

import subprocess
import sys
import unittest


def run(*arguments):
    done = subprocess.run([sys.executable, "scripts/torch_oracle/six_cases.py", *arguments],
                          capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class SixCases(unittest.TestCase):
    def test_outcomes_on_gloo(self):
        code, out, err = run("--backend=gloo", "--cases=1,2,5", "--timeout=8")
        self.assertEqual(code, 0, out + err)
        for words in ("rank 0: finished gradient 5;", "rank 1: finished gradient 3;",
                      "rank 1: failed in backward 6: ", "rank 0: hung in the last barrier;",
                      "rank 1: hung in backward 6;", "3 of 3 cases as predicted"):
            self.assertIn(words, out)

    def test_what_was_not_predicted_is_told(self):
        code, out, err = run("--backend=gloo", "--predictions=nccl", "--cases=2", "--timeout=8")
        self.assertEqual(code, 1, out + err)
        self.assertIn("DIFFERS: predicted is hung", out)
        self.assertIn("0 of 1 cases as predicted", out)

    def test_a_machine_without_a_gpu(self):
        import torch
        if torch.cuda.is_available():
            self.skipTest("there is one")
        code, out, err = run()
        self.assertEqual(code, 4, out + err)
        self.assertIn("sees no CUDA device", err)
        self.assertEqual(len(err.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
