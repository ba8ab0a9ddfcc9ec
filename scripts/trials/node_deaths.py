"""Hosts that die under a benchmark or a stress run, at random: is the right one named, and is what
the others knew kept?

  scripts/node_deaths --trials=20 --seed=1          some 15 minutes
  scripts/node_deaths --deaths=killed,cut_off --trials=4

A trial brings up hosts of its own (scripts/test_hosts), one more for mpirun, and lets one host die
at a random moment: all of its processes killed, the launcher's daemon killed, its network link
taken down for ever, all of its agents and workers stopped, or only its workers stopped. Survivors
have to name the host, to write one file that can be read, and to be gone afterwards by themselves.
Where hosts are impossible: exit code 77, with the reason.

Exit codes: 0 all trials passed, 1 one did not, 2 usage, 3 no trial was run, 77 not possible here.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import launches
import lockstep
from hosts.test_hosts import mpirun_across
from launches import SKIPPED, await_that, choices, command, needed_program
from trials.noise import Mark

KINDS = ("killed", "launcher", "cut_off", "stopped", "workers_stopped")
PROGRAMS = ("bench_allreduce", "stress")
CAUSES = {
    "killed": ("host_lost",),
    "launcher": ("launcher_lost",),
    "cut_off": ("host_cut_off",),
    "stopped": ("host_stopped",),
    "workers_stopped": ("host_stopped", "rank_stopped"),
}
LOST_SECONDS = 6
# A benchmark whose workers were stopped starts them again and measures the rest.
BUDGET_SECONDS = 40
SCENARIO = """name = "node_death/loop"
description = "sums for a minute"
source = "scripts/node_deaths"
ranks = "any"
[workload]
kind = "all_reduce_loop"
rounds = 30000
compute_us = 2000
"""


def has_finding(path):
    """Not of one that is gone: survivors move the file of the run so far aside at any moment."""
    try:
        with lockstep.open(path) as run:
            return bool(run.findings)
    except lockstep.Error:
        return False


def result_file(trial):
    """The survivors' file, or nothing yet: a file without a finding is of the run so far. Half of a
    launch whose connections were reset can't know that the other half is gone, so it writes a
    partial file."""
    names = [trial["output"]]
    if trial["hosts"] == 2 and trial["host"] == 0:
        names.append(trial["output"].replace(".h5", f"-rank{trial['ranks']}-partial.h5"))
    return next(filter(has_finding, names), None)


# ---- inside: on the first host, which has mpirun and no ranks

def processes():
    """(pid, its network, its name, whether it is a worker)"""
    for pid, variables in launches.processes():
        try:
            network = os.readlink(f"/proc/{pid}/ns/net")
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                name = file.read().strip()
        except OSError:
            continue
        # Role 1 is no worker: it exchanges addresses, so that the agents can meet.
        yield pid, network, name, variables.get(b"LOCKSTEP_WORKER", b"1")[:1] != b"1"


def is_connected(pid):
    """The process has an established TCP connection."""
    try:
        sockets = {os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
        with open(f"/proc/{pid}/net/tcp", encoding="utf-8") as file:
            rows = [line.split() for line in file.readlines()[1:]]
    except OSError:
        return False
    return any(row[3] == "01" and f"socket:[{row[9]}]" in sockets for row in rows)


class Lab:
    def __init__(self, trial):
        self.trial = trial
        addresses = [word.split(":")[0] for word in os.environ["TEST_HOSTS"].split(",")][1:]
        folder = os.path.dirname(os.environ["TEST_HOSTS_AGENT"])
        self.holders = []
        for address in addresses:
            with open(os.path.join(folder, address), encoding="utf-8") as file:
                self.holders.append(int(file.read()))
        self.networks = [os.readlink(f"/proc/{pid}/ns/net") for pid in self.holders]
        self.addresses = addresses
        self.program = os.path.basename(trial["binary"])

    def on(self, host):
        return [one for one in processes()
                if one[1] == self.networks[host] and one[0] != self.holders[host]]

    def ranks(self, host):
        return [one for one in self.on(host) if one[2] == self.program[:15]]

    def agents_met(self):
        """Every agent is connected with another one, and has a worker."""
        total = self.trial["ranks"] * len(self.networks)
        ranks = [one for host in range(len(self.networks)) for one in self.ranks(host)]
        agents = [one[0] for one in ranks if not one[3]]
        return (sum(one[3] for one in ranks) >= total and len(agents) == total
                and all(map(is_connected, agents)))

    def mpirun(self):
        return mpirun_across(self.addresses, self.trial["ranks"], os.environ["TEST_HOSTS_AGENT"],
                             *self.trial["mpirun"], "-x", "LOCKSTEP_LOST_SECONDS",
                             self.trial["binary"], *self.trial["arguments"])

    def signal(self, host, number, which=lambda one: True):
        for one in self.on(host):
            if which(one):
                try:
                    os.kill(one[0], number)
                except ProcessLookupError:
                    pass

    def die(self):
        host, kind = self.trial["host"], self.trial["kind"]
        of_ranks = lambda one: one[2] == self.program[:15]
        if kind == "killed":
            self.signal(host, signal.SIGSTOP)
            self.signal(host, signal.SIGKILL)
        elif kind == "launcher":
            self.signal(host, signal.SIGKILL, lambda one: one[2] == "orted")
        elif kind == "cut_off":
            subprocess.run(["nsenter", "--net", "--target", str(self.holders[host]), "--", "ip",
                            "link", "set", "eth0", "down"], check=True)
        elif kind == "stopped":
            self.signal(host, signal.SIGSTOP, of_ranks)
        else:
            self.signal(host, signal.SIGSTOP, lambda one: of_ranks(one) and one[3])


def inside(trial):
    """Runs one trial; what was seen, as JSON on standard output."""
    lab = Lab(trial)
    seen = {"started": False, "left": [], "file_after_s": None, "mpirun": None}
    with open(trial["log"], "w", encoding="utf-8") as log:
        job = subprocess.Popen(lab.mpirun(), stdout=log, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL)
        seen["started"] = await_that(
            lambda: lab.agents_met() or job.poll() is not None, 90) and job.poll() is None
        time.sleep(trial["moment_s"])
        began = time.monotonic()
        lab.die()
        if await_that(lambda: result_file(trial), trial["patience_s"]):
            seen["file_after_s"] = round(time.monotonic() - began, 2)
        # Whoever was stopped finds out that the others went on without it.
        time.sleep(1)
        if trial["kind"] in ("stopped", "workers_stopped"):
            lab.signal(trial["host"], signal.SIGCONT)
        here = lambda: [f"{one[2]} on host {host}" for host in range(len(lab.networks))
                        for one in lab.ranks(host)]
        # A benchmark whose workers only were stopped goes on with its other cases.
        await_that(lambda: not here(), BUDGET_SECONDS + 25)
        seen["left"] = here()
        # Open MPI's own ways to end with a lost daemon are no part of the trial.
        try:
            seen["mpirun"] = job.wait(timeout=3)
        except subprocess.TimeoutExpired:
            job.kill()
    print(json.dumps(seen))


# ---- outside

def plan(options, generator, number, folder):
    kind = generator.choice(options.deaths)
    program = generator.choice(options.suites)
    backend = generator.choice(options.backends)
    hosts, ranks = generator.choice([(2, 2), (3, 1)])
    host = generator.randrange(hosts)
    # Of two halves nobody can say which one is cut off.
    if kind == "cut_off" and host == 0:
        hosts, ranks = 3, 1
    output = os.path.join(folder, f"trial{number}.h5")
    scenario = os.path.join(folder, "loop.toml")
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(SCENARIO)
    if program == "stress":
        arguments = [f"--scenario={scenario}", f"--backend={backend}", "-T", "8", "--limit=200"]
    else:
        arguments = ["-b", "64", "-e", "64K", "-f", "32", f"--backend={backend}", "-T", "8",
                     "--precision=0.0001", f"--time-budget={BUDGET_SECONDS}"]
    return {"number": number, "kind": kind, "program": program, "backend": backend, "hosts": hosts,
            "ranks": ranks, "host": host, "moment_s": round(generator.uniform(0, 4), 2),
            "patience_s": 2 * BUDGET_SECONDS, "output": output, "log": output + ".log",
            "binary": needed_program("node_deaths", program),
            "arguments": arguments + [f"--output={output}"], "mpirun": options.mpirun}


def run_inside(trial, mark):
    words = ["timeout", "-k", "5", "240", command("test_hosts"), str(trial["hosts"] + 1),
             "--shell", "--", sys.executable, command("node_deaths"), "--inside",
             json.dumps(trial)]
    environment = dict(mark.environment, HOME=os.path.dirname(trial["output"]),
                       LOCKSTEP_LOST_SECONDS=str(LOST_SECONDS))
    return subprocess.run(words, capture_output=True, text=True, env=environment,
                          stdin=subprocess.DEVNULL)


def left_over(mark):
    return [pid for _, _, pid in mark.processes()]


def judge(trial, seen):
    """Why the trial failed, or nothing; and the first finding of the launch."""
    if not seen["started"]:
        return "the program did not start", ""
    if seen["file_after_s"] is None:
        return "no file with a finding", ""
    with lockstep.open(result_file(trial)) as run:
        # The launch's come first.
        finding = min(run.findings, key=lambda one: one.case, default=None)
    cause, message = (finding.cause, finding.message) if finding else ("", "no finding")
    said = f"{cause}: {message}"
    node = f"node{trial['host'] + 2}"
    named = re.search(rf"\bhost {node}\b", message)
    if run.verdict != "fail":
        return f"the verdict is '{run.verdict}'", said
    if cause not in CAUSES[trial["kind"]]:
        return "the cause is another one", said
    if not named:
        return f"{node} is not named", said
    if seen["left"]:
        return f"left over: {', '.join(seen['left'])}", said
    return "", said


def run_trial(trial):
    mark = Mark()
    done = run_inside(trial, mark)
    if done.returncode == SKIPPED:
        print(done.stderr.strip(), file=sys.stderr)
        sys.exit(SKIPPED)
    try:
        seen = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return f"the hosts ended with {done.returncode}: {done.stderr.strip()[-300:]}", "", {}
    why, said = judge(trial, seen)
    if not await_that(lambda: not left_over(mark), 10):
        why = why or f"processes {left_over(mark)} are left over"
    return why, said, seen


def show(trial, why, said, seen):
    words = "{number:3} {kind:15} host {host} of {hosts}x{ranks} {program:15} {backend:4}"
    print(words.format(**trial), f"after {trial['moment_s']} s:",
          f"{'FAILED: ' + why if why else 'ok'},",
          f"file after {seen.get('file_after_s')} s, mpirun {seen.get('mpirun')}", flush=True)
    print(f"      {said}", flush=True)
    if why and os.path.exists(trial["log"]):
        with open(trial["log"], encoding="utf-8", errors="replace") as file:
            print("      | " + "      | ".join(file.readlines()[-25:]), flush=True)


def main(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("--trials", type=int, default=20, metavar="COUNT",
                        help="Number of random trials (default 20)")
    parser.add_argument("--seed", type=int, default=None, metavar="SEED",
                        help="Seed of all that is random (default: a new one, printed)")
    parser.add_argument("--deaths", type=choices(KINDS), default=list(KINDS), metavar="WORD",
                        help="Kinds of death (%s)" % ", ".join(KINDS))
    parser.add_argument("--suites", type=choices(PROGRAMS), default=list(PROGRAMS), metavar="WORD",
                        help="What is launched (%s)" % ", ".join(PROGRAMS))
    parser.add_argument("--backends", type=choices(("gloo", "mpi")), default=["gloo", "mpi"],
                        metavar="WORD", help="Communication libraries")
    parser.add_argument("--mpirun", action="append", default=[], metavar="TEXT",
                        help="A further word for mpirun")
    launches.renamed(parser, programs="--suites", only="--deaths")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        return inside(json.loads(options.inside))
    generator = launches.seeded(options.seed)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="lockstep-deaths-") as folder:
        for number in range(options.trials):
            trial = plan(options, generator, number, folder)
            why, said, seen = run_trial(trial)
            show(trial, why, said, seen)
            failed += bool(why)
    print(f"{options.trials - failed} of {options.trials} deaths as they should be")
    return 1 if failed else 0 if options.trials > 0 else 3
