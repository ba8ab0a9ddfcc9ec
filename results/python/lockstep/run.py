"""One run: its attributes at once, tables, samples and journals when they are asked for."""

from __future__ import annotations

import collections
import contextlib
import functools
import json
import operator
import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

import h5py
import numpy
import numpy.typing

from .journal import Journal
from .seal import Error, check, refusal

if TYPE_CHECKING:
    import pandas

Floats = numpy.typing.NDArray[numpy.float64]
Rows = list[dict[str, Any]]

LAUNCH = -1  # in columns `case`: of the launch, of no case

_IN_EVERY_FILE = ("summary", "operations", "wrong", "verdicts/outcomes", "verdicts/findings")
# What `Run.rows` and `Run.table` read. Those behind the first came with later versions, or are
# only where there is something to say.
TABLES = _IN_EVERY_FILE + (
    "parts", "effects", "links/pairs", "verdicts/trials", "verdicts/evidence",
    "verdicts/sockets", "recovery", "arrivals", "clocks", "clock_anchors", "gpu_samples", "logs",
    "watch/ranks", "watch/places", "watch/waited_for", "watch/calls")


class Finding(NamedTuple):
    """A cause that the judge found."""

    case: int  # LAUNCH: of the launch
    cause: str  # "rank_killed" …: docs/verdicts.md
    culprits: list[int]  # ranks
    proved: bool  # False: suspected, because all evidence is silence
    headline: str  # one line of at most 25 words; of older files the message's first clause
    message: str
    remedy: str


