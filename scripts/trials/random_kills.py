"""Agents, workers and launchers killed at random moments: is every verdict right or honestly
unknown, and is every result file whole or honestly absent?

  scripts/random_kills --trials=100 --seed=1         some 15 minutes
  scripts/random_kills --victims=agent --suites=stress --trials=10
  scripts/random_kills --seed=1 --only=27,42         two of those trials again

A trial starts a benchmark or a stress run on this host, ends one process of it at a random moment
(every third time in the first second), and looks at what is left when all processes are gone:

  never a false proof  what a file calls proved names the process that was killed, and its end
  nobody is accused    of having been killed, crashed, stopped or left, who was not
  files are whole      each file of the trial can be read by `lockstep show`; where there is none,
                       the launch named none and did not say that it passed
  nothing is left      of its processes

Exit codes: 0 all trials passed, 1 one did not, 2 usage, 3 no process was killed: every run was over
before.
"""
import argparse
import contextlib
import glob
import os
import re
import signal
import subprocess
import tempfile
import time

import launches
import lockstep
from launches import choices, needed_program
from trials.noise import Mark

VICTIMS = ("agent", "worker", "launcher")
PROGRAMS = ("bench_allreduce", "stress")
BACKENDS = ("gloo", "mpi")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)
# What the end of a process proves, of which ranks: a worker's is seen by its agent, a launcher's by
# the agents that it started.
PROOFS = {"worker": ("rank_killed",), "agent": ("agent_lost",), "launcher": ("launcher_lost",),
          "nobody": ()}
NOBODY = {"victim": "nobody", "rank": -1}  # of a run that was over before its moment
TRIAL_SECONDS = 400  # only bounds a hang
SCENARIO = """name = "random_kills/loop"
description = "sums for some seconds"
source = "scripts/random_kills"
ranks = "any"
[workload]
kind = "all_reduce_loop"
rounds = 3000
compute_us = 2000
"""


def find(name):
    return needed_program("random_kills", name)


# ---- a trial

def pid_of(trial, mark, launcher):
    if trial["victim"] == "launcher":
        return launcher.pid
    for role, rank, pid in mark.processes():
        if (role, rank) == (trial["victim"], trial["rank"]):
            return pid
    return None


def plan(options, generator, number, folder):
    victim = generator.choice(options.victims)
    program = generator.choice(options.suites)
    backend = generator.choice(options.backends)
    ranks = generator.randint(2, 4)
    output = os.path.join(folder, f"trial{number}.h5")
    scenario = os.path.join(folder, "loop.toml")
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(SCENARIO)
    if program == "stress":
        arguments = [f"--scenario={scenario}", "-T", "3", "--limit=60"]
    else:
        arguments = ["-b", "64", "-e", "64K", "-f", "32", "-T", "3", "--precision=0.0001",
                     "--time-budget=6"]
    return {"number": number, "victim": victim, "program": program, "backend": backend,
            "ranks": ranks, "rank": generator.randrange(ranks) if victim != "launcher" else -1,
            "signal": generator.choice(SIGNALS),
            "moment_s": generator.uniform(0, 1) if number % 3 == 0 else generator.uniform(1, 5),
            "output": output, "log": output + ".log",
            "words": [find(program), *arguments, f"--backend={backend}", f"--output={output}"]}


def strike(trial, mark, launcher, began):
    """Ends the victim; when that was, or nothing if there was none."""
    time.sleep(max(0, began + trial["moment_s"] - time.monotonic()))
    while launcher.poll() is None and time.monotonic() < began + TRIAL_SECONDS:
        pid = pid_of(trial, mark, launcher)
        if pid is not None:
            try:
                os.kill(pid, trial["signal"])
                return time.monotonic() - began
            except ProcessLookupError:
                pass
        time.sleep(0.002)
    return None


