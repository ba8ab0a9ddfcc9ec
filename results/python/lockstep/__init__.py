"""Run files of Lockstep in Python: numpy arrays and pandas frames.

    import lockstep
    run = lockstep.open("RUN.h5")
    run.verdict == "pass"
    run.summary[["name", "median_ns"]]
    run.samples(0).max(axis=1)

docs/results.md has more examples; results/schema.md documents every table and column. Times are
nanoseconds, sizes bytes, bandwidths 1e9 bytes a second: a column's name ends with its unit.
Everything that goes wrong with a file is a `lockstep.Error`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Union

from .journal import Journal
from .run import LAUNCH, TABLES, Finding, Run
from .seal import SCHEMA_VERSION, Error

if TYPE_CHECKING:
    import pandas

# A link to the number of the source tree; packages hold a copy.
__version__ = Path(__file__).with_name("VERSION").read_text(encoding="utf-8").strip()

__all__ = ["Error", "Finding", "Journal", "LAUNCH", "Run", "SCHEMA_VERSION", "TABLES",
           "__version__", "frame", "open"]


def open(path: Union[str, os.PathLike[str]], *, verify: bool = True) -> Run:
    """The run of a file. Tables are read when they are asked for; `with` closes the file.

    verify: compares the length and the checksum with the file's first line, at tens of megabytes
    a second. False is for large files that were verified before, and for files changed on purpose.

    Error: not a run file, of a newer schema than SCHEMA_VERSION, truncated, changed or unreadable.
    """
    return Run(path, verify=verify)


def frame(runs: Iterable[Union[str, os.PathLike[str], Run]],
          facts: Sequence[str] = ()) -> pandas.DataFrame:
    """One frame of many runs, a row a case and run: the columns of `Run.summary`, behind those
    that say which run it is: `file`, `run` (its id), `program`, `started_at`, and one for each of
    `facts`, which are keys of `Run.environment` such as "host/0/cpu_model"; "" where a run lacks
    it. Paths are opened, verified and closed again; runs stay open.

    Error: as `open`, and when there is no run at all.
    """
    import pandas
    if isinstance(runs, (str, os.PathLike, Run)):
        runs = [runs]
    frames = []
    for one in runs:
        if isinstance(one, Run):
            frames.append(_with_run(one, facts))
            continue
        with open(one) as run:
            frames.append(_with_run(run, facts))
    if not frames:
        raise Error("no run files: nothing to make a frame of; name at least one")
    return pandas.concat(frames, ignore_index=True)


def _with_run(run: Run, facts: Sequence[str]) -> pandas.DataFrame:
    which = {"file": run.path, "run": run.id, "program": run.name, "started_at": run.started_at}
    which.update((fact, run.environment.get(fact, "")) for fact in facts)
    table = run.summary.copy()
    for place, (name, value) in enumerate(which.items()):
        table.insert(place, name, value)
    return table
