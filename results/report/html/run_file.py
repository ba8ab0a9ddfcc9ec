"""A run file as the page needs it. results/schema.md documents every object that is read here.

`lockstep` verified the seal before: the file is whole and its own. Tables are read at once, samples
and journals only of what is drawn, since a run can have ten thousand cases.
"""

import collections
import json
import os
import tomllib

import h5py
import numpy

# Units that the schema fixes: times are nanoseconds, sizes bytes, bandwidths 1e9 bytes a second.
Part = collections.namedtuple("Part", "name units over median low high")
Outcome = collections.namedtuple("Outcome", "rank outcome exit_code signal where silent evidence")
Finding = collections.namedtuple("Finding", "cause culprits proved headline message remedy")
LAUNCH = -1  # the number of the launch where tables count cases


def _text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _rows(dataset):
    """Rows of a compound table as dicts of Python values, texts decoded."""
    table = dataset[:]
    columns = []
    for name in table.dtype.names:
        values = table[name].tolist()
        if table.dtype[name].kind == "S":
            values = [_text(value) for value in values]
        columns.append(values)
    return [dict(zip(table.dtype.names, row)) for row in zip(*columns)]


def _culprits(text):
    return [int(rank) for rank in text.split(",") if rank]


def _version(attrs):
    """Of Lockstep, as core/base/version.h words it."""
    number = _text(attrs.get("lockstep_version", ""))
    commit = _text(attrs.get("lockstep_commit", ""))
    if commit:
        number += " (%s%s)" % (commit, ", modified" if attrs["lockstep_modified"] else "")
    return number or "not recorded"


class Samples:
    """iterations x ranks of nanoseconds; NaN where a rank did not get there."""

    def __init__(self, group):
        entry = group["entry_ns"][:].astype(float)
        leave = group["exit_ns"][:].astype(float)
        lost = (entry < 0) | (leave < 0)
        entry[lost] = numpy.nan
        leave[lost] = numpy.nan
        self.entry, self.exit = entry, leave
        self.spent = leave - entry

    def slowest(self):
        """Of the iterations that every rank completed."""
        if not self.spent.size:
            return numpy.empty(0)
        return self.spent[~numpy.isnan(self.spent).any(axis=1)].max(axis=1)


class Journal:
    """Events of one rank in one lifetime of its worker."""

    def __init__(self, dataset, ns_per_tick, origin):
        self.rank = int(dataset.attrs["rank"])
        self.lifetime = int(dataset.attrs["lifetime"])
        self.missed = int(dataset.attrs["missed"])
        self.events = dataset[:]
        self.names = {column: {value: name for name, value in
                               h5py.check_enum_dtype(dataset.dtype[column]).items()}
                      for column in ("kind", "collective", "type", "reduction", "phase")}
        ticks = self.events["ticks"].astype(numpy.int64) - numpy.int64(origin)
        self.ns = ticks * ns_per_tick

    def name(self, column, event):
        return self.names[column].get(int(event[column]), "unknown")


