"""The same plan over several libraries or settings: which cells are ok, slower, wrong, hang, crash?

  lockstep matrix MATRIX.toml --output-folder=DIR
  lockstep matrix MATRIX.toml --output-folder=DIR --nccl-wheels=2.21.5,nvidia-nccl-cu13==2.28.9
  lockstep matrix --diff OLD/matrix.json NEW/matrix.json

MATRIX.toml is a plan of nightly (ranks, time_budget, [[step]] or profile) with [[configuration]]
tables: name, backend, launcher, environment, nccl_library. `baseline` names the one that others are
compared with (the first). --nccl-wheels adds a configuration for each version of nvidia-nccl-cu12
(or of another package: PACKAGE==VERSION) on PyPI. DIR/matrix.json holds the answer, DIR/launches
every result file. The same command goes on where it was ended; where it is finished nothing is run
(NOT RUN, and when that was). min_effect = "10%" is the least change of time that counts.

Exit codes: 0 all ok, 1 a cell is wrong, hangs, crashes or fails, 5 only slower than the baseline,
3 a cell is ambiguous, unfinished, missing or unknown, or NOT RUN, 2 usage, 4 environment,
10 a defect of Lockstep.
--diff compares the times of each cell with those before, by the launches beside both matrix.json.
Its exit codes: 0 nothing worse, 5 something worse, 3 of a cell it is not known.
"""
import functools
import glob
import json
import os
import subprocess
import sys
import zipfile

import launches
from qualification import matrix as cells
from qualification.journal import Journal, JournalError, minute, tonight, write_whole
from qualification.plan import check_installed, find_program
from qualification.plan_values import PlanError, read_file, read_toml
from qualification.runner import Runner
from qualification.verdict import told_by

WHEEL_PACKAGE = "nvidia-nccl-cu12"
VERSION_RULES = ("driver_", "nccl_", "several_nccl")
VERSION_FACTS = (("nccl", "nccl/0/version"), ("built for CUDA", "nccl/0/built_with_cuda"),
                 ("driver", "gpu/driver"))


