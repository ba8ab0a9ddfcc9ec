"""Is this machine (or hostfile) fit for training? Runs a plan, and says QUALIFIED or why not.

  lockstep nightly PLAN.toml --output-folder=DIR
  lockstep nightly --profile=quick --output-folder=DIR

A plan is TOML: profile = "quick" (5 min), "standard" (1 h) or "full" (8 h); ranks, backends,
launcher = "mpirun --hostfile hosts", time_budget, baseline = a directory of earlier launches,
environment; [[step]] tables instead of the profile's. The same command goes on where a crash, a
reboot or Ctrl-C ended the one before: every launch that is over is in DIR/state.jsonl. In a folder
that is finished nothing is run: it says NOT RUN, when that was and what was found. Without
--output-folder it runs in results/nightly/DATE, a folder of tonight; a night lasts from noon to
noon.

Exit codes: 0 QUALIFIED, 1 NOT QUALIFIED, 5 only slower than the baseline, 3 INCONCLUSIVE or NOT
RUN, 2 usage, 4 environment: a program or h5py is not installed, no space, 10 a defect of Lockstep.
With --nagios they are those of a plugin, behind one line: 0 OK, 1 WARNING (slower), 2 CRITICAL (NOT
QUALIFIED), 3 UNKNOWN (all else).
"""
import fcntl
import functools
import json
import os
import signal
import subprocess
import sys
import time

import launches
from qualification import verdict
from qualification.journal import Journal, JournalError, tonight, write_whole
from qualification.plan import Launch, Plan, check_installed, find_program
from qualification.plan_values import PROFILE_NAMES, PlanError, read_file, read_toml
from qualification.runner import Runner

BEGINNINGS = 3  # of a launch in which nightly itself was ended
MUTE = 3  # launches of a soak one after the other without an answer: the rest would have none
LEAVING_SECONDS = 60  # that a launch of an ended nightly may take to leave
# Exit codes of ours -> those of monitoring plugins (Monitoring Plugins Guidelines), their words.
NAGIOS = {0: (0, "OK"), 5: (1, "WARNING"), 1: (2, "CRITICAL")}


class Stopped(Exception):
    pass


