"""The `lockstep` command of the wheel: becomes the program that lies in this package."""

import os
import sys


def main() -> None:
    # `lockstep report` is a page drawn by Python: this one, which has the packages it needs.
    os.environ["LOCKSTEP_PYTHON"] = sys.executable
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "lockstep")
    os.execv(program, ["lockstep", *sys.argv[1:]])
