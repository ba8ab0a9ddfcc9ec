"""What a qualification runs: a plan in TOML, or one of the profiles, as a list of launches."""

import fnmatch
import hashlib
import json
import os
import shlex
import shutil

from launches import OPEN_MPI, TREE, installed_name, program_in
from qualification.plan_values import PlanError, check_table, read_toml, seconds_of, shown
from qualification.profiles import PROFILES, steps_of

_STEP_KEYS = {"name", "kind", "program", "arguments", "seconds", "launches", "backends",
              "scenarios", "part", "repeat", "launch_seconds", "required"}
_PLAN_KEYS = {"name", "profile", "backends", "ranks", "launcher", "time_budget", "baseline",
              "environment", "step", "timeout", "skip"}


def read_plan(path, text):
    return Plan(path, read_toml(path, text))


def launch_key(step, backend):
    return step + ("" if backend is None else "." + backend)


class Launch:
    """One program run once. Its name is its identity in the state file."""

    def __init__(self, step, backend, replicate):
        self.step, self.backend, self.replicate = step, backend, replicate
        self.kind = step["kind"]
        self.key = launch_key(step["name"], backend)
        self.name = "%s.%d" % (self.key, replicate)
        self.seconds = float(step.get("launch_seconds", step["seconds"]))


class Plan:
    """`content`: the table that the TOML of a plan holds; `launcher`: where it names none."""

    def __init__(self, path, content, launcher=tuple(OPEN_MPI)):
        check_table(path, content, _PLAN_KEYS, "the plan")
        profile = content.get("profile", "quick")
        of_steps = os.path.splitext(os.path.basename(path))[0]  # not of a profile
        self.path = path
        self.name = content.get("name", of_steps if "step" in content else profile)
        self.budget = seconds_of(content.get("time_budget", PROFILES[profile].budget))
        self.backends = content.get("backends", ["mpi", "gloo"])
        self.ranks = content.get("ranks", 2)
        self.deadline = seconds_of(content.get("timeout", 10))
        self.launcher = shlex.split(content["launcher"]) if "launcher" in content \
            else list(launcher)
        self.baseline = content.get("baseline")
        self.environment = {key: str(value)
                            for key, value in content.get("environment", {}).items()}
        steps = content.get("step") or steps_of(profile, self.budget, len(self.backends))
        if steps is None:
            raise PlanError("%s: time_budget: %.0f s are too few for profile %s on %d backends; "
                            "give more, a shorter profile, or [[step]] tables of your own" %
                            (path, self.budget, profile, len(self.backends)))
        self.steps = self._steps(path, steps, content.get("skip", []))
        self.hash = hashlib.sha256(json.dumps(
            [self.steps, self.backends, self.ranks, self.launcher, self.environment],
            sort_keys=True).encode()).hexdigest()[:16]

    def _steps(self, path, given, skip):
        steps = []
        for step in given:
            step = dict({"kind": "bench", "launches": 1, "required": True}, **step)
            where = "step " + shown(step["name"]) if "name" in step else "a step"
            check_table(path, step, _STEP_KEYS, where)
            for key in ("name", "seconds") + (("program",) if step["kind"] == "bench" else ()):
                if key not in step:
                    raise PlanError("%s: %s needs a value for %s" % (path, where, key))
            if not any(fnmatch.fnmatch(step["name"], pattern) for pattern in skip):
                steps.append(step)
        keys = [(step["name"], backend) for step in steps for backend in self._of(step)]
        names = [launch_key(*key) for key in keys]
        if not steps or len(set(names)) < len(names):
            raise PlanError("%s: steps need names of their own, and there must be one" % path)
        check_soaks(path, steps)
        return steps

    def launches(self):
        """In the order of running: replicates are interleaved, so that drift meets all alike, and
        everything ran once before anything runs twice. Those of a soak are made as it goes."""
        found = []
        for replicate in range(max(step["launches"] for step in self.steps)):
            for step in self.steps:
                if replicate < step["launches"] and step["kind"] != "soak":
                    found += [Launch(step, backend, replicate) for backend in self._of(step)]
        return found

    def _of(self, step):
        if step["kind"] in ("doctor", "simulation", "fuzz"):
            return [None]
        return step.get("backends", self.backends)

    def soak(self):
        """(step, [backends]) of the soak, or (None, [])."""
        for step in self.steps:
            if step["kind"] == "soak":
                # A program is lost on every launch, which MPI's one identity makes expensive.
                backends = [one for one in self._of(step) if one != "mpi"]
                return step, backends or ["gloo"]
        return None, []


def check_soaks(path, steps):
    """Raises PlanError for a second soak, which would never begin."""
    soaks = [shown(step["name"]) for step in steps if step["kind"] == "soak"]
    if len(soaks) > 1:
        raise PlanError("%s: steps %s are all soaks, which last until a night's end; give one, "
                        "with all its backends" % (path, " and ".join(soaks)))


def programs_of(launch):
    """Names of what it runs."""
    if launch.kind == "stress" and launch.backend == "mpi":
        return ["stress", "lockstep"]  # a launch a case
    return {"bench": [launch.step.get("program")], "stress": ["stress"], "simulation": ["stress"],
            "soak": ["stress"], "fuzz": ["fuzz"], "doctor": ["lockstep"]}[launch.kind]


def check_installed(plan, launches, programs):
    """Raises OSError for the first thing that a required launch runs and that is not here.
    `programs`: find_program with its folder."""
    if shutil.which(plan.launcher[0]) is None:
        raise OSError("%s: not found; install it, or name another launcher in the plan" %
                      plan.launcher[0])
    for launch in launches:
        for name in programs_of(launch):
            if launch.step["required"] and programs(name) is None:
                raise OSError("%s is not installed, and step '%s' runs it: see scripts/install and "
                              "--programs, or leave the step out with skip" %
                              (name, launch.step["name"]))


def find_program(name, folder=None):
    """Its path, or None: in `folder`, on PATH, or in the build tree."""
    root = folder or os.path.join(TREE, "bazel-bin")
    return (None if folder else shutil.which(installed_name(name))) or program_in([root], name)
