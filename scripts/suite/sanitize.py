"""Runs the tests under the compiler's sanitizers, room by room, and lists what they find.

  asan  AddressSanitizer and UndefinedBehaviorSanitizer, over all rooms
  tsan  ThreadSanitizer, over the rooms that have threads
  O0    nothing is optimized, over all rooms: what only optimized code gets right
  odr   links every program with -flto -Wodr: types that one program defines twice

asan and tsan check the indices of the standard library, too (-D_GLIBCXX_ASSERTIONS). What a process
of a test finds is in FOLDER/PASS/ROOM, even where the test drops what the process says. Each pass
compiles everything anew, in a cache of its own (~/.cache): hours on two processors, so it is for
nights.
What is over is a line of FOLDER/sanitize.jsonl and is not run again, as long as the commit is the
same. Exit codes: 0 nothing was found; 1 something was; 2 usage; 3 interrupted, rooms are left;
4 bazel did not run.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zlib

import launches
from launches import TREE, JsonLines, command
from suite import test_summary
from suite.bazel import run_bazel

# gloo, compiled without ThreadSanitizer, takes locks by functions of ours and gives them back by
# its own. They look held, and the runtime's search for deadlocks ends a program that holds 64.
_CONFIGS = {"asan": ["--config=asan", "--config=ubsan"],
            "tsan": ["--config=tsan", "--test_env=TSAN_OPTIONS=halt_on_error=1:handle_segv=0:"
                     "allocator_may_return_null=1:detect_deadlocks=0:"
                     "suppressions=" + command("tsan_suppressions")],
            "O0": ["--copt=-O0", "--copt=-g0"],
            "odr": ["--config=odr"]}
_OPTIONS = re.compile(r"--test_env=[AT]SAN_OPTIONS=\S+")  # of a runtime
_THREADS = re.compile(r"std::(j?thread|async)\b|pthread_create")
_FOUND = re.compile(r"ERROR: AddressSanitizer.*|.*runtime error: .*|WARNING: ThreadSanitizer.*|"
                    r"SUMMARY: \w+Sanitizer.*|.*Assertion '.*' failed.*|.*\[-W(error=)?odr\]|"
                    r".*\[-W(error=)?lto-type-mismatch\]")
# Faults of the scenarios: a process that is to crash.
_INJECTED = re.compile(r"(Address|Thread)Sanitizer: (SEGV|ABRT)")
_ABSENT = re.compile(r"Target @?(//\S+) is incompatible and cannot be built")
_LINES = 3  # of a compiler


class SanitizeError(Exception):
    pass


def parse(arguments):
    parser = launches.parser(__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("passes", nargs="*", metavar="PASS",
                        help="of asan, tsan, O0, odr; else all")
    parser.add_argument("--rooms", metavar="FOLDER",
                        help="Folders (as in core/base,core/verdict; default: all)")
    parser.add_argument("--output-folder", default="results/sanitize", metavar="FOLDER",
                        help="Folder to write")
    parser.add_argument("--bazel", default="bazel", metavar="FILE", help="The Bazel that is used")
    launches.renamed(parser, output="--output-folder")
    options = parser.parse_intermixed_args(arguments)
    options.passes = options.passes or list(_CONFIGS)
    for name in options.passes:
        if name not in _CONFIGS:
            parser.error("%s: no such pass; give some of %s" % (name, " ".join(_CONFIGS)))
    for room in (options.rooms or "").split(","):
        if room and not any("BUILD" in names for _, _, names in os.walk(os.path.join(TREE, room))):
            parser.error("--rooms: no BUILD file in %s or below it" % room)
    return options


def rooms_of(name, options):
    """Folders with tests, the lowest first; for tsan those that start threads."""
    if options.rooms:
        return options.rooms.split(",")
    core = sorted(entry for entry in os.listdir(os.path.join(TREE, "core")))
    rooms = [os.path.join("core", room) for room in core]
    rooms += ["datasets", "results", "session", "bench", "stress", "watch", "cli", "scripts"]
    return [room for room in rooms if name != "tsan" or has_threads(room)]


def has_threads(room):
    for folder, _, names in os.walk(os.path.join(TREE, room)):
        for name in names:
            if name.endswith((".cc", ".h")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    if _THREADS.search(file.read()):
                        return True
    return False


def own_bazel(options, *words):
    """Its exit code and what it said; an own server and folder, so that the usual build stays as it
    is. What it says is in FOLDER/bazel.log at once."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    base = os.path.join(cache, "lockstep-sanitize-%x" % zlib.crc32(TREE.encode()))
    with open(os.path.join(options.output_folder, "bazel.log"), "a+", encoding="utf-8",
              errors="replace") as log:
        before = log.tell()
        code = run_bazel(["nice", "-n", "19", options.bazel, "--output_base=" + base, *words],
                         stdout=log, stderr=subprocess.STDOUT)
        log.seek(before)
        return code, log.read()


def findings_in(text):
    """What a sanitizer said, each once."""
    return list(dict.fromkeys(found.group(0).strip() for found in _FOUND.finditer(text)))


def findings_of(what, logs, said):
    """Of one test, which came to `what` while bazel said so."""
    if what == "failed: did not build":
        return [line for line in said.splitlines() if " error: " in line][:_LINES]
    found = []
    for path in logs:
        with open(path, encoding="utf-8", errors="replace") as file:
            found += findings_in(file.read())
    # A process of a test that passed may have ended by a finding, unseen.
    return [line for line in found if what != "passed" or not _INJECTED.search(line)]


