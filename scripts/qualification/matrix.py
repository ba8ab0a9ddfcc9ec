"""The same plan over several configurations: what to run, and from what came of it to cells."""

import json
import os
import subprocess
import tomllib

import h5py
from plan import Plan, PlanError, seconds_of
from verdict import text

_KEYS = {"name", "profile", "step", "skip", "ranks", "budget", "deadline", "baseline",
         "configuration"}
_CONFIGURATION_KEYS = {"name", "backend", "launcher", "environment", "nccl_library"}
_PLAN_KEYS = ("profile", "skip", "ranks", "deadline")
# The worst of a cell's launches decides.
ORDER = ("ok", "slower", "unknown", "missing", "fail", "crash", "hang", "wrong")
_OF_OUTCOME = {"corrupt": "wrong", "hung": "hang", "stopped": "hang", "crashed": "crash",
               "killed": "crash", "failed": "fail"}


class Configuration:
    def __init__(self, path, table):
        for key in table:
            if key not in _CONFIGURATION_KEYS:
                raise PlanError("%s: '%s' of a configuration is unknown; choose from %s" %
                                (path, key, ", ".join(sorted(_CONFIGURATION_KEYS))))
        if not table.get("name") or "/" in table["name"]:
            raise PlanError("%s: a configuration needs a name without '/'" % path)
        self.name = table["name"]
        self.backend = table.get("backend", "nccl" if "nccl_library" in table else "mpi")
        self.launcher = table.get("launcher")
        self.environment = {key: str(value) for key, value in table.get("environment", {}).items()}
        self.nccl_library = table.get("nccl_library")


class Matrix:
    """`content`: TOML. Plans of nightly, one a configuration, that differ in nothing else."""

    def __init__(self, path, content, more=()):
        try:
            table = tomllib.loads(content)
        except tomllib.TOMLDecodeError as error:
            raise PlanError("%s: %s; mend the TOML" % (path, error)) from None
        for key in table:
            if key not in _KEYS:
                raise PlanError("%s: '%s' is unknown; choose from %s" %
                                (path, key, ", ".join(sorted(_KEYS))))
        given = table.get("configuration", []) + list(more)
        self.path, self.name = path, table.get("name", os.path.basename(path))
        self.configurations = [Configuration(path, one) for one in given]
        names = [one.name for one in self.configurations]
        if len(names) < 2 or len(set(names)) < len(names):
            raise PlanError("%s: a matrix needs two [[configuration]] tables or more, with names "
                            "of their own" % path)
        self.baseline = table.get("baseline", names[0])
        if self.baseline not in names:
            raise PlanError("%s: baseline '%s' is none of %s" %
                            (path, self.baseline, ", ".join(names)))
        self.plans = {one.name: self._plan(table, one) for one in self.configurations}
        self.budget = sum(plan.budget for plan in self.plans.values())
        self.hash = "+".join(plan.hash for plan in self.plans.values())

    def _plan(self, table, configuration):
        lines = ["%s = %s" % (key, json.dumps(table[key])) for key in _PLAN_KEYS if key in table]
        if "budget" in table:  # each has its share
            whole = seconds_of(table["budget"], "%s: budget" % self.path)
            lines.append('budget = "%ss"' % round(whole / len(self.configurations), 3))
        lines.append("backends = %s" % json.dumps([configuration.backend]))
        if configuration.launcher:
            lines.append("launcher = %s" % json.dumps(configuration.launcher))
        lines.append("[environment]")
        lines += ["%s = %s" % (json.dumps(key), json.dumps(value))
                  for key, value in configuration.environment.items()]
        if configuration.nccl_library:
            lines.append('"LOCKSTEP_NCCL_LIBRARY" = %s' % json.dumps(configuration.nccl_library))
        for step in table.get("step", []):
            lines.append("[[step]]")
            lines += ["%s = %s" % (key, json.dumps(value)) for key, value in step.items()]
        return Plan(self.path, "\n".join(lines))

    def launches(self):
        """[(configuration, launch)]: configurations take turns, so that drift meets all alike."""
        lists = [[(name, launch) for launch in plan.launches()
                  if launch.kind in ("bench", "stress")] for name, plan in self.plans.items()]
        return [item for row in zip(*lists) for item in row]


