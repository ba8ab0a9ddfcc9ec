"""What one rank did in one lifetime of its worker: the events of a table /history/n."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy
import numpy.typing

if TYPE_CHECKING:
    import pandas

_ENUMERATIONS = ("kind", "collective", "type", "reduction", "phase")


class Journal:
    """Events, oldest first.

    rank, lifetime: whose; lifetimes of a rank's workers count from 0.
    missed: how many earlier events are not here.
    events: structured array of shape (events,), the columns of /history/n.
    ns: float64, (events,): nanoseconds since the run began, on the coordinator's clock.
    """

    def __init__(self, dataset: Any, ns_per_tick: float, origin: int) -> None:
        self.rank = int(dataset.attrs["rank"])
        self.lifetime = int(dataset.attrs["lifetime"])
        self.missed = int(dataset.attrs["missed"])
        self.events: numpy.typing.NDArray[Any] = dataset[:]
        self._names: dict[str, dict[int, str]] = {
            column: {value: name for name, value in
                     h5py.check_enum_dtype(dataset.dtype[column]).items()}
            for column in _ENUMERATIONS}
        ticks = self.events["ticks"].astype(numpy.int64) - numpy.int64(origin)
        self.ns: numpy.typing.NDArray[numpy.float64] = ticks * ns_per_tick

    def name(self, column: str, event: Any) -> str:
        """The word of an enumeration of an event: "unknown" for a number that has none.
        column: "kind", "collective", "type", "reduction" or "phase"."""
        return self._names[column].get(int(event[column]), "unknown")

    def frame(self) -> pandas.DataFrame:
        """A row an event: `ns`, then the columns of `events`, enumerations as words."""
        import pandas
        columns: dict[str, Any] = {"ns": self.ns}
        for column in self.events.dtype.names or ():
            values = self.events[column]
            columns[column] = [self._names[column].get(value, "unknown")
                               for value in values.tolist()] if column in self._names else values
        return pandas.DataFrame(columns)