class Run:
    """A run file. All texts are str.

    path: as it was given
    file: the open h5py.File, for what has no method of its own (results/schema.md)
    id, name, started_at, command_line, summary_line, recommendation: texts; name: the program
    verdict: "pass", "fail" or "unknown"; launch_verdict: that of the launch as a whole
    exit_code: of the run; complete: False when it was saved on the way out
    duration_seconds, schema_version, seed, plan_hash
    floors: {name with its unit: what this machine can do at best}
    lockstep_version, lockstep_commit, lockstep_modified: of the Lockstep that measured; "", False
        where the file does not tell
    """

    def __init__(self, path: Union[str, os.PathLike[str]], *, verify: bool = True) -> None:
        """As `lockstep.open`."""
        self.path = os.fspath(path)
        check(self.path, verify)
        with self._reading("the file"):
            # Nobody writes to a file that has its final name.
            self.file = h5py.File(self.path, "r", locking=False)
        try:
            with self._reading("an attribute"):
                self._read_attributes()
        except Error:
            self.close()
            raise

    def _read_attributes(self) -> None:
        attrs = self.file.attrs
        self.id = _text(attrs["id"])
        self.name = _text(attrs["name"])
        self.started_at = _text(attrs["started_at"])
        self.command_line = _text(attrs["command_line"])
        self.verdict = _text(attrs["verdict"])
        self.summary_line = _text(attrs["summary_line"])
        self.recommendation = _text(attrs.get("recommendation", ""))
        self.lockstep_version = _text(attrs.get("lockstep_version", ""))
        self.lockstep_commit = _text(attrs.get("lockstep_commit", ""))
        self.lockstep_modified = bool(attrs.get("lockstep_modified", False))
        self.duration_seconds = float(attrs["duration_seconds"])
        self.exit_code = int(attrs["exit_code"])
        self.complete = bool(attrs["complete"])
        self.schema_version = int(attrs["schema_version"])
        self.plan_hash = _text(self.file["plan"].attrs["hash"])
        self.seed = int(self.file["plan"].attrs["seed"])
        self.launch_verdict = _text(self.file["verdicts"].attrs["launch"])
        self.floors = {name: float(value) for name, value in self.file["floors"].attrs.items()}

    def close(self) -> None:
        """Nothing more can be read; what was read stays."""
        self.file.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lockstep.Run {self.id}: {self.name}, {self.verdict}, {self.path}>"

    @contextlib.contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Whatever h5py says of a damaged file is an Error of one line."""
        try:
            yield
        except (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise refusal(self.path, f"{what} is not what results/schema.md says ({reason})",
                          "use an unmodified copy of it") from error

    # ---- Tables

    def rows(self, table: str) -> Rows:
        """The rows of one of TABLES: a dict of Python values each, by column; [] where the file
        has no such table. Error: `table` is none of TABLES, or damaged."""
        columns = self._columns(table)
        values = [column if isinstance(column, list) else column.tolist()
                  for column in columns.values()]
        return [dict(zip(columns, row)) for row in zip(*values)]

    def table(self, table: str) -> pandas.DataFrame:
        """As `rows`, as a frame. It has no columns where the file has no such table."""
        import pandas
        # A column of texts is one without rows, too.
        return pandas.DataFrame({name: pandas.Series(column, dtype=object)
                                 if isinstance(column, list) else column
                                 for name, column in self._columns(table).items()})

    def _columns(self, table: str) -> dict[str, Any]:
        """{column: list of texts, or array}"""
        if table not in TABLES:
            raise Error(f"{self.path}: '{table}' is no table; name one of {', '.join(TABLES)}")
        with self._reading("/" + table):
            if table not in _IN_EVERY_FILE and table not in self.file:
                return {}
            content = self.file[table][:]
            return {name: [_text(value) for value in content[name].tolist()]
                    if content.dtype[name].kind == "S" else content[name]
                    for name in content.dtype.names}

    @functools.cached_property
    def summary(self) -> pandas.DataFrame:
        """A row a case: its verdict, median, interval, bandwidth … NaN: the samples cannot
        support the figure. Columns and units: /summary of results/schema.md."""
        return self.table("summary")

    @functools.cached_property
    def findings(self) -> list[Finding]:
        """Of all cases and of the launch, in the order of the file. Empty: nothing was found."""
        return [Finding(row["case"], row["cause"],
                        [int(rank) for rank in row["culprits"].split(",") if rank],
                        bool(row["proved"]),
                        # Older files have none: the first clause of the message.
                        row.get("headline") or row["message"].split("; ")[0],
                        row["message"], row["remedy"]) for row in self.rows("verdicts/findings")]

    @property
    def lockstep(self) -> str:
        """Which Lockstep measured: "0.9.0 (1a2b3c4, modified)"; "not recorded": an older one."""
        number, commit = self.lockstep_version, self.lockstep_commit
        if commit:
            number += f" ({commit}, modified)" if self.lockstep_modified else f" ({commit})"
        return number or "not recorded"

    @functools.cached_property
    def environment(self) -> dict[str, str]:
        """Facts of machine and software: {"host/0/cpu_model": …, "software/mpi": …}; also
        "software/lockstep" where the file tells it."""
        facts = {"software/lockstep": self.lockstep} if self.lockstep_version else {}

        def visit(path: str, item: Any) -> None:
            for name, value in item.attrs.items():
                facts[path + "/" + name] = _text(value)

        with self._reading("/environment"):
            self.file["environment"].visititems(visit)
            facts.update((name, _text(value))
                         for name, value in self.file["environment"].attrs.items())
        return facts

    @functools.cached_property
    def links(self) -> dict[str, Any]:
        """Figures of the links between ranks: the attributes of /links; {} when the run measured
        none. The pairs are `table("links/pairs")`."""
        with self._reading("/links"):
            if "links" not in self.file:
                return {}
            return {name: value.item() for name, value in self.file["links"].attrs.items()
                    if not name.endswith(".units")}

    @functools.cached_property
    def plan(self) -> dict[str, Any]:
        """What was to run, with which the run can be repeated; {} when it had no plan."""
        with self._reading("/plan/text"):
            text = _text(self.file["plan/text"][()])
            plan: dict[str, Any] = json.loads(text) if text else {}
            return plan

    # ---- Cases. `case`: its number, or its name in `summary`.

    def samples(self, case: Union[int, str]) -> Floats:
        """Durations: float64 nanoseconds, (iterations, ranks); NaN where a rank did not get there.
        `samples(case).max(axis=1)` is what `summary` is computed from.

        Error: no such case, or damaged."""
        entry, leave = self.stamps(case)
        return leave - entry

    def stamps(self, case: Union[int, str]) -> tuple[Floats, Floats]:
        """When ranks entered and left: two float64 arrays, (iterations, ranks), of nanoseconds
        since the run began; both NaN where a rank did not get there. Error: as `samples`."""
        group = self._case(case)
        with self._reading(f"samples of case {case}"):
            entry = group["samples/entry_ns"][:].astype(float)
            leave = group["samples/exit_ns"][:].astype(float)
            lost = (entry < 0) | (leave < 0)
            entry[lost] = numpy.nan
            leave[lost] = numpy.nan
            return entry, leave

    def rounds(self, case: Union[int, str]) -> numpy.typing.NDArray[numpy.int32]:
        """Which round took each iteration: int32, (iterations,). Error: as `samples`."""
        group = self._case(case)
        with self._reading(f"samples of case {case}"):
            rounds: numpy.typing.NDArray[numpy.int32] = group["samples/round"][:]
            return rounds

    def part(self, case: Union[int, str], name: str) -> Floats:
        """A part of a step or of a load, such as "forward_ns": float64, (iterations, ranks); NaN
        where a rank did not get there. `table("parts")` has the names and units.

        Error: no such case or part, or damaged."""
        group = self._case(case)
        with self._reading(f"part {name} of case {case}"):
            parts = group.get("parts", {})
            if name not in parts:
                raise refusal(self.path, f"case {case} has no part '{name}'",
                              f"its parts are {', '.join(parts) or 'none'}")
            values: Floats = parts[name][:]
            return values

    def settings(self, case: Union[int, str]) -> dict[str, str]:
        """What the case was asked to do, such as {"bucket_cap_mb": "25"}; {} without settings.
        Error: as `samples`."""
        group = self._case(case)
        with self._reading(f"settings of case {case}"):
            if "settings" not in group:
                return {}
            return {name: _text(value) for name, value in group["settings"].attrs.items()}

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        """{name of a case: its number}"""
        return {row["name"]: row["case"] for row in self.rows("summary")}

    def _case(self, case: Union[int, str]) -> Any:
        """Its group."""
        number = self._numbers.get(case, -1) if isinstance(case, str) else operator.index(case)
        with self._reading("/cases"):
            count = len(self.file["summary"])
            if not 0 <= number < count:
                raise refusal(self.path, f"has no case {case!r}",
                              f"name one of its {count} cases, which `summary` lists")
            return self.file[f"cases/{number}"]

    # ---- Journals

    @functools.cached_property
    def _histories(self) -> dict[int, list[str]]:
        """{lifetime: names in /history, by rank}"""
        with self._reading("/history"):
            found = collections.defaultdict(list)
            group = self.file["history"]
            for name in group:
                attrs = group[name].attrs
                found[int(attrs["lifetime"])].append((int(attrs["rank"]), name))
            return {number: [name for _, name in sorted(names, key=operator.itemgetter(0))]
                    for number, names in found.items()}

    def lifetimes(self) -> list[int]:
        """Numbers of the lifetimes of workers that left journals, ascending."""
        return sorted(self._histories)

    def journals(self, lifetime: int) -> list[Journal]:
        """The journals of one of `lifetimes()`, by rank. Error: no such lifetime, or damaged."""
        if lifetime not in self._histories:
            raise refusal(self.path, f"has no journals of lifetime {lifetime!r}",
                          f"name one of {self.lifetimes()}")
        with self._reading("/history"):
            group = self.file["history"]
            scale, origin = float(group.attrs["ns_per_tick"]), int(group.attrs["origin_ticks"])
            return [Journal(group[name], scale, origin) for name in self._histories[lifetime]]

    def lifetime_of(self, case: int) -> Optional[int]:
        """The lifetime in which a case (or LAUNCH) ended: of a stress run that of its number, else
        the newest that got to the case; None without a journal of it."""
        numbers = self.lifetimes()
        if case in self._trials:
            return case if case in numbers else None
        if case == LAUNCH:
            return numbers[-1] if numbers else None
        with self._reading("/history"):
            for number in reversed(numbers):
                for name in self._histories[number]:
                    if (self.file["history"][name]["case"] == case).any():
                        return number
        return None

    @functools.cached_property
    def _trials(self) -> set[int]:
        """Cases of a stress run."""
        return {row["case"] for row in self.rows("verdicts/trials")}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
