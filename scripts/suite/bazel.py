"""Bazel, as those start it that run the suite again and again."""
import subprocess

import launches

_INTERRUPTED = 8  # https://bazel.build/reference/exit-code


def run_bazel(words, **how):
    """Its exit code. A signal that we get reaches it, since its server goes on with the tests of a
    client that was killed. KeyboardInterrupt once it was interrupted: it did not run everything."""
    code = launches.run_as(words, cwd=launches.TREE, stdin=subprocess.DEVNULL, **how)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code
