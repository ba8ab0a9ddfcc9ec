"""How often is the judge of lockstep-stress right? Runs, scores, prints.

Three kinds of launches, in turn:
  catalogue  all scenarios that are for a number of ranks, on gloo and in simulation by gloo's rules
  random     a rank of some program is lost (kill, stop, exit, throw, segfault) at a random moment
  healthy    nothing is wrong: one rank 2 to 100 times slower than the others, or short of processor
             time because hogs share its processor, or all that two ranks say goes through a relay;
             every finding is a false alarm

--busy-loops, --stop-agents and --stop-workers make the machine a noisy one.

Every launch is a file in --output-folder, and what is there is not run again: an interrupted or
short run is continued by the same command. Other scenarios, time-outs, noise or another build of
lockstep-stress need another folder.
Exit codes: those of `lockstep score`; 3 when launches are left.
"""
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import launches
from launches import program_beside, seconds
from qualification.journal import write_whole
from qualification.runner import FAULTS, IS_LOST
from trials.noise import BusyLoops, Mark, Stops

FACTORS = (2, 5, 10, 30, 100)
# What stress says of its cases while it runs.
PROGRESS = re.compile(r"lockstep-stress: (\d+ cases? on .*|\d+ of \d+ cases done.*)")
JOB_SECONDS = 3600  # of one launch: only bounds a hang, because stress bounds every case

PROGRAMS = {
    "training": 'kind = "ddp_training"\nmodel = "bn_4_4_2"\ninputs = 5\njoin = true',
    "unjoined": 'kind = "ddp_training"\nmodel = "two_branch"\ninputs = 6\n'
                'find_unused_parameters = true\nbranch = "b"',
    "all_reduce": 'kind = "all_reduce_loop"\nsizes = [8, "64K", "1M"]\nrounds = 10',
    "broadcast": 'kind = "broadcast_loop"\nsizes = [8, "64K", "1M"]\nrounds = 10',
}
LOST = """name = "random/{kind}_{program}_rank{rank}_of{ranks}"
description = "rank {rank} is lost at a random moment of its program: {kind}"
ranks = {ranks}
[workload]
{workload}
""" + IS_LOST
SLOW_LOOP = """name = "healthy/loop_{factor}x_rank{rank}_of{ranks}"
description = "rank {rank} computes {factor} times as long as the others"
ranks = {ranks}
[workload]
kind = "all_reduce_loop"
sizes = [8, "64K"]
rounds = {rounds}
compute_us = {times}
"""
SLOW_TRAINING = """name = "healthy/training_{factor}x_rank{rank}_of{ranks}"
description = "rank {rank} loads {factor} times as long as the others, under join()"
ranks = {ranks}
[workload]
kind = "ddp_training"
model = "bn_4_4_2"
inputs = {rounds}
join = true
load_us = {times}
"""
HOGGED = """name = "healthy/hogged_rank1_of{ranks}"
description = "rank 1 shares its processor with hogs"
ranks = {ranks}
[workload]
kind = "ddp_training"
model = "bn_4_4_2"
inputs = 5
join = true
barrier = "after_loop"
[[fault]]
kind = "cpu_hog"
rank = 1
processes = 16
at = "init"
[expect.any]
ranks = "finished"
"""
# The delay is nothing that counts; the relay that adds it is what counts.
RELAYED = """name = "healthy/relayed_of{ranks}"
description = "what ranks 0 and 1 say to each other goes through a relay"
ranks = {ranks}
[workload]
kind = "script"
rounds = 15
default = ["all_reduce world f32 1024", "barrier world", "broadcast world f32 256 root=0"]
[[fault]]
kind = "link_delay"
from = 0
to = 1
delay = "1us"
at = "iteration:2"
[expect.any]
ranks = "finished"
"""


class Job:
    """A launch: `scenarios` on `ranks` ranks, every one `repeat` times from `seed` on."""

    def __init__(self, kind, backend, ranks, seed, scenarios, repeat=1):
        self.name = f"{kind}-{backend}-{ranks}ranks-seed{seed}"
        self.kind = (kind, backend, ranks)
        self.backend, self.ranks, self.seed = backend, ranks, seed
        self.scenarios, self.repeat = scenarios, repeat

    def command(self, options, path):
        stress = [options.stress, f"--output={path}", f"-T{options.timeout:g}",
                  f"--seed={self.seed}", f"--repeat={self.repeat}"]
        stress += [f"--scenario={scenario}" for scenario in self.scenarios]
        if self.backend == "sim":
            return stress + ["--backend=sim", "--sim-rules=gloo", f"--ranks={self.ranks}"]
        return launches.ranks_of(options.stress, self.ranks) + stress


