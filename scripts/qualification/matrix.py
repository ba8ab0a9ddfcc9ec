"""The same plan over several configurations: what to run, and from what came of it to cells."""

import json
import math
import os
import subprocess

import launches  # it also says where the reader is
from qualification.plan import Plan
from qualification.plan_values import PlanError, check_table, seconds_of
from qualification.verdict import LIMIT_ENDED, OF_OUTCOME

_KEYS = {"name", "profile", "step", "skip", "ranks", "time_budget", "timeout", "baseline",
         "min_effect", "configuration"}
_CONFIGURATION_KEYS = {"name", "backend", "launcher", "environment", "nccl_library"}
_PLAN_KEYS = ("profile", "skip", "ranks", "timeout", "step")
MIN_EFFECT = "2%"
ANSWER_SECONDS = 600  # only to end what hangs
# The worst of a cell's launches decides.
ORDER = ("ok", "slower", "ambiguous", "unknown", "unfinished", "missing", "fail", "crash", "hang",
         "wrong")
NOT_KNOWN = ("ambiguous", "unknown", "unfinished", "missing")


class Configuration:
    def __init__(self, path, table):
        check_table(path, table, _CONFIGURATION_KEYS, "a configuration")
        if "name" not in table:
            raise PlanError("%s: a configuration needs a name" % path)
        self.name = table["name"]
        self.backend = table.get("backend", "nccl" if "nccl_library" in table else "mpi")
        self.launcher = table.get("launcher")
        self.environment = {key: str(value) for key, value in table.get("environment", {}).items()}
        self.nccl_library = table.get("nccl_library")


class Matrix:
    """`table`: of the TOML. Plans of nightly, one a configuration, that differ in nothing else."""

    def __init__(self, path, table, more=(), launcher=tuple(launches.OPEN_MPI)):
        check_table(path, table, _KEYS, "the matrix")
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
        self.min_effect = table.get("min_effect", MIN_EFFECT)
        self.plans = {one.name: self._plan(table, one, launcher) for one in self.configurations}
        self.budget = sum(plan.budget for plan in self.plans.values())
        self.hash = "+".join([plan.hash for plan in self.plans.values()] + [self.min_effect])
        if not self.launches():
            raise PlanError("%s: no step is a bench or stress; a matrix compares those" % path)

    def _plan(self, table, configuration, launcher):
        content = {key: table[key] for key in _PLAN_KEYS if key in table}
        if "time_budget" in table:  # each has its share
            content["time_budget"] = seconds_of(table["time_budget"]) / len(self.configurations)
        # A step's own backends would be the same in every column.
        for step in content.get("step", []):
            if "backends" in step:
                raise PlanError("%s: step '%s': backends are those of the configurations; leave "
                                "them out" % (self.path, step.get("name", "")))
        content["backends"] = [configuration.backend]
        if configuration.launcher:
            content["launcher"] = configuration.launcher
        content["environment"] = dict(configuration.environment)
        if configuration.nccl_library:
            content["environment"]["LOCKSTEP_NCCL_LIBRARY"] = configuration.nccl_library
        return Plan(self.path, content, launcher)

    def launches(self):
        """[(configuration, launch)]: configurations take turns, so that drift meets all alike."""
        lists = [[(name, launch) for launch in plan.launches()
                  if launch.kind in ("bench", "stress")] for name, plan in self.plans.items()]
        return [item for row in zip(*lists) for item in row]


def cell_of(end, path):
    """(word, why) of one launch: `end` as the journal has it, `path` of its result or None."""
    if end.get("missing"):
        return "missing", end["missing"]
    if end["exit"] is None:  # our limit is no proof of a hang, and its file tells of none
        return "unfinished", LIMIT_ENDED % end["seconds"]
    if end["exit"] == 0:
        return ("ok", "") if path is not None else ("unknown", "it wrote no result; " + end["said"])
    if end["exit"] == 4:
        return "missing", end["said"]
    if end["exit"] == 1 and path is not None:  # without a file it is the launcher's
        return max(_outcomes(path), key=ORDER.index), end["said"]
    return "unknown", end["said"]


def _outcomes(path):
    """Words for what became of ranks; at least "fail"."""
    import lockstep
    found = ["fail"]
    try:
        with lockstep.open(path) as run:
            # Of a scenario that fails, outcomes are not what is wrong with the machine.
            if run.name != "stress":
                found += [OF_OUTCOME.get(row["outcome"], "ok")
                          for row in run.rows("verdicts/outcomes")]
    except lockstep.Error:
        pass
    return found


def versions_of(path):
    """{name: version} of the software that a run used."""
    import lockstep
    try:
        with lockstep.open(path) as run:
            software = {fact.removeprefix("software/"): value
                        for fact, value in sorted(run.environment.items())
                        if fact.startswith("software/")}
            return {**software, "lockstep": run.lockstep}
    except lockstep.Error:
        return {}


def compare(lockstep, min_effect, base, candidate):
    """(word, why, times or None): is a program slower with this configuration than with base?"""
    words = [lockstep, "compare", *base, "--", *candidate, "--across=backend", "--format=json",
             "--min-effect=" + min_effect]
    answer, why = ask(words, ("cases", "not_read"), codes=(0, 3, 5))
    if answer is None:
        return "unknown", "lockstep compare: %s" % why, None
    return judge_cases(answer["cases"], answer["not_read"])