def cell_of(end, path):
    """(word, why) of one launch: `end` as the journal has it, `path` of its result or None."""
    if end.get("missing"):
        return "missing", end["missing"]
    if end["exit"] is None:
        return "hang", "was not over after %.0f s" % end["seconds"]
    if end["exit"] == 0:
        return "ok", ""
    if end["exit"] == 4:
        return "missing", end["said"]
    if end["exit"] == 1:
        return max(_outcomes(path), key=ORDER.index), end["said"]
    return "unknown", end["said"]


def _outcomes(path):
    """Words for what became of ranks; at least "fail"."""
    found = ["fail"]
    try:
        with h5py.File(path) as run:
            # Of a scenario that fails, outcomes are not what is wrong with the machine.
            if text(run.attrs["name"]) == "stress":
                return found
            for row in run["verdicts/outcomes"][:]:
                found.append(_OF_OUTCOME.get(text(row["outcome"]), "ok"))
    except (OSError, KeyError, ValueError, TypeError):
        pass
    return found


def versions_of(path):
    """{name: version} of the software that a run used."""
    try:
        with h5py.File(path) as run:
            group = run["environment"].get("software")
            return {} if group is None else {key: text(value)
                                             for key, value in sorted(group.attrs.items())}
    except (OSError, KeyError, ValueError):
        return {}


def compare(lockstep, base, candidate):
    """{program: (word, why)} of the programs that are slower or can't be told; {} when all same."""
    words = [lockstep, "compare", *base, "--", *candidate, "--across=backend", "--format=json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=600, check=False)
    if done.returncode not in (0, 3, 5):
        said = (done.stderr.strip().splitlines() or ["nothing"])[0]
        return ("unknown", "lockstep compare: %s" % said[:300])
    slower = [one for one in json.loads(done.stdout)["cases"] if one["verdict"] == "slower"]
    if not slower:
        return ("ok", "")
    worst = max(slower, key=lambda one: one["effect"]["estimate"] or 0)
    return ("slower", "%d of its cases; most: %s by %.0f %%" %
            (len(slower), worst["case"], 100 * (worst["effect"]["estimate"] or 0)))


def format_matrix(answer):
    """A row a step, a column a configuration; then why for each cell that is not ok."""
    names = [one["name"] for one in answer["configurations"]]
    steps = answer["steps"]
    cells = {(cell["step"], cell["configuration"]): cell for cell in answer["cells"]}
    rows = [["step"] + names]
    for step in steps:
        rows.append([step] + [cells[(step, name)]["cell"] if (step, name) in cells else "not run"
                              for name in names])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [answer["headline"], ""]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
              for row in rows]
    lines.append("")
    for one in answer["configurations"]:
        if one["versions"]:
            lines.append("%s: %s" % (one["name"], ", ".join(
                "%s %s" % item for item in one["versions"].items())))
    for cell in answer["cells"]:
        if cell["why"]:
            lines.append("%s, %s: %s: %s" % (cell["step"], cell["configuration"], cell["cell"],
                                             cell["why"]))
    for one in answer["configurations"]:
        lines += ["%s: %s -> %s" % (one["name"], rule["message"], rule["remedy"])
                  for rule in one["rules"]]
    return "\n".join(lines) + "\n"


def differences(old, new):
    """[(step, configuration, old cell, new cell)] of what changed; None: not there."""
    before = {(one["step"], one["configuration"]): one["cell"] for one in old["cells"]}
    after = {(one["step"], one["configuration"]): one["cell"] for one in new["cells"]}
    return [(step, name, before.get((step, name)), after.get((step, name)))
            for step, name in sorted(before.keys() | after.keys())
            if before.get((step, name)) != after.get((step, name))]
