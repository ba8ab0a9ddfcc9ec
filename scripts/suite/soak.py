"""Runs the whole suite N times beside 0, 2 and 4 busy loops, and lists every test that failed once.

A test that fails on a busy machine is a defect, of the test or of what it tests. The loops belong
to this program and end with it. Every pass is a line of FOLDER/soak.jsonl, and logs of tests that
failed are kept beside it: an interrupted soak is continued by the same command, of the same commit.

Exit codes: 0 every test passed in every pass; 1 a test failed; 2 usage, or a checkout with changes;
3 interrupted, passes are left; 4 bazel did not run the tests.
"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys

import launches
from suite import test_summary
from suite.bazel import run_bazel
from trials.noise import BusyLoops

_TESTS_FAILED = 3  # exit code of bazel; 0: all passed


class SoakError(Exception):
    """One line for stderr, and the exit code."""

    def __init__(self, line, code):
        super().__init__(line)
        self.code = code


def parse(arguments):
    parser = launches.parser(__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("passes", type=int, metavar="N", help="passes at each load")
    parser.add_argument("targets", nargs="*", default=["//..."], help="instead of the whole suite")
    parser.add_argument("--busy-loops", default="0,2,4", metavar="COUNT",
                        help="Busy loops beside the work (the tests; default 0,2,4)")
    parser.add_argument("--output-folder", default="results/soak", metavar="FOLDER",
                        help="Folder to write")
    parser.add_argument("--bazel", default="bazel", metavar="FILE", help="The Bazel that is used")
    launches.renamed(parser, output="--output-folder", loads="--busy-loops")
    options = parser.parse_intermixed_args(arguments)
    try:
        options.busy_loops = [int(load) for load in options.busy_loops.split(",")]
    except ValueError:
        parser.error("--busy-loops %s: give numbers, as in 0,2,4" % options.busy_loops)
    if options.passes < 1 or min(options.busy_loops) < 0:
        parser.error("N and --busy-loops: give 1 or more passes, and loads of 0 or more")
    return options


class Journal:
    """What is over: the first line tells of what, each further one is a pass."""

    def __init__(self, folder, what):
        self.folder, self.what = folder, what
        os.makedirs(folder, exist_ok=True)
        self._file = launches.JsonLines(os.path.join(folder, "soak.jsonl"))
        lines = [json.loads(line) for line in self._file.lines]
        if not lines:
            self._file.append(what)
        elif lines[0] != what:
            raise SoakError("%s is of other targets or another commit (%s); give another "
                            "--output-folder" % (self._file.path, json.dumps(lines[0])), 2)
        self.path, self.passes = self._file.path, lines[1:]

    def holds(self, number, load):
        return any((one["pass"], one["load"]) == (number, load) for one in self.passes)

    def add(self, **one):
        self.passes.append(one)
        self._file.append(one)


def commit():
    """Of the tree that is tested; empty where unknown. Two trees with changes may differ, and both
    would be of one commit."""
    told = subprocess.run(["scripts/workspace_status"], stdout=subprocess.PIPE, text=True,
                          cwd=launches.TREE, check=True).stdout
    what = dict(line.split() for line in told.splitlines())
    if what.pop("STABLE_LOCKSTEP_MODIFIED", None):
        raise SoakError("files of this checkout differ from its commit, so that passes would be of "
                        "no known tree; commit them first", 2)
    return what


def check_commit(journal):
    """Bazel builds what is there when it comes to it, so a tree that changed meanwhile is none."""
    if commit() != {name: what for name, what in journal.what.items() if name != "targets"}:
        raise SoakError("the checkout is of another commit than %s, so this pass does not count; "
                        "go back to that commit, or give another --output-folder" %
                        journal.path, 2)


def run_pass(options, journal, number, load):
    """All tests once; its outcome is in the journal afterwards."""
    events_path = os.path.join(journal.folder, "events")
    if os.path.exists(events_path):
        os.remove(events_path)
    with BusyLoops(load):
        code = run_bazel(
            [options.bazel, "test", "--nocache_test_results", "--keep_going",
             "--test_output=summary", "--build_event_json_file=" + os.path.abspath(events_path),
             *options.targets], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    events = test_summary.read_events(events_path)
    found = test_summary.ran(events)
    failed = {label: what for label, what in found.items() if what != "passed"}
    if code not in (0, _TESTS_FAILED) or not found:
        raise SoakError("%s test ended with exit code %d and %d results; run `bazel test %s` to "
                        "see why" % (options.bazel, code, len(found),
                                     " ".join(options.targets)), 4)
    check_commit(journal)
    logs = test_summary.logs_of(events)
    for label in failed:
        for path in logs[label]:
            kept = os.path.join(journal.folder, "load%d-pass%d" % (load, number),
                                label.strip("/").replace("/", "_").replace(":", "_") + ".log")
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            shutil.copy(path, kept)
    journal.add(**{"pass": number, "load": load, "tests": len(found), "failed": failed})
    print("load %d, pass %d: %d tests, %d failed%s" % (
        load, number, len(found), len(failed), "".join("\n  " + label for label in sorted(failed))),
          flush=True)


def summarize(options, journal):
    """(lines, exit code)."""
    wanted = [(number, load) for number in range(1, options.passes + 1)
              for load in options.busy_loops]
    passes = [one for one in journal.passes if (one["pass"], one["load"]) in wanted]
    failures = collections.defaultdict(list)
    for one in passes:
        for label, what in one["failed"].items():
            failures[label].append("load %d pass %d (%s)" % (one["load"], one["pass"], what))
    lines = ["%s: %s" % (label, "; ".join(where)) for label, where in sorted(failures.items())]
    clean = ", ".join("%d of %d beside %d" % (
        sum(one["load"] == load and not one["failed"] for one in passes), options.passes, load)
                      for load in options.busy_loops)
    tests = max((one["tests"] for one in passes), default=0)
    if failures:
        return lines + ["FAIL: %d of %d tests failed at least once; clean passes: %s busy loops" % (
            len(failures), tests, clean)], 1
    if len(passes) < len(wanted):
        return ["INCONCLUSIVE: %d of %d passes are over, none with a failure" % (
            len(passes), len(wanted))], launches.INTERRUPTED
    return ["PASS: %d tests; clean passes: %s busy loops" % (tests, clean)], 0


def interrupt(*_):
    raise KeyboardInterrupt


def main(arguments):
    options = parse(arguments)
    signal.signal(signal.SIGTERM, interrupt)
    journal = None
    try:
        journal = Journal(options.output_folder, {"targets": options.targets, **commit()})
        for number in range(1, options.passes + 1):
            for load in options.busy_loops:
                if not journal.holds(number, load):
                    run_pass(options, journal, number, load)
    except KeyboardInterrupt:
        if journal is None:
            return launches.INTERRUPTED
        lines, code = summarize(options, journal)
        print("\n".join(lines))
        print("interrupted; the same command goes on", file=sys.stderr)
        return code or launches.INTERRUPTED
    except SoakError as error:
        print("soak: %s" % error, file=sys.stderr)
        return error.code
    except (OSError, ValueError) as error:
        print("soak: %s: %s; give a folder of a soak, or an empty one, with --output-folder" % (
            options.output_folder, error), file=sys.stderr)
        return 4
    lines, code = summarize(options, journal)
    print("\n".join(lines))
    return code