def words_of(name, folder):
    """A pass, each of whose processes says into a file of `folder` what it finds. ubsan beside asan
    knows standard error only."""
    words = list(_CONFIGS[name])
    if name == "asan":  # whose options everybody uses
        with open(os.path.join(TREE, ".bazelrc"), encoding="utf-8") as file:
            words += _OPTIONS.findall(file.read())
    into = ":log_exe_name=1:log_path=" + os.path.join(folder, "said")
    return [word + into if _OPTIONS.match(word) else word for word in words]


def findings_of_processes(folder):
    """{program: what its processes said}; a test may drop what a process of its own says."""
    found = {}
    for name in sorted(os.listdir(folder)):  # said.PROGRAM.PROCESS
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            lines = [line for line in findings_in(file.read()) if not _INJECTED.search(line)]
        said = found.setdefault("a process of " + name.split(".", 1)[1].rsplit(".", 1)[0], [])
        said += [line for line in lines if line not in said]
    return {program: said for program, said in found.items() if said}


def test_room(options, name, room):
    """{label: what was found} of the tests of a room, and how many there were."""
    events_path = os.path.abspath(os.path.join(options.output_folder, "events"))
    folder = os.path.abspath(os.path.join(options.output_folder, name, room))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    code, said = own_bazel(options, "test", *words_of(name, folder), "--keep_going",
                           "--symlink_prefix=/", "--sandbox_writable_path=" + folder,
                           "--test_output=summary", "--build_event_json_file=" + events_path,
                           "//%s/..." % room)
    events = test_summary.read_events(events_path)
    results = test_summary.ran(events)
    if code == 4 and not results:  # bazel's word for a folder without tests
        return {}, 0
    if not results:
        raise SanitizeError("%s of %s: bazel ended with exit code %d: %s" % (
            name, room, code, said.strip().splitlines()[-1:]))
    logs, failed = test_summary.logs_of(events), findings_of_processes(folder)
    for label, what in results.items():
        found = findings_of(what, logs[label], said)
        if what == "passed" and not found:
            continue
        failed[label] = [what] + found
        for path in logs[label]:
            kept = os.path.join(options.output_folder, name,
                                label.strip("/").replace("/", "_") + ".log")
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            shutil.copy(path, kept)
    return failed, len(results)


def link_programs(options):
    """{"odr": types defined twice}, and how many programs were linked."""
    # //... would lead into the links to what the usual build has made.
    rooms = " + ".join("//%s/..." % room for room in rooms_of("odr", options))
    code, asked = own_bazel(options, "query", "--output=label", "kind('cc_binary', %s)" % rooms)
    programs = [line for line in asked.splitlines() if line.startswith("//")]
    if code != 0 or not programs:
        raise SanitizeError("odr: bazel query ended with exit code %d and named %d programs: %s" % (
            code, len(programs), asked.strip().splitlines()[-1:]))
    words = ["build", *_CONFIGS["odr"], "--keep_going", "--symlink_prefix=/"]
    # Bazel builds what this machine has libraries for, and calls the rest a failure.
    _, said = own_bazel(options, *words, "--nobuild", *programs)
    absent = _ABSENT.findall(said)
    programs = [program for program in programs if program not in absent]
    code, said = own_bazel(options, *words, *programs)
    found = findings_in(said)
    if code != 0 and not found:
        raise SanitizeError("odr: bazel ended with exit code %d: %s" % (
            code, said.strip().splitlines()[-1:]))
    return ({"odr": found} if found else {}), len(programs)


def tree_of():
    """The commit; none: files differ from it."""
    words = [subprocess.run(["git", *words], cwd=TREE, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL, check=False).stdout.strip()
             for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "-uno"])]
    return words[0] if words[0] and not words[1] else None


def run(options):
    """Prints as it goes; the exit code."""
    os.makedirs(options.output_folder, exist_ok=True)
    journal, tree = JsonLines(os.path.join(options.output_folder, "sanitize.jsonl")), tree_of()
    over = {(one["pass"], one["room"]): one for one in map(json.loads, journal.lines)
            if tree is not None and one["tree"] == tree}
    bad = total = 0
    for name in options.passes:
        for room in [options.rooms or "//..."] if name == "odr" else rooms_of(name, options):
            one = over.get((name, room))
            if one is None:
                began = time.monotonic()
                found, count = link_programs(options) if name == "odr" else test_room(
                    options, name, room)
                one = {"tree": tree, "pass": name, "room": room, "count": count, "found": found,
                       "seconds": round(time.monotonic() - began)}
                journal.append(one)
            total += one["count"]
            bad += len(one["found"])
            print("%s %s: %d, %d with findings, %d s" % (
                name, room, one["count"], len(one["found"]), one["seconds"]), flush=True)
            for label, lines in sorted(one["found"].items()):
                print("\n    ".join(["  " + label] + lines))
    print("%s: %d of %d tests and links with findings" % ("FAIL" if bad else "PASS", bad, total))
    return 1 if bad else 0


def main(arguments):
    options = parse(arguments)
    try:
        return run(options)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on", file=sys.stderr)
        return launches.INTERRUPTED
    except (SanitizeError, OSError, ValueError) as error:
        print("sanitize: %s" % error, file=sys.stderr)
        return 4
    finally:
        own_bazel(options, "shutdown")