class Nightly:
    def __init__(self, plan, folder, programs):
        self.plan, self.folder, self.programs = plan, os.path.abspath(folder), programs
        self.journal = Journal(self.folder)
        self.longest = {}  # key -> seconds
        self.begin = time.monotonic()
        # Inherited by every launch, and so held while one of an earlier nightly is still there.
        self.launch_lock = open(os.path.join(self.folder, "launch.lock"), "w", encoding="utf-8")
        self.runner = Runner(plan, programs, self.folder, self.launch_lock)

    def left(self):
        return self.plan.budget - self.journal.spent

    def soaked(self):
        """Seconds of launches that gave an answer: others soaked nothing."""
        return sum(end["seconds"] for end in self.journal.ended.values()
                   if end["kind"] == "soak" and verdict.answer_of(end) != "none")

    def wait_for_earlier(self):
        deadline = time.monotonic() + LEAVING_SECONDS
        while True:
            try:
                fcntl.flock(self.launch_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise JournalError("%s: a launch of an earlier nightly is still running; end "
                                       "its mpirun" % self.folder) from None
                time.sleep(0.2)

    def say(self, line):
        print("%6.0f s  %s" % (self.journal.spent, line), file=sys.stderr, flush=True)

    def run(self):
        self.wait_for_earlier()
        earlier = self.journal.finished(self.plan, "verdict.json")
        if earlier:
            return earlier
        self.check()
        self.journal.begin(self.plan)
        self.runner.night = int(time.strftime("%Y%m%d", time.gmtime(self.journal.plan["at"])))
        for launch in self.plan.launches():
            soak, _ = self.plan.soak()
            reserved = max(0, soak["seconds"] - self.soaked()) if soak else 0
            self.launch_once(launch, self.left() - reserved)
        self.soak()
        soak, _ = self.plan.soak()
        answer = verdict.assess(self.plan, self.journal, self.folder,
                                self.programs("lockstep"), self.soaked() if soak else None)
        write_whole(os.path.join(self.folder, "verdict.json"), json.dumps(answer, indent=1) + "\n")
        return answer

    def check(self):
        """What would spoil the night is found before it begins."""
        step, backends = self.plan.soak()
        soaks = [Launch(step, backends[0], 0)] if step else []
        check_installed(self.plan, self.plan.launches() + soaks, self.programs)
        if self.plan.baseline and not os.path.isdir(self.plan.baseline):
            raise PlanError("%s: baseline: %s is no folder; name one with launches" %
                            (self.plan.path, self.plan.baseline))
        if self.plan.baseline and not any(one["kind"] == "bench" for one in self.plan.steps):
            raise PlanError("%s: baseline: no step is a benchmark, and others are not compared; "
                            "add one, or leave the baseline out" % self.plan.path)
        launches.load_reader()  # without which no launch has an answer

    def soak(self):
        step, backends = self.plan.soak()
        number = mute = 0
        while step is not None and self.soaked() < step["seconds"] and self.left() > 0:
            launch = Launch(step, backends[number % len(backends)], number)
            if not self.launch_once(launch, self.left()):
                break
            answered = verdict.answer_of(self.journal.ended[launch.name]) != "none"
            mute = 0 if answered else mute + 1
            if mute == MUTE:
                break
            number += 1

    def launch_once(self, launch, left):
        """True when it was run now; begins nothing that would exceed the time that is left."""
        while launch.name not in self.journal.ended:
            expected = self.longest.get(launch.key, launch.seconds)
            if expected > left:
                return False
            words = self.runner.command(launch, self.runner.result_of(launch))
            attempt = self.journal.attempts.get(launch.name, 0) + 1
            if isinstance(words, str):
                self.end(launch, exit=4, seconds=0.0, said="", missing=words)
            elif attempt > BEGINNINGS:
                self.end(launch, exit=None, seconds=0.0, said="", missing="nightly ended in it %d "
                         "times: does it take the machine down?" % BEGINNINGS)
            else:
                left -= self.attempt(launch, words, attempt,
                                     min(3 * launch.seconds + 30, max(left, expected)))
        return True

    def attempt(self, launch, words, attempt, limit):
        """Its seconds. One that gave no answer may be tried again."""
        if attempt > 1:
            self.runner.set_aside(launch, attempt - 1)
        self.journal.start(launch.name, limit)
        end = dict(self.runner.run(launch, words, limit), kind=launch.kind)
        self.longest[launch.key] = max(end["seconds"], self.longest.get(launch.key, 0))
        if end["file"]:
            end.update(verdict.told_by(os.path.join(self.folder, end["file"]), end,
                                       self.plan.ranks if launch.kind == "bench" else None))
        if verdict.answer_of(end) == "none" and attempt < verdict.ATTEMPTS:
            self.say("%s: again: %s" % (launch.name, end["said"][:160]))
            end["kept"] = self.runner.set_aside(launch, attempt)
            end["file"] = end["file"] and next(
                (path for path in end["kept"] if path.endswith("#%d.h5" % attempt)), None)
            self.journal.end("%s#%d" % (launch.name, attempt), optional=True, **end)
        else:
            self.end(launch, **end)
        return end["seconds"]

    def end(self, launch, **facts):
        self.say("%s: %s" % (launch.name, (facts.get("missing") or facts["said"])[:160]))
        facts.setdefault("kind", launch.kind)
        self.journal.end(launch.name, optional=not launch.step["required"], **facts)

    def stop(self, *_):
        self.runner.stop()
        raise Stopped()


def read_options(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("plan", nargs="?", help="PLAN.toml")
    parser.add_argument("--profile", choices=PROFILE_NAMES, help="What runs without a plan")
    parser.add_argument("--time-budget", metavar="TIME", type=launches.seconds,
                        help="Time for the whole run (with a --profile, made shorter to fit)")
    parser.add_argument("--baseline", metavar="FOLDER",
                        help="Folder of earlier launches (with a --profile)")
    parser.add_argument("--output-folder", default=tonight("results/nightly"), metavar="FOLDER",
                        help="Folder to write (state, launches, verdict; default: one of tonight)")
    parser.add_argument("--programs", metavar="FOLDER",
                        help="Folder of the programs (instead of PATH)")
    parser.add_argument("--format", choices=("text", "json"), default="text",
                        help="Form of what is printed")
    parser.add_argument("--nagios", action="store_true",
                        help="One line and the exit codes of a monitoring plugin")
    launches.renamed(parser, o="--output-folder", output="--output-folder", budget="--time-budget")
    options = parser.parse_args(arguments)
    if bool(options.plan) == bool(options.profile):
        parser.error("give a PLAN.toml or a --profile")
    if options.plan and (options.time_budget is not None or options.baseline):
        parser.error("write time_budget and baseline into the plan; the options go with a "
                     "--profile")
    return options


def tell_nagios(code, sentence, figures=""):
    """A plugin's line, figures behind a bar; its exit code."""
    state, word = NAGIOS.get(code, (3, "UNKNOWN"))
    print("LOCKSTEP NIGHTLY %s - %s%s" % (word, " ".join(sentence.split()).replace("|", "/"),
                                          " | " + figures if figures else ""))
    return state


def figures_of(answer):
    """As plugins write them: label=value, of seconds with their unit, bounds none, least, most."""
    if "earlier" in answer:
        return ""
    return "launches=%d passed=%d reasons=%d quarantined=%d time=%.1fs;;;0;%.0f" % (
        answer["launches"], sum(answer["passed"].values()), len(answer["reasons"]),
        len(answer["quarantine"]), answer["seconds"], answer["budget_seconds"])


def fail(options, code, message):
    if options.nagios:
        sys.exit(tell_nagios(code, str(message)))
    launches.fail("nightly", code, message)


def main(arguments):
    options = read_options(arguments)
    try:
        content = {key: value for key, value in (
            ("profile", options.profile), ("time_budget", options.time_budget),
            ("baseline", options.baseline)) if value not in (None, "")}
        if options.plan:
            content = read_toml(options.plan, read_file(options.plan))
        programs = functools.partial(find_program, folder=options.programs)
        plan = Plan(options.plan or options.profile, content,
                    launches.launcher_of(programs("lockstep")))
        nightly = Nightly(plan, options.output_folder, programs)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, nightly.stop)
        answer = nightly.run()
    except (PlanError, JournalError) as error:
        fail(options, 2, error)
    except (OSError, subprocess.TimeoutExpired) as error:
        fail(options, 4, error)
    except Stopped:
        fail(options, 3, "stopped; the same command goes on")
    if options.nagios:
        return tell_nagios(answer["exit_code"], verdict.format_answer(answer).splitlines()[0],
                           figures_of(answer))
    print(json.dumps(answer, indent=1) if options.format == "json"
          else verdict.format_answer(answer), end="\n" if options.format == "json" else "")
    return answer["exit_code"]