def run(trial):
    """What was seen of it."""
    mark = Mark()
    words = launches.ranks_of(trial["words"][0], trial["ranks"]) + trial["words"]
    with open(trial["log"], "w", encoding="utf-8") as log:
        began = time.monotonic()
        launcher = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=subprocess.STDOUT, env=mark.environment)
        left = []
        # The launcher's own ways to end are no part of the trial.
        ours = lambda: [one for one in mark.processes() if one[2] != launcher.pid]
        try:
            struck = strike(trial, mark, launcher, began)
            left = ours()
            while left and time.monotonic() < began + TRIAL_SECONDS:
                launcher.poll()
                time.sleep(0.05)
                left = ours()
        except SystemExit:  # we were told to end
            left = list(mark.processes())
            raise
        finally:
            for _, _, pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        try:
            code = launcher.wait(timeout=10)
        except subprocess.TimeoutExpired:
            launcher.kill()
            code = launcher.wait()
    with open(trial["log"], encoding="utf-8", errors="replace") as log:
        said = log.read()
    paths = sorted(glob.glob(trial["output"][:-len(".h5")] + "*.h5"))
    return {"struck_s": struck, "code": code, "said": said, "files": [read(p) for p in paths],
            "left": [f"{role} {rank} ({pid})" for role, rank, pid in left]}


def read(path):
    """A result file, as far as it is judged; "damage": why it cannot be read."""
    shown = subprocess.run([find("lockstep"), "show", path], capture_output=True, text=True,
                           stdin=subprocess.DEVNULL)
    name = os.path.basename(path)
    if shown.returncode != 0:
        return {"name": name, "damage": f"lockstep show: {shown.stderr.strip()}"}
    with lockstep.open(path) as run:
        outcomes = {(row["rank"], row["outcome"]) for row in run.rows("verdicts/outcomes")}
        return {"name": name, "damage": "", "verdict": run.verdict, "complete": run.complete,
                "findings": run.findings, "outcomes": outcomes}


# ---- the judgement: pure

def wrong_finding(trial, finding):
    """Why a finding must not have been made, or ""."""
    said = f"{finding.cause}: {finding.message}"
    known = finding.cause in PROOFS[trial["victim"]]
    # All ranks share the launcher of one host.
    right = trial["victim"] == "launcher" or finding.culprits == [trial["rank"]]
    if finding.proved and not (known and right):
        return f"a false proof: {said}"
    if not finding.proved and finding.cause != "unknown" and not right:
        return f"a false suspicion: {said}"
    return ""


def wrong_outcome(trial, rank, outcome):
    """Only the victim was killed; nobody was stopped, or crashed, or got wrong data."""
    if outcome in ("crashed", "stopped", "corrupt"):
        return f"rank {rank} is called {outcome}"
    if outcome == "hung" and trial["victim"] == "agent" and rank == trial["rank"]:
        return f"rank {rank} is called hung, and its agent ended"
    if outcome == "killed" and (trial["victim"] == "launcher" or rank != trial["rank"]):
        return f"rank {rank} is called killed"
    return ""


def judge_file(trial, seen, file):
    if file["damage"]:
        return f"{file['name']} cannot be read: {file['damage']}"
    for why in [wrong_finding(trial, finding) for finding in file["findings"]]:
        if why:
            return why
    for why in [wrong_outcome(trial, *outcome) for outcome in sorted(file["outcomes"])]:
        if why:
            return why
    if seen["struck_s"] is not None and file["verdict"] == "pass" and not file["complete"]:
        return "an incomplete run passed"
    return ""


def judge(trial, seen):
    """Why the trial failed, or ""."""
    if seen["left"]:
        return f"left over: {', '.join(seen['left'])}"
    if seen["struck_s"] is None:
        trial = NOBODY
    for file in seen["files"]:
        why = judge_file(trial, seen, file)
        if why:
            return why
    named = re.search(r"result file: (\S+)", seen["said"])
    if named and not any(named[1].endswith(file["name"]) for file in seen["files"]):
        return f"{named[1]} is named, and is not there"
    if not seen["files"] and seen["code"] == 0:
        return "exit code 0 without a file"
    return ""


