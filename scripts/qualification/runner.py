"""Starts one launch, waits for it, and says what came of it."""

import glob
import math
import os
import re
import signal
import subprocess
import time

from launches import die_with_parent
from qualification.plan import programs_of

IS_LOST = """[[fault]]
kind = "{kind}"
rank = {rank}
at = "random"
[expect.any]
cause = "{cause}"
culprits = [{rank}]
"""
_LOST = """name = "soak/{kind}_rank{rank}"
description = "rank {rank} is lost at a random moment of its training: {kind}"
ranks = {ranks}
[workload]
kind = "ddp_training"
model = "bn_4_4_2"
inputs = 5
join = true
""" + IS_LOST
HEALTHY = """name = "soak/healthy"
description = "nothing is wrong"
ranks = {ranks}
[workload]
kind = "ddp_training"
model = "bn_4_4_2"
inputs = 20
join = true
[expect.any]
ranks = "finished"
"""
# Of the whole catalogue, what a backend cannot be asked: MPI has no stream of its own, shared
# memory instead of links, and one life a launch.
BEYOND = {"mpi": ("custom_kernel/", "graphs/", "links/", "nccl/", "recovery/",
                  "groups/opposite_order_", "groups/same_order_with_wait",
                  "groups/created_in_different_order_silent")}
FAULTS = {"kill": "rank_killed", "stop": "rank_stopped", "exit": "rank_exited",
          "throw": "rank_failed", "segfault": "rank_crashed"}


