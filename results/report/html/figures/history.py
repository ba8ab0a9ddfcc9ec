"""What happened on every rank before the end of a case: phases, collectives, faults."""

import units
from chart import LETTER, Canvas, Figure, Linear
from journal import calls_of, phases_of

_WIDTH, _LEFT, _ROW = 960, 70, 62
_MOST_RANKS = 8
_MOST_CALLS = 24  # of a rank, the last ones

_HOW = {"done": "done", "error": "error", "WAITS": "waits", "queued": "queued"}


def marks_of(journal, faults):
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
        for value, label in self.scale.ticks():
            self.canvas.line(self.scale(value), 4, self.scale(value), bottom, "grid")
            self.canvas.text(self.scale(value), bottom + 16, label, "tick", "middle")

    def x(self, at):
        return self.scale(max(at - self.origin, 0))

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


def figure(run, lifetime, slug, faults):
    """Of one lifetime of the workers; None where it left no events."""
    journals = [] if lifetime is None else [
        journal for journal in run.journals(lifetime) if len(journal.events)][:_MOST_RANKS]
    if not journals:
        return None
    calls = [calls_of(journal) for journal in journals]
    marks = [marks_of(journal, faults) for journal in journals]
    origin, last = _window(journals, calls, marks)
    drawing = _Drawing(len(journals), origin, last)
    for place, journal in enumerate(journals):
        y = 6 + _ROW * place
        drawing.canvas.text(0, y + 14, "rank %d" % journal.rank, "label")
        for word, start, end in phases_of(journal):
            if end >= origin:
                drawing.phase(y, word, start, end)
        for call in calls[place]:
            if call.end is None or call.end >= origin:
                drawing.call(y, call)
        drawing.marks(journal.rank, y, marks[place])
    title = "What happened, rank by rank"
    ends = ["rank %s: %s" % (row[0], row[1]) for row in drawing.rows if row[4] != "done"]
    alternative = "Phases and collectives of %d ranks over %s; %s." % (
        len(journals), units.duration(last - origin), "; ".join(ends) or "every collective ended")
    note = "Above phases of the program, below collectives; those that never ended are open to " \
        "the right."
    if origin > min(journal.ns[0] for journal in journals):
        note += " From the last %d collectives of the ranks on." % _MOST_CALLS
    return Figure(slug, title, drawing.canvas.svg(title, alternative), alternative, note,
                  ["rank", "what", "begins", "takes", "how"], drawing.rows, True)