class Sweep:
    def __init__(self, matrix, folder, programs):
        self.matrix, self.folder, self.programs = matrix, os.path.abspath(folder), programs
        self.journal = Journal(self.folder)
        self.kinds = {launch.step["name"]: launch.kind for _, launch in matrix.launches()}
        # Launches keep it open: two at once would measure nothing.
        lock = open(os.path.join(self.folder, "launch.lock"), "w", encoding="utf-8")
        self.runners = {name: Runner(plan, programs, os.path.join(self.folder, "runs", name), lock)
                        for name, plan in matrix.plans.items()}

    def run(self):
        earlier = self.journal.finished(self.matrix, "matrix.json")
        if earlier:
            return earlier
        for name, plan in self.matrix.plans.items():
            check_installed(plan, [one for other, one in self.matrix.launches() if other == name],
                            self.programs)
        launches.load_reader()  # without which no launch has an answer
        self.journal.begin(self.matrix)
        for name, launch in self.matrix.launches():
            identity = "%s/%s" % (name, launch.name)
            if identity in self.journal.ended:
                continue
            runner = self.runners[name]
            words = runner.command(launch, runner.result_of(launch))
            if isinstance(words, str):
                self.end(identity, launch, exit=4, seconds=0.0, said="", missing=words, file=None)
                continue
            limit = 3 * launch.seconds + 30
            if self.journal.spent + launch.seconds > self.matrix.budget:
                print("the budget is spent before %s" % identity, file=sys.stderr)
                break
            self.journal.start(identity, limit)
            end = runner.run(launch, words, limit)
            path = end["file"] and os.path.join(runner.folder, end["file"])
            end["file"] = path and os.path.relpath(path, self.folder)
            if path is not None:  # what the launch itself found is there
                end.update(told_by(path, end,
                                   runner.plan.ranks if launch.kind == "bench" else None))
            self.end(identity, launch, **end)
        return self.answer()

    def end(self, identity, launch, **facts):
        self.journal.end(identity, step=launch.step["name"], **facts)
        print("%6.0f s  %s: %s" % (self.journal.spent, identity,
                                   (facts.get("missing") or facts["said"])[:140]), file=sys.stderr)

    def files(self, name, step, good_only=True):
        return files_of(self.folder, self.journal.ended, name, step, good_only)

    def cell(self, name, step):
        """(word, why, times)"""
        ends = [end for identity, end in sorted(self.journal.ended.items())
                if identity.startswith(name + "/") and end["step"] == step]
        if not ends:
            return "unknown", "not run: the budget was spent", None
        found = [cells.cell_of(end, end.get("file") and os.path.join(self.folder, end["file"]))
                 for end in ends]
        word, why = max(found, key=lambda one: cells.ORDER.index(one[0]))
        base = self.files(self.matrix.baseline, step)
        if word != "ok" or name == self.matrix.baseline or self.kinds[step] == "stress":
            return word, why, None
        if not base:
            return "unknown", "no launch with %s is ok" % self.matrix.baseline, None
        return cells.compare(self.programs("lockstep"), self.matrix.min_effect, base,
                             self.files(name, step))

    def examine(self, configuration):
        """(versions, rules, note): what `lockstep doctor` knows of this configuration's libraries,
        which it reads and does not load; the note says why it knows nothing."""
        words = [self.programs("lockstep"), "doctor", "--format=json"]
        if configuration.nccl_library:
            words.append("--nccl-library=" + configuration.nccl_library)
        answer, why = cells.ask(words, ("facts", "ailments"), codes=(0, 1),
                                environment=dict(os.environ, **configuration.environment))
        if answer is None:
            return {}, [], why
        facts, versions = answer["facts"], {}
        if configuration.nccl_library:
            for name, fact in VERSION_FACTS:
                if fact in facts:
                    versions[name] = facts[fact]
        return versions, [rule for rule in answer["ailments"]
                          if rule["rule"].startswith(VERSION_RULES)], ""

    def answer(self):
        steps = list(self.kinds)
        table, configurations, measured_by = [], [], set()
        for configuration in self.matrix.configurations:
            own = []
            for step in steps:
                word, why, times = self.cell(configuration.name, step)
                own.append({"step": step, "configuration": configuration.name, "cell": word,
                            "why": why, "times": times,
                            "launches": len(self.files(configuration.name, step, False))})
            ill = any(cell["cell"] not in ("ok", "slower", "ambiguous") for cell in own)
            files = [path for step in steps for path in self.files(configuration.name, step, False)]
            versions, rules, note = self.examine(configuration)
            for path in files:
                versions.update(cells.versions_of(path))
                measured_by.add(versions.get("lockstep"))
            configurations.append({"name": configuration.name, "backend": configuration.backend,
                                   "environment": configuration.environment,
                                   "nccl_library": configuration.nccl_library,
                                   "versions": versions, "note": note,
                                   "rules": rules if ill or configuration.nccl_library else []})
            table += own
        code, headline = judge(table)
        measured_by = sorted(measured_by - {None})
        return {"schema": 1, "name": self.matrix.name, "headline": headline, "exit_code": code,
                "lockstep": launches.version_of(self.programs("lockstep")),
                "measured_by": measured_by, "other_version": launches.other_versions(measured_by),
                "begun": minute(self.journal.plan["at"]), "ended": minute(self.journal.last),
                "baseline": self.matrix.baseline, "min_effect": self.matrix.min_effect,
                "steps": steps,
                "configurations": configurations, "cells": table}


def judge(table):
    bad = [one for one in table if cells.ORDER.index(one["cell"]) >= cells.ORDER.index("fail")]
    absent = [one for one in table if one["cell"] in cells.NOT_KNOWN]
    slower = [one for one in table if one["cell"] == "slower"]
    for code, word, found in ((1, "FAIL", bad), (3, "INCONCLUSIVE", absent), (5, "SLOWER", slower)):
        if found:
            first = found[0]
            return code, "%s: %d of %d cells; %s with %s: %s%s" % (
                word, len(found), len(table), first["step"], first["configuration"], first["cell"],
                ": " + first["why"] if first["why"] else "")
    return 0, "PASS: all %d cells are ok" % len(table)


def wheels(wanted, folder):
    """A configuration for each "VERSION" or "PACKAGE==VERSION" of NCCL as PyPI has it."""
    found = []
    for one in wanted:
        package, _, version = one.rpartition("==")
        package = package or WHEEL_PACKAGE
        place = os.path.join(folder, "wheels", "%s-%s" % (package, version))
        library = os.path.join(place, "nvidia", "nccl", "lib", "libnccl.so.2")
        if not os.path.exists(library):
            os.makedirs(place, exist_ok=True)
            done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                                   "--dest", place, "%s==%s" % (package, version)],
                                  stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                said = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
                raise OSError("--nccl-wheels: %s %s: %s; see the versions on PyPI" %
                              (package, version, said))
            for path in glob.glob(os.path.join(place, "*.whl")):
                with zipfile.ZipFile(path) as wheel:
                    wheel.extractall(place)
                os.remove(path)
        name = "nccl " + version + ("" if package == WHEEL_PACKAGE else " of " + package)
        found.append({"name": name, "nccl_library": library})
    return found