class Runner:
    """`programs`: find_program with its folder. `inherited`: a file that launches keep
    open while they live."""

    def __init__(self, plan, programs, folder, inherited):
        self.plan, self.programs, self.folder = plan, programs, folder
        self.inherited = inherited
        self.process = None
        self.night = 0  # a number that no other night has, as 20260131
        for name in ("launches", "logs", "scenarios"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)

    def set_aside(self, launch, attempt):
        """Moves what an attempt left to attempts/, before another one writes there. The names of
        what it moved, from the folder on. Not in launches/: who reads all files of a night would
        take it for one more launch."""
        place = os.path.join(self.folder, "attempts")
        found = []
        for path in sorted(glob.glob(glob.escape(self.result_of(launch)) + "*")) + [
                self._log_of(launch)]:
            if os.path.exists(path):
                os.makedirs(place, exist_ok=True)
                rest = os.path.basename(path).removeprefix(launch.name)
                found.append(os.path.join("attempts", "%s#%d%s" % (launch.name, attempt, rest)))
                os.rename(path, os.path.join(self.folder, found[-1]))
        return found

    def _log_of(self, launch):
        return os.path.join(self.folder, "logs", launch.name + ".log")

    def result_of(self, launch):
        return os.path.join(self.folder, "launches", launch.name + ".h5")

    def command(self, launch, output):
        """Its words, or a text that says why it cannot be run."""
        for name in programs_of(launch):
            if self.programs(name) is None:
                return "%s is not installed" % name
        return getattr(self, "_" + launch.kind)(launch, output)

    def _launcher(self):
        words = list(self.plan.launcher)
        if os.path.basename(words[0]).startswith("mpirun"):
            for key, value in sorted(self.plan.environment.items()):
                words += ["-x", "%s=%s" % (key, value)]
        return words

    def _bench(self, launch, output):
        return self._launcher() + [
            "-n", str(self.plan.ranks), self.programs(launch.step["program"]),
            *launch.step.get("arguments", []), "--backend=" + launch.backend,
            "-T", str(self.plan.deadline), "--seed=%d" % (launch.replicate + 1),
            "--output=" + output]

    def _scenarios(self, launch, backend):
        patterns = launch.step.get("scenarios", ["*"])
        words = ["--scenario=" + one for one in patterns]
        part = launch.step.get("part", 1)
        beyond = BEYOND.get(backend, ()) if patterns == ["*"] else ()
        if part == 1 and not beyond:
            return words
        listed = subprocess.run([self.programs("stress"), "--list", "--backend=" + backend] + words,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                timeout=60, check=False)
        names = [line.split()[0] for line in listed.stdout.splitlines() if "/" in line]
        names = [name for name in names if not name.startswith(beyond)]
        # Every so manieth one, so that every group has its share; another replicate has others.
        stride = round(1 / part)
        return ["--scenario=" + one for one in names[launch.replicate % stride::stride]] or words

    def _stress(self, launch, output):
        words = ["--backend=" + launch.backend, "--seed=%d" % (launch.replicate + 1),
                 "-T", str(self.plan.deadline), "--no-progress", "--output=" + output]
        words += self._scenarios(launch, launch.backend)
        if launch.backend == "mpi":
            return [self.programs("lockstep"), "stress", "--ranks=%d" % self.plan.ranks,
                    "--launcher=" + " ".join(self._launcher())] + words
        return self._launcher() + ["-n", str(self.plan.ranks), self.programs("stress")] + words

    def _simulation(self, launch, output):
        return [self.programs("stress"), "--backend=sim", "--sim-rules=gloo", "--no-progress",
                "--ranks=%d" % min(self.plan.ranks, 4),
                "--repeat=%d" % launch.step.get("repeat", 1),
                "--seed=%d" % (self.night * 10**6 + 1000 * launch.replicate + 1),
                "--output=" + output] + self._scenarios(launch, "sim")

    def _fuzz(self, launch, _output):
        # A night has no time for so many trials that two of these would meet.
        seed = self.night * 10**11 + launch.replicate * 10**10
        return [self.programs("fuzz"), "--time-budget=%d" % math.ceil(launch.step["seconds"]),
                "--seed=%d" % seed, "--trials=2000000000",
                "--jobs=%d" % min(self.plan.ranks, os.cpu_count() or 1)]

    def _soak(self, launch, output):
        paths = []
        for name, text in self._soak_scenarios(launch.replicate):
            paths.append(os.path.join(self.folder, "scenarios", name + ".toml"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(text)
        return self._launcher() + [
            "-n", str(self.plan.ranks), self.programs("stress"), "--backend=" + launch.backend,
            "--seed=%d" % (launch.replicate + 1), "-T", str(self.plan.deadline), "--no-progress",
            "--output=" + output] + ["--scenario=" + path for path in paths]

    def _soak_scenarios(self, number):
        rank = number % self.plan.ranks
        yield "healthy", HEALTHY.format(ranks=self.plan.ranks)
        for kind, cause in FAULTS.items():
            yield "%s_%d" % (kind, rank), _LOST.format(kind=kind, cause=cause, rank=rank,
                                                       ranks=self.plan.ranks)

    def _doctor(self, _launch, output):
        return [self.programs("lockstep"), "doctor", "--output=" + output]

    def run(self, launch, words, limit):
        """{exit, seconds, said, file}; `exit` None: longer than `limit` seconds."""
        final = self.result_of(launch)
        running = final + ".running"
        for path in (running, final):  # of an attempt that did not count
            if os.path.exists(path):
                os.remove(path)
        words = [running if word == final else word.replace("=" + final, "=" + running)
                 for word in words]
        environment = dict(os.environ, **self.plan.environment)
        if os.path.basename(self.plan.launcher[0]).startswith("mpirun"):
            environment = dict(os.environ)
        if os.geteuid() == 0:
            environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        log = self._log_of(launch)
        begin = time.monotonic()
        with open(log, "wb") as file:
            # A nightly that is killed takes its launch along: two at once would measure nothing.
            self.process = subprocess.Popen(
                ["timeout", "-k", "10", "%.1f" % limit] + words, env=environment,
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=die_with_parent(signal.SIGTERM),
                pass_fds=(self.inherited.fileno(),))
            code = self.process.wait()
            self.process = None
        seconds = time.monotonic() - begin
        if os.path.exists(running):
            os.rename(running, final)
        with open(log, "rb") as file:
            said = first_line(file.read(1 << 20).decode("utf-8", "replace"))
        # timeout ends its own group: with SIGKILL itself, too.
        late = code in (124, 137, -signal.SIGKILL) and seconds >= round(limit, 1)
        return {"exit": None if late else code, "seconds": round(seconds, 3), "said": said,
                "file": os.path.relpath(final, self.folder) if os.path.exists(final) else None}

    def stop(self):
        if self.process is not None:
            self.process.terminate()


def first_line(text):
    """What a person should read: the verdict, else the first line that says anything."""
    lines = [line.strip() for line in text.splitlines() if re.search(r"\w", line)]
    verdict = re.compile(r"(PASS|FAIL|INCONCLUSIVE|ERROR): ")
    # Notes of a program that go before its verdict are not it.
    error = re.compile(r"(lockstep|stress|fuzz|bench_\w+): (?!note: )")
    for pattern in (verdict, error):
        for line in lines:
            if pattern.match(line):
                return line[:500]
    return lines[0][:500] if lines else "it said nothing"