class RunFile:
    """What the tables of a run file hold; `samples`, `part_values` and `journals` read more."""

    def __init__(self, path):
        self.path = path
        self.key = None  # names the run within a page: `id`, made distinct by the page
        self.side = ""  # of a comparison of several runs: base or candidate
        self.file_name = os.path.basename(path)
        self.file = h5py.File(path, "r")
        attrs = self.file.attrs
        for name in ("id", "name", "started_at", "command_line", "verdict", "summary_line"):
            setattr(self, name, _text(attrs[name]))
        self.lockstep = _version(attrs)
        self.recommendation = _text(attrs.get("recommendation", ""))
        self.duration_seconds = float(attrs["duration_seconds"])
        self.exit_code = int(attrs["exit_code"])
        self.complete = bool(attrs["complete"])
        self.schema_version = int(attrs["schema_version"])
        self.plan_hash = _text(self.file["plan"].attrs["hash"])
        self.seed = int(self.file["plan"].attrs["seed"])
        self.launch_verdict = _text(self.file["verdicts"].attrs["launch"])
        self.floors = {name: float(value) for name, value in self.file["floors"].attrs.items()}
        self.environment = self._read_environment()
        self.cases = _rows(self.file["summary"])
        self.effects = self._table("effects")
        self.links = self._read_links()
        self.trials = {row["case"]: row for row in self._table("verdicts/trials")}
        self.wrong = self._table("wrong")
        self.parts = collections.defaultdict(list)
        for row in self._table("parts"):
            self.parts[row["case"]].append(
                Part(row["part"], row["part_units"], row["over"], row["median"],
                     row["interval_low"], row["interval_high"]))
        self._read_verdicts()

    def _table(self, path):
        return _rows(self.file[path]) if path in self.file else []

    def _read_links(self):
        """Attributes of /links, and "pairs"; None of a run that measured none."""
        if "links" not in self.file:
            return None
        links = {name: value.item() for name, value in self.file["links"].attrs.items()
                 if not name.endswith(".units")}
        links["pairs"] = self._table("links/pairs")
        return links

    def _read_environment(self):
        facts = {"software/lockstep": self.lockstep}

        def visit(path, item):
            for name, value in item.attrs.items():
                facts[path + "/" + name] = _text(value)

        self.file["environment"].visititems(visit)
        facts.update((name, _text(value))
                     for name, value in self.file["environment"].attrs.items())
        return facts

    def _read_verdicts(self):
        self.findings = collections.defaultdict(list)
        for row in self._table("verdicts/findings"):
            self.findings[row["case"]].append(
                Finding(row["cause"], _culprits(row["culprits"]), bool(row["proved"]),
                        row.get("headline") or row["message"].split("; ")[0],
                        row["message"], row["remedy"]))
        self.outcomes = collections.defaultdict(list)
        for row in self._table("verdicts/outcomes"):
            self.outcomes[row["case"]].append(
                Outcome(row["rank"], row["outcome"], row["exit_code"], row["signal"],
                        row["where"], row["seconds_silent"], row["evidence"]))

    def label(self):
        """Short and distinct among runs."""
        return "%s %s" % (self.name, self.id) + (", " + self.side if self.side else "")

    def samples(self, case):
        return Samples(self.file["cases/%d/samples" % case])

    def part_values(self, case, name):
        """iterations x ranks."""
        return self.file["cases/%d/parts/%s" % (case, name)][:]

    def settings(self, case):
        group = self.file["cases/%d" % case]
        if "settings" not in group:
            return {}
        return {name: _text(value) for name, value in group["settings"].attrs.items()}

    def operation_of(self, case):
        return self.cases[case]["operation"]

    def plan(self):
        text = self.file["plan/text"][()]
        return json.loads(_text(text)) if len(text) else {}

    def faults(self, case):
        """{number of a fault: its kind}, as the scenario of a stress case plans them."""
        if case not in self.trials:
            return {}
        if not hasattr(self, "_plan"):
            self._plan = self.plan()
        scenario = tomllib.loads(self._plan["cases"][case]["text"])
        return {number: fault["kind"] for number, fault in enumerate(scenario.get("fault", []))}

    def lifetimes(self):
        """Number of each lifetime of the workers -> its journals, by rank; read once."""
        if not hasattr(self, "_lifetimes"):
            group = self.file["history"]
            found = collections.defaultdict(list)
            for name in group:
                found[int(group[name].attrs["lifetime"])].append(name)
            self._lifetimes = {number: sorted(names, key=lambda n: int(group[n].attrs["rank"]))
                               for number, names in found.items()}
        return self._lifetimes

    def journals(self, lifetime):
        group = self.file["history"]
        scale = float(group.attrs["ns_per_tick"])
        origin = int(group.attrs["origin_ticks"])
        return [Journal(group[name], scale, origin) for name in self.lifetimes()[lifetime]]

    def lifetime_of(self, case):
        """The lifetime of a case: of a stress run the one of its number, else the newest that got
        to the case; None without a journal of it."""
        numbers = sorted(self.lifetimes())
        if case in self.trials or case == LAUNCH:
            wanted = case if case in self.trials else (numbers[-1] if numbers else None)
            return wanted if wanted in numbers else None
        for number in reversed(numbers):
            for name in self.lifetimes()[number]:
                if (self.file["history"][name]["case"] == case).any():
                    return number
        return None