def files_of(folder, ended, name, step, good_only=True):
    return [os.path.join(folder, end["file"]) for identity, end in sorted(ended.items())
            if identity.startswith(name + "/") and end["step"] == step and end.get("file")
            and (end["exit"] == 0 or not good_only)]


def ended_beside(path):
    """{launch: its end} of the state in whose folder a matrix.json lies; empty without one."""
    try:
        with open(os.path.join(os.path.dirname(path), "state.jsonl"), encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        return {one["launch"]: one for one in events if one["event"] == "end"}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def times_of(pairs, paths, min_effect, lockstep):
    """[(word, why)] of each pair: is the cell slower than it was? "ok", too, where it has no time
    to compare, which its words tell."""
    states = [(os.path.dirname(path), ended_beside(path)) for path in paths]
    found = []
    for step, name, *words in pairs:
        files = [files_of(*state, name, step) for state in states]
        without = [path for path, own in zip(paths, files) if not own]
        if not {"ok", "slower", "ambiguous"}.issuperset(words):
            found.append(("ok", ""))
        elif without or lockstep is None:
            found.append(("unknown", "no launch of it beside %s" % without[0] if without else
                          "lockstep is not installed"))
        else:
            found.append(cells.compare(lockstep, min_effect, *files)[:2])
    return found


def diff(paths, lockstep):
    tables = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                tables.append(json.load(file))
            for cell in tables[-1]["cells"]:
                hash((cell["step"], cell["configuration"], cells.ORDER.index(cell["cell"])))
            len(tables[-1]["cells"][0])
        except (OSError, ValueError, LookupError, TypeError):
            launches.fail("compat_matrix", 2, "%s: is no matrix.json; name the one of an "
                          "--output-folder" %
                          path)
    pairs = cells.pairs_of(*tables)
    times = times_of(pairs, paths, tables[1].get("min_effect", cells.MIN_EFFECT), lockstep)
    line, code = cells.verdict_of(pairs, [word for word, _ in times])
    print(line)
    old, new = (", ".join(table.get("measured_by", ["not recorded"])) for table in tables)
    if old != new:
        print("  measured by different versions of Lockstep: %s -> %s" % (old, new))
    for (step, name, before, after), (word, why) in zip(pairs, times):
        if before != after or after in cells.NOT_KNOWN:
            print("  %s, %s: %s -> %s" % (step, name, before or "not there", after or "not there"))
        if word != "ok":
            print("  %s, %s: beside its times before: %s: %s" % (step, name, word, why))
    return code


def read_options(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("matrix", nargs="?", help="MATRIX.toml")
    parser.add_argument("--output-folder", default=tonight("results/matrix"), metavar="FOLDER",
                        help="Folder to write (state and answer; default: one of tonight)")
    parser.add_argument("--programs", metavar="FOLDER",
                        help="Folder of the programs (instead of PATH)")
    parser.add_argument("--nccl-wheels", default="", metavar="VERSION",
                        help="Versions of NCCL to fetch from PyPI, comma-separated")
    parser.add_argument("--format", choices=("text", "json"), default="text",
                        help="Form of what is printed")
    parser.add_argument("--diff", nargs=2, metavar=("OLD", "NEW"),
                        help="Two matrix.json: which cells changed, or became slower")
    launches.renamed(parser, o="--output-folder", output="--output-folder")
    options = parser.parse_args(arguments)
    if bool(options.matrix) == bool(options.diff):
        parser.error("give a MATRIX.toml, or --diff OLD NEW")
    return options


def main(arguments):
    options = read_options(arguments)
    programs = functools.partial(find_program, folder=options.programs)
    if options.diff:
        return diff(options.diff, programs("lockstep"))
    try:
        content = read_toml(options.matrix, read_file(options.matrix))
        versions = [one for one in options.nccl_wheels.split(",") if one]
        more = wheels(versions, os.path.abspath(options.output_folder))
        matrix = cells.Matrix(options.matrix, content, more,
                              launches.launcher_of(programs("lockstep")))
        if programs("lockstep") is None:
            raise OSError("lockstep is not installed; see scripts/install or --programs")
        answer = Sweep(matrix, options.output_folder, programs).run()
        if "earlier" not in answer:
            write_whole(os.path.join(options.output_folder, "matrix.json"),
                        json.dumps(answer, indent=1) + "\n")
    except (PlanError, JournalError) as error:
        launches.fail("compat_matrix", 2, error)
    except (OSError, subprocess.TimeoutExpired) as error:
        launches.fail("compat_matrix", 4, error)
    if options.format == "json":
        print(json.dumps(answer, indent=1))
    else:
        print(cells.format_matrix(answer), end="")
    return answer["exit_code"]
