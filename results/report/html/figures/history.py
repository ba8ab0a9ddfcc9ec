"""What happened on every rank before the end of a case: phases, collectives, faults."""

import units
from chart import LETTER, Canvas, Linear, upright_grid
from journal import calls_of, phases_of

_WIDTH, _LEFT, _ROW = 960, 70, 62
_MOST_RANKS = 8
_MOST_CALLS = 24  # of a rank, the last ones

_HOW = {"done": "done", "error": "error", "WAITS": "waits", "queued": "queued"}


def figure(journals, slug, faults):
    """Of the first ranks among those of one lifetime; None where it left no events."""
    journals = [journal for journal in journals if len(journal.events)][:_MOST_RANKS]
    if not journals:
        return None
    calls = [calls_of(journal) for journal in journals]
    marks = [_marks(journal, faults) for journal in journals]
    origin, last = _window(journals, calls, marks)
    drawing = _Drawing(len(journals), origin, last)
    for row in zip(journals, calls, marks):
        drawing.rank(*row)
    ends = ["rank %s: %s" % (row[0], row[1]) for row in drawing.rows if row[4] != "done"]
    alternative = "Phases and collectives of %d ranks over %s; %s." % (
        len(journals), units.duration(last - origin), "; ".join(ends) or "every collective ended")
    note = "Above phases of the program, below collectives; those that never ended are open to " \
        "the right."
    if origin > min(journal.ns[0] for journal in journals):
        note += " From the last %d collectives of the ranks on." % _MOST_CALLS
    return drawing.canvas.figure(slug, "What happened, rank by rank", alternative, note,
                                 ["rank", "what", "begins", "takes", "how"], drawing.rows, True)


def _marks(journal, faults):
    """[(word, when)] of what is no collective; `faults` names those of the scenario."""
    words = {"fault": lambda event: "fault: " + faults.get(int(event["value"]),
                                                           str(event["value"])),
             "death": lambda event: "death",
             "exit": lambda event: "exit %d" % event["value"]}
    return [(words[journal.name("kind", event)](event), at)
            for event, at in zip(journal.events, journal.ns)
            if journal.name("kind", event) in words]


def _window(journals, calls, marks):
    """(from, to) of what is shown: the last calls of every rank, and every fault."""
    cut = [some[-_MOST_CALLS].begins() for some in calls if len(some) > _MOST_CALLS]
    origin = min(cut) if cut else min(journal.ns[0] for journal in journals)
    origin = min([origin] + [at for some in marks for _, at in some])
    last = max(journal.ns[-1] for journal in journals)
    return origin, last + 0.06 * max(last - origin, 1)  # room to see what never ended


class _Drawing:
    """Rows of ranks over one axis of time."""

    def __init__(self, ranks, origin, last):
        self.canvas = Canvas(_WIDTH, 8 + _ROW * ranks + 26)
        self.origin, self.last = origin, last
        self.scale = Linear(0, last - origin, _LEFT, _WIDTH - 10, units.duration)
        self.rows = []
        bottom = 4 + _ROW * ranks
        upright_grid(self.canvas, self.scale, 4, bottom, bottom + 16)
        self.next_y = 6

    def x(self, at):
        return self.scale(max(at - self.origin, 0))

    def rank(self, journal, calls, marks):
        y = self.next_y
        self.next_y += _ROW
        self.canvas.text(0, y + 14, "rank %d" % journal.rank, "label")
        for word, start, end in phases_of(journal):
            if end >= self.origin:
                self.phase(y, word, start, end)
        for call in calls:
            if call.end is None or call.end >= self.origin:
                self.call(y, call)
        self.marks(journal.rank, y, marks)

    def phase(self, y, word, start, end):
        left, right = self.x(start), self.x(end)
        self.canvas.box(left, y + 4, right - left, 16, "phase " + word,
                        "%s: %s" % (word, units.duration(end - start)))
        if right - left > LETTER * len(word) + 4:
            self.canvas.text((left + right) / 2, y + 16, word.replace("_", " "), "on-part",
                             "middle")

    def call(self, y, call):
        start, end = call.begins(), self.last if call.end is None else call.end
        how = _HOW[call.state()]
        self.canvas.box(self.x(start), y + 24, self.x(end) - self.x(start), 16,
                        "call" if how == "done" else "call open", "%s: %s" % (call.what, how))
        self.rows.append([str(call.rank), call.what, units.duration(start - self.origin),
                          units.duration(end - start), how])

    def marks(self, rank, y, marks):
        """Words of marks that lie close together stand together."""
        groups = []
        for word, at in marks:
            if groups and self.x(at) - self.x(groups[-1][1]) < 60:
                groups[-1] = (groups[-1][0] + ", " + word, at)
            else:
                groups.append((word, at))
            self.canvas.add("path", d="M%.1f %.1fv44" % (self.x(at), y + 2), class_="event")
            self.rows.append([str(rank), word, units.duration(at - self.origin), "–", ""])
        for words, at in groups:
            left = self.x(at) < 0.8 * _WIDTH
            self.canvas.text(self.x(at) + (3 if left else -3), y + 57, words, "tick",
                             None if left else "end")