# ---- the table

def show(trial, why, seen):
    struck = "never" if seen["struck_s"] is None else f"{seen['struck_s']:.2f} s"
    verdicts = [file.get("verdict", "damaged") for file in seen["files"]]
    who = trial["victim"] + (f" {trial['rank']}" if trial["rank"] >= 0 else "")
    print(f"{trial['number']:3} {trial['signal'].name} {who:9} of {trial['ranks']} "
          f"{trial['program']:15} {trial['backend']:4} at {struck:7}: "
          f"{'FAILED: ' + why if why else 'ok'}; file {', '.join(verdicts) or 'absent'}, "
          f"exit code {seen['code']}", flush=True)
    for file in seen["files"]:
        for finding in file.get("findings", []):
            proved = "proved" if finding.proved else "suspected"
            print(f"      {finding.cause} ({proved}): {finding.message[:200]}", flush=True)
    words = [line for line in seen["said"].splitlines() if re.match(r"rank |bench|stress", line)]
    for line in words[:2] if not seen["files"] else []:
        print(f"      said: {line[:200]}", flush=True)
    if why:
        print("      | " + "\n      | ".join(seen["said"].splitlines()[-25:]), flush=True)


def conclude(whys, struck, ends, rest):
    """(last line, exit code). `whys`: of the trials; `struck`: in how many a process was ended,
    which `ends` names. 3: in none, so that nothing is known."""
    right, never = whys.count(""), len(whys) - struck
    line = f"{right} of {len(whys)} trials as they should be; {struck} {ends}; {rest}"
    if never:
        line += f"; runs over before it, which tell nothing of {ends}: {never}"
    return line, 1 if right < len(whys) else 0 if struck else 3


def check_numbers(parser, options):
    wrong = sorted(number for number in options.only or () if number >= options.trials)
    if wrong:
        parser.error(f"--only: there is no trial {wrong[0]} of {options.trials}; count from 0, or "
                     "give more --trials")


def numbers(words):
    try:
        return {int(word) for word in words.split(",")}
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{words}' are no numbers of trials") from None


def main(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("--trials", type=int, default=100, metavar="COUNT",
                        help="Number of random trials (default 100)")
    parser.add_argument("--seed", type=int, default=None, metavar="SEED",
                        help="Seed of all that is random (default: a new one, printed)")
    parser.add_argument("--first", type=int, default=0, metavar="COUNT",
                        help="Number of the first trial to run")
    parser.add_argument("--only", type=numbers, default=None, metavar="COUNT",
                        help="Numbers of the trials to run")
    parser.add_argument("--victims", type=choices(VICTIMS), default=list(VICTIMS), metavar="WORD",
                        help="What is killed (%s)" % ", ".join(VICTIMS))
    parser.add_argument("--suites", type=choices(PROGRAMS), default=list(PROGRAMS), metavar="WORD",
                        help="What is launched (%s)" % ", ".join(PROGRAMS))
    parser.add_argument("--backends", type=choices(BACKENDS), default=list(BACKENDS),
                        metavar="WORD", help="Communication libraries")
    launches.renamed(parser, programs="--suites")
    options = parser.parse_args(arguments)
    check_numbers(parser, options)
    generator = launches.seeded(options.seed)
    whys, struck, absent = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="lockstep-kills-") as folder:
        for number in range(options.trials):
            trial = plan(options, generator, number, folder)
            if number < options.first or number not in (options.only or {number}):
                continue
            seen = run(trial)
            whys.append(judge(trial, seen))
            show(trial, whys[-1], seen)
            struck += seen["struck_s"] is not None
            absent += not seen["files"]
    line, code = conclude(whys, struck, "kills", f"{absent} left no file")
    print(line)
    return code
