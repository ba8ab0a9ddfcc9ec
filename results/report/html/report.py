#!/usr/bin/python3
"""Writes runs as one HTML page that needs nothing else: `lockstep report` checks them and calls it.

Exit codes: 0 written, 2 a file that is not understood, 3 interrupted, 4 the machine lacks
something, 10 a defect.
"""

import argparse
import os
import signal
import sys
import tempfile
import traceback


def fail(message, code):
    sys.stderr.write("lockstep: report: %s\n" % message)
    return code


def interrupted(*_):
    """Ctrl-C, also while modules are loaded: one line. A second one does not disturb the first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(fail("interrupted", 3))


# Of a command behind & a shell ignores it.
if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, interrupted)

try:
    import h5py  # pylint: disable=unused-import
    import jinja2
except ImportError as missing:
    sys.exit(fail("%s; apt-get install python3-h5py python3-jinja2" % missing, 4))

# The reader of run files: of an installed copy, and of the source tree.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(_HERE, *place) for place in (("..", "python"),
                                                           ("..", "..", "python"))]
# pylint: disable=wrong-import-position
import lockstep
import page
import static_figures
from comparison import CompareFailed
from run_file import RunFile


class WriteFailed(Exception):
    """One line: the path, why, what to do."""


class NoFile(Exception):
    """One line: the path, what it is, what to do."""


def write_atomically(path, text):
    # What a link leads to is written, and the link stays.
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise NoFile("%s: is a directory, device, pipe or socket; name a file" % path)
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix="." + os.path.basename(path))
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise WriteFailed("%s: cannot be written (%s); name another --output" % (
            path, error.strerror)) from error


def parse(arguments):
    parser = argparse.ArgumentParser(prog="report.py", description=__doc__)
    parser.add_argument("--lockstep", required=True, help="the lockstep tool, which compares runs")
    parser.add_argument("--output", required=True)
    parser.add_argument("--figures")
    parser.add_argument("--title", default="")
    parser.add_argument("--candidates", type=int, default=1,
                        help="how many of the last runs are compared with those before them")
    parser.add_argument("runs", nargs="+")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    try:
        runs = [RunFile(path) for path in options.runs]
        document = page.Document(runs, options.lockstep, options.title, options.candidates)
        write_atomically(options.output, document.html())
        if options.figures:
            static_figures.write(document.figures(), options.figures)
    except (lockstep.Error, NoFile) as error:
        return fail(error, 2)
    except CompareFailed as error:
        return fail("compare: %s" % error, 2)
    except (WriteFailed, static_figures.NotDrawn) as error:
        return fail(error, 4)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Exception as defect:  # pylint: disable=broad-except; ours, in one line as any other
        place = traceback.extract_tb(defect.__traceback__)[-1]
        sys.exit(fail("internal error: %r at %s:%d" % (
            defect, os.path.basename(place.filename), place.lineno), 10))
