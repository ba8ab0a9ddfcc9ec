"""Journals of a run, understood: collectives from enqueue to end, phases, the last ones aligned.
What the fields mean is documented in core/journal/event.h and purpose.h."""

import collections

_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i32": 4, "i64": 8, "u8": 1,
          "f8e4m3": 1, "f8e5m2": 1}
# By number, in the words of core/journal/purpose.cc; a test compares the two.
PURPOSES = ("", "constructor: parameter count", "constructor: parameter shapes",
            "constructor: state", "bucket order of rank 0", "bucket sizes of rank 0", "bucket",
            "bitmap of used parameters", "buffers", "PowerSGD factor P of bucket",
            "PowerSGD factor Q of bucket", "join: alive", "join: throw", "join: common rank",
            "join: should sync", "join: shadow bucket", "join: final rank", "join: final state",
            "statistics of batch norm", "gradient of batch norm", "barrier",
            "step of the program", "graph replay: call", "graph replay: bucket",
            "graph capture: call")
_WITH_DETAIL = {3, 6, 8, 9, 10, 15, 17, 18, 19, 22, 23, 24}


class Call:
    """One collective of one rank: what it was, and when it was queued, begun and over (ns)."""

    def __init__(self, rank, journal, event):
        self.rank = rank
        self.sequence = int(event["sequence"])
        self.communicator = int(event["communicator"])
        self.collective = journal.name("collective", event)
        self.type = journal.name("type", event)
        self.count = int(event["count"])
        self.bytes = self.count * _BYTES.get(self.type, 0)
        self.purpose = purpose_of(int(event["value"]))
        self.enqueued = self.start = self.end = None
        self.failed = False
        self.what = self.collective
        if self.collective != "barrier":
            self.what += " %s[%d]" % (self.type, self.count)
        if self.purpose:
            self.what += ", " + self.purpose

    def begins(self):
        return self.enqueued if self.start is None else self.start

    def short(self):
        return self.purpose or self.collective

    def state(self):
        if self.failed:
            return "error"
        if self.end is not None:
            return "done"
        return "WAITS" if self.start is not None else "queued"


def purpose_of(value):
    """Of an event's `value`: 8 bits purpose, 24 bits detail, 32 bits iteration + 1."""
    bits = value & (2**64 - 1)
    number, detail = bits & 0xff, (bits >> 8) & 0xffffff
    if number >= len(PURPOSES):
        return "unknown"
    return "%s %d" % (PURPOSES[number], detail) if number in _WITH_DETAIL else PURPOSES[number]


def calls_of(journal):
    """All calls of a journal in the order of their beginning."""
    calls = collections.OrderedDict()
    for event, at in zip(journal.events, journal.ns):
        kind = journal.name("kind", event)
        if kind not in ("enqueue", "start", "end", "error"):
            continue
        key = (int(event["communicator"]), int(event["sequence"]))
        if key not in calls:
            if kind in ("end", "error"):
                continue  # its beginning was overwritten
            calls[key] = Call(journal.rank, journal, event)
        call = calls[key]
        if kind == "enqueue":
            call.enqueued = at
        elif kind == "start":
            call.start = at
        else:
            call.end = at
            call.failed = kind == "error"
    return list(calls.values())


def phases_of(journal):
    """[(word, from, to)] of the program; the last one reaches to the last event."""
    begun = [(journal.name("phase", event), at) for event, at in zip(journal.events, journal.ns)
             if journal.name("kind", event) == "phase"]
    ends = [at for _, at in begun[1:]] + ([journal.ns[-1]] if begun else [])
    return [(word, start, end) for (word, start), end in zip(begun, ends)]


def aligned(journals, communicator, before, after, apart=()):
    """(rows, columns): the calls of all ranks side by side around the first sequence that not all
    of them left alike. A row is (sequence, differs, [cell of each column]); "" where a rank has
    none. A column is the ranks that have the same cells, in the order of `journals`; those of
    `apart` share none with others."""
    by_rank = {journal.rank: {call.sequence: call for call in calls_of(journal)
                              if call.communicator == communicator} for journal in journals}
    # {sequence: [call of each rank, or None]}
    rows = {sequence: [calls.get(sequence) for calls in by_rank.values()]
            for sequence in sorted(set().union(*by_rank.values()))}
    broken = next((sequence for sequence, calls in rows.items() if not _left_alike(calls)), None)
    middle = broken if broken is not None else max(rows, default=0)
    shown = {sequence: list(map(_cell, calls)) for sequence, calls in rows.items()
             if middle - before <= sequence <= middle + after}
    columns = {}  # {cells: ranks}
    for rank, cells in zip(by_rank, zip(*shown.values())):
        columns.setdefault((rank in apart, cells), []).append(rank)
    return [(sequence, sequence == broken, [cells[place] for _, cells in columns])
            for place, sequence in enumerate(shown)], list(columns.values())


def _cell(call):
    return (call.what, call.state()) if call else ("", "")


def _left_alike(calls):
    """All ranks left the same call."""
    return all(call and call.state() == "done" for call in calls) and \
        len({(call.collective, call.type, call.count) for call in calls}) == 1


def communicators(journals):
    return sorted({call.communicator for journal in journals for call in calls_of(journal)})