def write(folder, template, **values):
    text = template.format(**values)
    path = os.path.join(folder, text.split('"')[1].replace("/", "_") + ".toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def lost_ranks(folder, ranks):
    """Every fault in every program; the first and the last rank in turn."""
    return [write(folder, LOST, kind=kind, cause=cause, program=program, workload=workload,
                  rank=0 if (row + column) % 2 else ranks - 1, ranks=ranks)
            for row, (kind, cause) in enumerate(FAULTS.items())
            for column, (program, workload) in enumerate(PROGRAMS.items())]


def stragglers(folder, ranks):
    paths = []
    for index, factor in enumerate(FACTORS):
        rank = index % ranks
        times = [500 * factor if other == rank else 500 for other in range(ranks)]
        rounds = max(3, min(20, 200 // factor))
        for template in (SLOW_LOOP, SLOW_TRAINING):
            paths.append(write(folder, template, factor=factor, rank=rank, ranks=ranks,
                               rounds=rounds, times=times))
    return paths


def jobs_of(options):
    """In the order of running: what comes first covers everything once."""
    folder = os.path.join(options.output_folder, "scenarios")
    os.makedirs(folder, exist_ok=True)
    slow = {ranks: stragglers(folder, ranks) for ranks in options.ranks}
    lost = {ranks: lost_ranks(folder, ranks) for ranks in options.ranks}
    tens = {ranks: [(kind, write(folder, text, ranks=ranks))
                    for kind, text in (("hogged", HOGGED), ("relayed", RELAYED))]
            for ranks in options.ranks}
    # Launches of stragglers, hogged and relayed runs are 30 healthy runs.
    healthy = -(-options.healthy // (30 * len(options.ranks)))
    jobs = []
    for index in range(max(options.repeat, healthy)):
        seed = options.seed + index
        for ranks in options.ranks:
            if index < options.repeat:
                catalogue = [options.scenario]
                jobs.append(Job("catalogue", "gloo", ranks, seed, catalogue))
                jobs.append(Job("catalogue", "sim", ranks, seed, catalogue))
                jobs.append(Job("random", "gloo", ranks, seed, lost[ranks]))
            if index < healthy:
                jobs.append(Job("healthy", "gloo", ranks, seed, slow[ranks]))
                jobs += [Job(kind, "gloo", ranks, 10 * seed, [path], 10)
                         for kind, path in tens[ranks]]
    return jobs


def run_job(job, options, generator):
    """Its file or None, its exit code, and what it said."""
    path = os.path.join(options.output_folder, job.name + ".h5")
    temporary = os.path.join(options.output_folder, job.name + ".running")
    if os.path.exists(temporary):  # of a job that was interrupted
        os.remove(temporary)
    said = ""
    mark = Mark()
    with subprocess.Popen(["timeout", "-k", "10", str(JOB_SECONDS)]
                          + job.command(options, temporary),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=mark.environment) as launch, \
            Stops(mark, "agent", options.stop_agents, generator) as agents, \
            Stops(mark, "worker", options.stop_workers, generator) as workers:
        try:
            for line in launch.stdout:
                progress = PROGRESS.match(line)
                if progress:
                    print(f"         {job.name}: {progress[1]}", file=sys.stderr, flush=True)
                else:
                    said += line
        except KeyboardInterrupt:
            launch.send_signal(signal.SIGINT)  # only a terminal tells the launch, too
            raise
        except SystemExit:
            launch.send_signal(signal.SIGTERM)
            raise
    for what, stops in (("agents", agents), ("workers", workers)):
        if stops.count > 0:
            print(f"         {job.name}: {what} were stopped {stops.count} times", file=sys.stderr)
    check_program(options, options.program)
    if launch.returncode in (0, 1, 3) and os.path.exists(temporary):
        os.rename(temporary, path)
        return path, launch.returncode, said
    return None, launch.returncode, said


def verdict_in(text):
    """The line a person reads; libraries write into the output, too."""
    lines = [line for line in text.strip().splitlines()
             if not line.startswith("lockstep-stress: note: ")] or ["no output"]
    words = ("PASS: ", "FAIL: ", "INCONCLUSIVE: ", "lockstep-stress: ")
    return next((line for line in lines if line.startswith(words)), lines[0])


def none_for(text):
    """No scenario of the pattern is for this number of ranks."""
    return " is not for " in text


def check_folder(options):
    """What is there must be what is asked for now: names of files do not tell it all."""
    folder = options.output_folder
    path = os.path.join(folder, "asked.json")
    asked = {name: getattr(options, name)
             for name in ("scenario", "timeout", "busy_loops", "stop_agents", "stop_workers")}
    if not any(name.endswith((".h5", ".none")) for name in os.listdir(folder)):
        write_whole(path, json.dumps({**asked, "program": options.program}) + "\n")
        return
    if not os.path.exists(path):
        launches.fail("scoreboard", 2, f"{folder}: it holds launches, and no asked.json that tells "
                      "what they are of; give another --output-folder")
    with open(path, encoding="utf-8") as file:
        there = json.load(file)
    for name, value in asked.items():
        if there.get(name) != value:
            launches.fail("scoreboard", 2, f"{folder}: its launches are of "
                          f"--{name.replace('_', '-')}={there.get(name)}, not {value}; give that, "
                          "or another --output-folder")
    check_program(options, there.get("program"))


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def check_program(options, known):
    """Ranks of one launch, and launches of one folder, must be of one program."""
    if digest_of(options.stress) != known:
        launches.fail("scoreboard", 2, f"{options.output_folder}: its launches are of another "
                      f"build of {options.stress}; give that by --stress, or another "
                      "--output-folder")


def run_all(options, jobs):
    """The files, and how many launches are left."""
    generator = random.Random(options.seed)
    longest = {}  # kind -> seconds
    files, left, made = [], 0, 0
    begin = time.monotonic()
    for job in jobs:
        path = os.path.join(options.output_folder, job.name + ".h5")
        if os.path.exists(path):
            files.append(path)
            continue
        if os.path.exists(path + ".none"):
            continue
        if made > 0 and time.monotonic() - begin + longest.get(job.kind, 0) > options.time_budget:
            left += 1
            continue
        start = time.monotonic()
        path, code, said = run_job(job, options, generator)
        made += 1
        lasted = time.monotonic() - start
        longest[job.kind] = max(lasted, longest.get(job.kind, 0))
        first = verdict_in(said)
        print(f"{time.monotonic() - begin:5.0f} s  {job.name} ({lasted:.1f} s): {first}",
              file=sys.stderr, flush=True)
        if path:
            files.append(path)
        elif none_for(said):
            with open(os.path.join(options.output_folder, job.name + ".h5.none"), "w") as file:
                file.write(said)
        else:
            why = f"was not over after {JOB_SECONDS} s" if code in (124, 137) else first
            launches.fail("scoreboard", code if code in (2, 4, 10) else 4,
                          f"{job.name} left no whole result file: {why}; mend that, then run the "
                          "same command again")
    return files, left


def read_options(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("--ranks", default="2,3,4", metavar="COUNT",
                        help="Number of ranks (several, from 2 on; default 2,3,4)")
    parser.add_argument("--repeat", type=int, default=20, metavar="COUNT",
                        help="How often every scenario runs, with seeds one apart (default 20)")
    parser.add_argument("--seed", type=int, default=1, metavar="SEED",
                        help="Seed of all that is random (the first one)")
    parser.add_argument("--healthy", type=int, default=1000, metavar="COUNT",
                        help="Healthy runs (default 1000)")
    parser.add_argument("--scenario", default="*", metavar="NAME",
                        help="Scenarios, by name with wildcards or by file (default '*')")
    parser.add_argument("--time-budget", type=seconds, default=600, metavar="TIME",
                        help="Time for the whole run (no launch begins that would take longer; "
                        "default 600)")
    parser.add_argument("-T", "--timeout", type=seconds, default=2, metavar="TIME",
                        help="Silence of a rank that is taken for a hang (default 2)")
    parser.add_argument("--busy-loops", type=int, default=0, metavar="COUNT",
                        help="Busy loops beside the work (the launches; default 0)")
    parser.add_argument("--stop-agents", type=seconds, default=0, metavar="TIME",
                        help="Stop one agent after the other for at most this long (default 0: "
                        "none)")
    parser.add_argument("--stop-workers", type=seconds, default=0, metavar="TIME",
                        help="Stop one worker after the other for at most this long (below "
                        "--timeout; default 0: none)")
    parser.add_argument("--output-folder", default="results/scoreboard", metavar="FOLDER",
                        help="Folder to write (the launches)")
    parser.add_argument("--stress", default=program_beside("stress") or "lockstep-stress",
                        metavar="FILE", help="The lockstep-stress to judge")
    parser.add_argument("--lockstep", default=program_beside("lockstep") or "lockstep",
                        metavar="FILE", help="The lockstep in question (it scores)")
    launches.renamed(parser, seeds="--repeat", first_seed="--seed", time="--time-budget",
                     deadline="--timeout", output="--output-folder")
    options = parser.parse_args(arguments)
    words = options.ranks.split(",")
    if not all(word.isdigit() and 2 <= int(word) <= 64 for word in words):
        parser.error(f"--ranks: '{options.ranks}' is no list of numbers from 2 to 64; give 2,4")
    options.ranks = [int(word) for word in words]
    if min(options.repeat, options.healthy, options.busy_loops) < 0 or options.seed < 1:
        parser.error("--repeat, --healthy, --busy-loops, --seed: negative; give counts")
    if options.stop_workers >= options.timeout:
        parser.error(f"--stop-workers={options.stop_workers:g}: a rank that is stopped for "
                     f"--timeout={options.timeout:g} hangs; give less")
    for name in ("stress", "lockstep"):
        path = getattr(options, name)
        found = shutil.which(path)
        if found is None:
            parser.error(f"--{name}: {path} cannot be run; bazel build //stress "
                         "//cli:lockstep, or give its path")
        setattr(options, name, os.path.abspath(found))
    options.program = digest_of(options.stress)
    return options


def main(arguments):
    options = read_options(arguments)
    launches.end_in_order()
    jobs = jobs_of(options)
    check_folder(options)
    with BusyLoops(options.busy_loops):
        files, left = run_all(options, jobs)
    if not files:
        launches.fail("scoreboard", 2, "nothing was to run; give --repeat or --healthy")
    code = subprocess.run([options.lockstep, "score"] + files, check=False).returncode
    if left > 0:
        print(f"\n{left} of {len(jobs)} launches are left; the same command goes on")
    return 3 if code == 0 and left > 0 else code
