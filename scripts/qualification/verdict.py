"""From what was run to one verdict: pure functions of the plan, the state and the result files. The
reader is imported where a file is read: it takes longer than the rest of a start."""

import collections
import json
import os
import re
import subprocess

from launches import other_versions, version_of  # before the reader, which it finds
from qualification.journal import minute

QUALIFIED, NOT_QUALIFIED, INCONCLUSIVE = "QUALIFIED", "NOT QUALIFIED", "INCONCLUSIVE"
EXIT_CODES = {QUALIFIED: 0, NOT_QUALIFIED: 1, INCONCLUSIVE: 3}
SLOWER = 5  # instead of 1, when being slower than the baseline is all that is wrong
ATTEMPTS = 2  # of a launch that gave no answer
COMMUNICATE = ("bench", "stress", "soak")  # kinds of steps
LIMIT_ENDED = ("was ended by the plan's limit after %.0f s; see its log, or give its step more "
               "seconds")
# What became of a rank -> what that is, for a reader of many launches.
OF_OUTCOME = {"corrupt": "wrong", "hung": "hang", "stopped": "hang", "crashed": "crash",
              "killed": "crash", "failed": "fail"}


def facts_of(path):
    """Of a result file, or None: (findings, {rank: host})."""
    import lockstep
    try:
        with lockstep.open(path) as run:
            return run.findings, _hosts(run.environment)
    except lockstep.Error:
        return None


def told_by(path, end, ranks=None):
    """What a result file tells of the end of its launch, of so many ranks if they are given. mpirun
    reports codes of its own, so the file's counts. But a launch that failed after it had written
    that it passed did not pass. A damaged file is none."""
    import lockstep
    try:
        with lockstep.open(path) as run:
            if end["exit"] is None:
                return {"exit": 1} if _proves_failure(run) else {}
            doubt = _doubt(run, end, ranks) if run.exit_code == 0 else None
            if doubt:
                return {"exit": 3, "said": "its file says that it passed, but " + doubt}
            return {"exit": run.exit_code}
    except lockstep.Error as error:
        return {"file": None, "said": str(error)}


def _doubt(run, end, ranks):
    """Why a file that says 0 does not mean that its launch passed, or None."""
    if end["exit"] != 0:
        return "its launcher ended with exit code %d; see its log" % end["exit"]
    if not run.complete:
        return "it was saved on the way out"
    found = len(_hosts(run.environment))
    if ranks is not None and found != ranks:
        return "%d ranks ran, not %d; see what the launcher starts" % (found, ranks)
    return None


def _proves_failure(run):
    """Of a launch that was ended: did its file say so before, or does it prove wrong data or a
    hang? Ranks that are ended may look like killed ones."""
    return run.exit_code == 1 and (run.complete or any(
        OF_OUTCOME.get(row["outcome"]) in ("wrong", "hang")
        for row in run.rows("verdicts/outcomes")))


def _hosts(environment):
    """{rank: host}"""
    places = ((fact.split("/"), value) for fact, value in environment.items())
    return {int(place[1]): value for place, value in places
            if place[0] == "ranks" and place[2:] == ["host"]}


def answer_of(end):
    """"ok", "failed" or "none", of an `end` in the state. Without a result file the exit code is
    the launcher's: it started nothing. Random programs write none, but say their trials."""
    tried = end["kind"] == "fuzz" and (end["exit"] or re.search(r"\b[1-9]\d* trials", end["said"]))
    told = end.get("file") or tried
    return {0: "ok", 1: "failed"}.get(end["exit"], "none") if told else "none"


def reason_for(launch, end):
    if end.get("missing"):
        return "%s: not run: %s" % (launch, end["missing"])
    kept = "; kept: " + ", ".join(end["kept"]) if end.get("kept") else ""
    if end["exit"] is None:
        return "%s: %s%s" % (launch, LIMIT_ENDED % end["seconds"], kept)
    wrote = "" if end["exit"] or end.get("file") else "it wrote no result; "
    return "%s: %s%s (exit code %s)%s" % (launch, wrote, end["said"], end["exit"], kept)


