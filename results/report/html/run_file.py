"""A run as the page needs it: what Python's reader gives (results/python), sorted by case.

Tables are read at once, samples and journals only of what is drawn, since a run can have ten
thousand cases.
"""

import collections
import os
import tomllib

import lockstep
import numpy

WORST = ("fail", "unknown", "pass")

Part = collections.namedtuple("Part", "name units over median low high")
Outcome = collections.namedtuple("Outcome", "rank outcome exit_code signal where silent evidence")


class Times:
    """iterations x ranks of nanoseconds; NaN where a rank did not get there."""

    def __init__(self, entry, leave):
        self.entry, self.exit = entry, leave
        self.spent = leave - entry

    def slowest(self):
        """Of the iterations that every rank completed."""
        if not self.spent.size:
            return numpy.empty(0)
        return self.spent[~numpy.isnan(self.spent).any(axis=1)].max(axis=1)


def _by_case(pairs):
    found = collections.defaultdict(list)
    for case, value in pairs:
        found[case].append(value)
    return found


class RunFile(lockstep.Run):
    """Its tables are lists of rows; those of many rows a case are {case: …}."""

    def __init__(self, path):
        super().__init__(path, verify=False)  # `lockstep` did before
        self.key = self.shown = None  # name the run within a page, in anchors and for people
        self.side = ""  # of a comparison of several runs: base or candidate
        self.file_name = os.path.basename(path)
        self.cases = self.rows("summary")
        self.effects = self.rows("effects")
        self.pairs = self.rows("links/pairs")
        self.trials = {row["case"]: row for row in self.rows("verdicts/trials")}
        self.wrong = self.rows("wrong")
        self.parts = _by_case(
            (row["case"], Part(row["part"], row["part_units"], row["over"], row["median"],
                               row["interval_low"], row["interval_high"]))
            for row in self.rows("parts"))
        self.findings_of = _by_case((finding.case, finding) for finding in self.findings)
        self.outcomes = _by_case(
            (row["case"], Outcome(row["rank"], row["outcome"], row["exit_code"], row["signal"],
                                  row["where"], row["seconds_silent"], row["evidence"]))
            for row in self.rows("verdicts/outcomes"))

    def label(self):
        """Short and distinct among runs."""
        return self.shown + (", " + self.side if self.side else "")

    def is_open(self, case):
        """Nothing was found in it, and it was not measured to its end."""
        return case["verdict"] == "unknown" and case["case"] not in self.trials and \
            not self.findings_of.get(case["case"])

    def is_unmeasured(self, case):
        return self.is_open(case) and not case["iterations"]

    def worst(self):
        """The worst of what the file says of the run, its launch, its cases and its exit code."""
        said = [self.verdict, self.launch_verdict, *(case["verdict"] for case in self.cases),
                {0: "pass", 3: "unknown"}.get(self.exit_code, "fail")]
        return min(said, key=WORST.index)

    def times(self, case):
        return Times(*self.stamps(case))

    def faults(self, case):
        """{number of a fault: its kind}, as the scenario of a stress case plans them."""
        if case not in self.trials:
            return {}
        scenario = tomllib.loads(self.plan["cases"][case]["text"])
        return {number: fault["kind"] for number, fault in enumerate(scenario.get("fault", []))}
