"""What a qualification runs: a plan in TOML, or one of the profiles, as a list of launches."""

import fnmatch
import hashlib
import json
import os
import shlex
import shutil
import tomllib

from profiles import PROFILES, steps_of

_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PLACES = ("bench", "stress", "scripts/lockstep")  # of the programs, below bazel-bin


_KINDS = ("bench", "stress", "simulation", "fuzz", "soak", "doctor")
_STEP_KEYS = {"name", "kind", "program", "arguments", "seconds", "launches", "backends",
              "scenarios", "part", "seeds", "launch_seconds", "required"}
_PLAN_KEYS = {"name", "profile", "backends", "ranks", "launcher", "budget", "baseline",
              "environment", "step", "deadline", "skip"}


class PlanError(ValueError):
    """One line: the input, the reason, the remedy."""


def seconds_of(text, what):
    units = {"s": 1, "min": 60, "h": 3600}
    for unit in sorted(units, key=len, reverse=True):
        number = str(text)[:-len(unit)]
        if str(text).endswith(unit) and number.replace(".", "", 1).isdigit():
            return float(number) * units[unit]
    raise PlanError("%s: '%s' is no time; give 300s, 5min or 1h" % (what, text))


class Launch:
    """One program run once. Its name is its identity in the state file."""

    def __init__(self, step, backend, replicate):
        self.step, self.backend, self.replicate = step, backend, replicate
        self.kind = step["kind"]
        self.key = step["name"] + ("" if backend is None else "." + backend)
        self.name = "%s.%d" % (self.key, replicate)
        self.seconds = float(step.get("launch_seconds", step["seconds"]))


class Plan:
    def __init__(self, path, text):
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PlanError("%s: %s; mend the TOML" % (path, error)) from None
        self._check(path, content, _PLAN_KEYS, "the plan")
        profile = content.get("profile", "quick")
        if profile not in PROFILES:
            raise PlanError("%s: profile '%s' is none of %s" % (path, profile, ", ".join(PROFILES)))
        of_steps = os.path.splitext(os.path.basename(path))[0]  # not of a profile
        self.path = path
        self.name = content.get("name", of_steps if "step" in content else profile)
        self.budget = seconds_of(content.get("budget", "%ds" % PROFILES[profile].budget),
                                 "%s: budget" % path)
        self.backends = content.get("backends", ["mpi", "gloo"])
        self.ranks = content.get("ranks", 2)
        self.deadline = float(content.get("deadline", 10))
        self.launcher = shlex.split(content.get(
            "launcher", "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"))
        self.baseline = content.get("baseline")
        self.environment = {key: str(value)
                            for key, value in content.get("environment", {}).items()}
        steps = content.get("step") or steps_of(profile, self.budget, len(self.backends))
        if steps is None:
            raise PlanError("%s: budget: %.0f s are too few for profile %s on %d backends; give "
                            "more, a shorter profile, or [[step]] tables of your own" %
                            (path, self.budget, profile, len(self.backends)))
        self.steps = self._steps(path, steps, content.get("skip", []))
        self._check_values(path)
        self.hash = hashlib.sha256(json.dumps(
            [self.steps, self.backends, self.ranks, self.launcher, self.environment],
            sort_keys=True).encode()).hexdigest()[:16]

    @staticmethod
    def _check(path, table, known, where):
        for key in table:
            if key not in known:
                raise PlanError("%s: '%s' of %s is unknown; choose from %s" %
                                (path, key, where, ", ".join(sorted(known))))

    def _steps(self, path, given, skip):
        steps = []
        for step in given:
            step = dict({"kind": "bench", "launches": 1, "required": True}, **step)
            self._check(path, step, _STEP_KEYS, "a step")
            if not step.get("name") or step["kind"] not in _KINDS:
                raise PlanError("%s: a step needs a name, and a kind of %s" %
                                (path, ", ".join(_KINDS)))
            if not isinstance(step.get("seconds"), (int, float)) or step["seconds"] <= 0:
                raise PlanError("%s: step '%s' needs seconds: how long a launch takes" %
                                (path, step["name"]))
            if not 0 < step.get("part", 1) <= 1:
                raise PlanError("%s: step '%s': part = %s; give more than 0, and 1 for all "
                                "scenarios" % (path, step["name"], step["part"]))
            if step["kind"] == "bench" and "program" not in step:
                raise PlanError("%s: step '%s' needs a program" % (path, step["name"]))
            if not any(fnmatch.fnmatch(step["name"], pattern) for pattern in skip):
                steps.append(step)
        names = [step["name"] for step in steps]
        if not steps or len(set(names)) < len(names):
            raise PlanError("%s: steps need names of their own, and there must be one" % path)
        return steps

    def _check_values(self, path):
        if not isinstance(self.ranks, int) or not 2 <= self.ranks <= 1 << 20:
            raise PlanError("%s: ranks = %s; give 2 or more" % (path, self.ranks))
        if not self.backends or not set(self.backends) <= {"mpi", "gloo", "nccl", "null"}:
            raise PlanError("%s: backends = %s; choose from mpi, gloo, nccl" %
                            (path, self.backends))

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


def find_program(name, folder=None):
    """Its path, or None: in `folder`, on PATH, or in the build tree."""
    root = folder or os.path.join(_TREE, "bazel-bin")
    places = [os.path.join(root, place, name) for place in ("",) + _PLACES]
    if name == "fuzz":
        # Other programs have that name, too: ours is beside stress.
        beside = os.path.dirname(find_program("stress", folder) or root)
        places = [os.path.join(beside, name), os.path.join(beside, name, name)]
        folder = folder or root
    found = [path for path in places if os.path.isfile(path) and os.access(path, os.X_OK)]
    installed = None if folder else shutil.which(name)
    return installed or (found[0] if found else None)