class Quarantine:
    """Ranks and hosts that findings name, with what they are named for."""

    def __init__(self):
        self._found = {}

    def add(self, launch, findings, hosts):
        for finding in findings:
            for rank in finding.culprits:
                entry = self._found.setdefault((hosts.get(rank, ""), rank), {
                    "rank": rank, "host": hosts.get(rank, ""), "causes": [], "launches": [],
                    "proved": False, "headline": finding.headline,
                    "message": finding.message})
                entry["proved"] = entry["proved"] or finding.proved
                for key, value in (("causes", finding.cause), ("launches", launch)):
                    if value not in entry[key]:
                        entry[key].append(value)

    def list(self):
        return [self._found[key] for key in sorted(self._found)]


def benchmark_files(folder, keys):
    """All result files of a folder, and those of these steps."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".h5"))
    chosen = [name for name in names if name[:-3].rsplit(".", 1)[0] in keys]
    return [[os.path.join(folder, name) for name in found] for found in (names, chosen)]


def compare(plan, lockstep, folder):
    """(verdict or None, a line) of `lockstep compare` with the plan's baseline."""
    if not plan.baseline:
        return None, None
    if lockstep is None:
        return INCONCLUSIVE, "baseline: lockstep is not installed"
    keys = {launch.key for launch in plan.launches() if launch.kind == "bench"}
    try:
        every, chosen = benchmark_files(plan.baseline, keys)
        base = chosen or every  # of a folder that nightly did not write
        _, candidate = benchmark_files(os.path.join(folder, "launches"), keys)
    except OSError as error:
        return INCONCLUSIVE, "baseline: %s" % error
    done = subprocess.run(
        [lockstep, "compare", "--format=json", "--base"] + base + ["--candidate"] + candidate,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    with open(os.path.join(folder, "compare.json"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    versions = told(done.stdout, "other_version")
    versions = versions and "; the two were " + versions
    if done.returncode == 0:
        return None, "baseline: no case is slower than in %s%s" % (plan.baseline, versions)
    if done.returncode == SLOWER:
        return NOT_QUALIFIED, "baseline: slower than %s: %s%s" % (
            plan.baseline, slower(done.stdout), versions)
    return INCONCLUSIVE, "baseline: %s (exit code %d)%s" % (
        told(done.stdout, "headline") or done.stderr.strip()[:300], done.returncode, versions)


def told(answer, key):
    """A text of what `lockstep compare` answered, or ""."""
    try:
        return json.loads(answer)[key]
    except (ValueError, KeyError, TypeError):
        return ""


def measured_by(folder):
    """The versions of Lockstep that wrote the launches of a night."""
    import lockstep
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        try:
            with lockstep.open(os.path.join(folder, name)) as run:
                found.append(run.lockstep)
        except lockstep.Error:
            pass
    return sorted(set(found))


def slower(answer):
    """The slower cases, as many as a person reads, and what else is not as it was."""
    try:
        table = json.loads(answer)
        names = ["%s on %s%s" % (one["case"], one["backend"], change_of(one))
                 for one in table["cases"] if one["verdict"] == "slower"]
        facts = ["%(fact)s %(base)s -> %(candidate)s" % one for one in table.get("differences", [])
                 if one["fact"] != "software/lockstep"]  # which the caller tells
    except (ValueError, KeyError, TypeError):
        names, facts = [], []
    return (several(names, 5) or told(answer, "headline") or "see compare.json") + (
        "; not as it was: " + several(facts, 3) if facts else "")


def several(texts, most):
    return ", ".join(texts[:most]) + (" and %d more" % (len(texts) - most)
                                      if len(texts) > most else "")


def change_of(case):
    change = case.get("effect", {}).get("estimate")
    return "" if change is None else " %+.1f %%" % (100 * change)


class _Found:
    """What speaks against the machine, what nothing is known of, and what is told only."""

    def __init__(self):
        self.failed, self.unanswered, self.notes = [], [], []
        self.quarantine, self.good = Quarantine(), {}
        self.communicated = False  # what a doctor or a simulation does not do

    def add_end(self, name, end, folder):
        answer, key = answer_of(end), name.rsplit(".", 1)[0]
        if answer == "ok" and end.get("file") and not os.path.exists(
                os.path.join(folder, end["file"])):
            self.unanswered.append("%s: its file %s is gone; run the plan in another "
                                   "--output-folder" % (name, end["file"]))
        elif answer == "ok":
            self.good[key] = self.good.get(key, 0) + 1
            self.communicated |= end["kind"] in COMMUNICATE
        elif answer == "failed":
            self.failed.append(reason_for(name, end))
            facts = facts_of(os.path.join(folder, end["file"])) if end.get("file") else None
            # Scenarios lose ranks on purpose: who is named there is not to blame.
            if facts is not None and end["kind"] == "bench":
                self.quarantine.add(name, *facts)
        elif end.get("optional"):
            self.notes.append(reason_for(name, end))
        else:
            self.unanswered.append(reason_for(name, end))

    def add_skipped(self, launches):
        """What the plan had and nobody began."""
        counts = collections.Counter(launch.key for launch in launches)
        for key, count in sorted(counts.items()):
            line = "%s: %d launches were not run: the budget was spent" % (key, count)
            (self.notes if self.good.setdefault(key, 0) > 0 else self.unanswered).append(line)

    def add_soak(self, step, soaked, spent_all):
        if soaked >= step["seconds"]:
            return
        (self.unanswered if step["required"] else self.notes).append("%s: %.0f of %.0f s: %s" % (
            step["name"], soaked, step["seconds"],
            "the budget was spent" if spent_all else "its launches give no answer"))

    def verdict(self):
        """(verdict, exit code)"""
        if self.failed:
            only_slower = all(one.startswith("baseline: ") for one in self.failed)
            return NOT_QUALIFIED, SLOWER if only_slower else EXIT_CODES[NOT_QUALIFIED]
        if not self.unanswered and not self.communicated:
            self.unanswered.append("no launch that communicates passed: nothing was measured; give "
                                   "steps of kind " + " or ".join(COMMUNICATE))
        verdict = INCONCLUSIVE if self.unanswered else QUALIFIED
        return verdict, EXIT_CODES[verdict]


def assess(plan, journal, folder, lockstep, soaked):
    """The whole answer. `soaked`: seconds of random faults, or None without a soak in the plan."""
    found = _Found()
    for name, end in journal.ended.items():
        found.add_end(name, end, folder)
    found.add_skipped([launch for launch in plan.launches() if launch.name not in journal.ended])
    step, _ = plan.soak()
    if step is not None:
        next_seconds = step.get("launch_seconds", step["seconds"])
        found.add_soak(step, soaked, journal.spent + next_seconds > plan.budget)
    slower_verdict, line = compare(plan, lockstep, folder)
    if line is not None:
        {NOT_QUALIFIED: found.failed, INCONCLUSIVE: found.unanswered,
         None: found.notes}[slower_verdict].append(line)
    versions = measured_by(os.path.join(folder, "launches"))
    if other_versions(versions):
        found.notes.append("the launches were " + other_versions(versions))
    verdict, code = found.verdict()
    return {"verdict": verdict, "exit_code": code, "plan": plan.name, "ranks": plan.ranks,
            "lockstep": version_of(lockstep), "measured_by": versions,
            "backends": plan.backends, "reasons": found.failed + found.unanswered,
            "notes": found.notes, "begun": minute(journal.plan["at"]),
            "ended": minute(journal.last), "quarantine": found.quarantine.list(),
            "launches": len(journal.ended), "passed": found.good,
            "seconds": round(journal.spent, 1), "budget_seconds": plan.budget,
            "soak_seconds": None if soaked is None else round(soaked, 1),
            "resumed": journal.resumed}


def format_answer(answer):
    if "earlier" in answer:
        reasons = answer["earlier"].get("reasons", [])
        return "\n".join([answer["headline"]] + ["  then: " + one for one in reasons]) + "\n"
    lines = ["%s: plan %s, %d ranks, %s; from %s to %s: %d launches, %.0f of %.0f s%s" % (
        answer["verdict"], answer["plan"], answer["ranks"], "+".join(answer["backends"]),
        answer["begun"], answer["ended"], answer["launches"], answer["seconds"],
        answer["budget_seconds"],
        ", resumed %d times" % answer["resumed"] if answer["resumed"] else "")]
    lines += ["  " + line for line in answer["reasons"]]
    for one in answer["quarantine"]:
        lines.append("  quarantine: rank %d%s: %s (%s, in %s)" % (
            one["rank"], " on " + one["host"] if one["host"] else "", ", ".join(one["causes"]),
            "proved" if one["proved"] else "suspected", ", ".join(one["launches"])))
    lines += ["  note: " + line for line in answer["notes"]]
    return "\n".join(lines) + "\n"