def ask(words, keys, codes, environment=None):
    """(answer, "") of a program that prints a JSON object with these keys, or (None, why not)."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace",
                              timeout=ANSWER_SECONDS, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return None, "no answer within %d s" % ANSWER_SECONDS
    if done.returncode not in codes:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
        return None, "%s (exit code %d)" % (said[:300], done.returncode)
    try:
        answer = json.loads(done.stdout)
        return {key: answer[key] for key in keys}, ""
    except (ValueError, LookupError, TypeError):
        return None, "it answered %.100r; do its version and this one differ?" % done.stdout


def _times(cases):
    """Multiples of the base's times: estimates of all cases, and the bounds (95 %) of them all."""
    effects = [one["effect"] for one in cases if one["effect"]["estimate"] is not None]
    if not effects:
        return None
    ratios = [1 + effect["estimate"] for effect in effects]
    bounds = [effect[end] for effect in effects for end in ("low", "high")]
    return {"low": min(ratios), "high": max(ratios),
            "mean": math.exp(sum(map(math.log, ratios)) / len(ratios)),
            "bounds": None if None in bounds else [1 + min(bounds), 1 + max(bounds)]}


def judge_cases(cases, not_read):
    """What `lockstep compare` says of each case, as one cell. Nothing is ok that is not proved."""
    times = _times(cases)
    counts = {}
    for one in cases:
        counts.setdefault(one["verdict"], []).append(one)
    told = ", ".join("%d %s" % (len(found), verdict) for verdict, found in counts.items())
    told += " (of %d cases)" % len(cases)
    if "slower" in counts:
        worst = max(counts["slower"], key=lambda one: one["effect"]["estimate"] or 0)
        return "slower", "%s; most: %s, %.2f times the time" % (
            told, worst["case"], 1 + (worst["effect"]["estimate"] or 0)), times
    if "ambiguous" in counts:
        first = counts["ambiguous"][0]
        return "ambiguous", "%s; %s: %s" % (told, first["case"],
                                            first["resolve"] or first["why"]), times
    if "missing" in counts or not_read or not cases:
        return "unknown", "; ".join([told] + not_read[:1]), times
    return "ok", "", times


def _shown(cell):
    times = cell["times"]
    if times is None:
        return cell["cell"]
    if cell["cell"] == "ambiguous" and times["bounds"]:
        return "ambiguous %.3g..%.3gx" % tuple(times["bounds"])
    return "%s %.3g-%.3gx" % (cell["cell"], times["low"], times["high"])


def format_matrix(answer):
    """A row a step, a column a configuration; then why for each cell that is not ok."""
    if "earlier" in answer:
        return answer["headline"] + "\n"
    names = [one["name"] for one in answer["configurations"]]
    steps = answer["steps"]
    cells = {(cell["step"], cell["configuration"]): cell for cell in answer["cells"]}
    rows = [["step"] + names] + [[step] + [_shown(cells[(step, name)]) for name in names]
                                 for step in steps]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [answer["headline"], ""]
    lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines += ["x: times of '%s'; a-b: from the quickest to the slowest case; a..b: all within" %
              answer["baseline"], ""]
    return "\n".join(lines + _remarks(answer)) + "\n"


def _remarks(answer):
    """Versions and notes of the configurations, why cells are not ok, and what doctor advises."""
    lines = [answer["other_version"]] if answer["other_version"] else []
    for one in answer["configurations"]:
        versions = ", ".join("%s %s" % item for item in one["versions"].items())
        lines += ["%s: %s" % (one["name"], words) for words in (versions, one["note"]) if words]
    lines += ["%s, %s: %s: %s" % (cell["step"], cell["configuration"], cell["cell"], cell["why"])
              for cell in answer["cells"] if cell["why"]]
    return lines + ["%s: %s -> %s" % (one["name"], rule["message"], rule["remedy"])
                    for one in answer["configurations"] for rule in one["rules"]]


def pairs_of(old, new):
    """[(step, configuration, old cell, new cell)] of two answers; None: it is not there."""
    before = {(one["step"], one["configuration"]): one["cell"] for one in old["cells"]}
    after = {(one["step"], one["configuration"]): one["cell"] for one in new["cells"]}
    return [(*key, before.get(key), after.get(key)) for key in sorted(before.keys() | after.keys())]


def change_of(before, after, times="ok"):
    """"worse", "not known" or "" of two words of a cell; None: it is not there. `times`: what
    `compare` says of its launches beside those before, since a word tells of one night only."""
    known = [word for word in ORDER if word not in NOT_KNOWN]
    if after not in known:
        change = "not known"
    elif before in known:
        change = "worse" if ORDER.index(after) > ORDER.index(before) else ""
    else:
        change = {"ok": "", "slower": "not known"}.get(after, "worse")
    return {"ok": change, "slower": "worse"}.get(times, change or "not known")


def verdict_of(pairs, times):
    """(first line, exit code) of `pairs_of`, and of the word for the times of each pair."""
    changes = [change_of(*pair[2:], word) for pair, word in zip(pairs, times)]
    worse, unclear = changes.count("worse"), changes.count("not known")
    word, code = ("WORSE", 5) if worse else ("INCONCLUSIVE", 3) if unclear else ("OK", 0)
    return "%s: %d of %d cells changed, %d for the worse%s" % (
        word, sum(before != after for _, _, before, after in pairs), len(pairs), worse,
        ", of %d it is not known" % unclear if unclear else ""), code
