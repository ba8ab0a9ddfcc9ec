"""One training step as it happened: what each rank computed, and what travelled meanwhile."""

import collections

import numpy
import units
from chart import LETTER, Canvas, Linear, upright_grid
from figures.parts import PART_CLASS, word_of
from journal import calls_of

_WIDTH, _LEFT, _LANE = 960, 70, 76
_MOST_RANKS = 8

_Lane = collections.namedtuple("_Lane", "rank computed calls")  # computed: [_Piece]
_Piece = collections.namedtuple("_Piece", "class_ word start end")


def figure(run, case):
    """Of the step nearest to the median whose collectives are all in the journals; None when the
    journals, which keep the newest events, have none."""
    lifetime = run.lifetime_of(case["case"])
    samples = run.times(case["case"])
    if lifetime is None or not samples.spent.size:
        return None
    journals = {journal.rank: journal for journal in run.journals(lifetime)}
    ranks = [rank for rank in range(samples.spent.shape[1]) if rank in journals][:_MOST_RANKS]
    iteration = _iteration(samples, {rank: journals[rank].ns[0] for rank in ranks})
    if iteration is None:
        return None
    computed = _computed(run, case, iteration, ranks, samples)
    lanes = [_Lane(rank, computed[rank],
                   _calls_within(journals[rank], samples.entry[iteration, rank],
                                 samples.exit[iteration, rank])) for rank in ranks]
    origin = min(lane.computed[0].start for lane in lanes if lane.computed)
    title = "A step of %s" % case["name"]
    alternative = "%s, iteration %d, on %d ranks. %s" % (
        title, iteration, len(lanes), " ".join(map(_told, lanes)))
    note = "The step nearest to the median whose events the journals still hold (iteration %d)." \
        % iteration
    return _draw(lanes, origin).figure(
        "step-%s-%d" % (run.key, case["case"]), title, alternative, note,
        ["rank", "what", "begins", "takes", "size"], _rows(lanes, origin), True)


def _iteration(samples, first_events):
    """`first_events`: {rank: when the first event of its journal was}."""
    if not first_events:
        return None
    slowest = samples.spent.max(axis=1)
    for k in numpy.argsort(numpy.abs(slowest - numpy.nanmedian(slowest))):
        if not numpy.isnan(slowest[k]) and \
                all(at <= samples.entry[k, rank] for rank, at in first_events.items()):
            return int(k)
    return None


def _computed(run, case, iteration, ranks, samples):
    """The parts of each rank's step, one after the other from its entry on."""
    names = [part.name for part in run.parts[case["case"]] if part.name in PART_CLASS]
    values = {name: run.part(case["case"], name)[iteration] for name in names}
    lanes = {}
    for rank in ranks:
        at, pieces = samples.entry[iteration, rank], []
        for name in names:
            length = values[name][rank]
            if not numpy.isnan(length) and length > 0:
                pieces.append(_Piece(PART_CLASS[name], word_of(name), at, at + length))
                at += length
        lanes[rank] = pieces
    return lanes


def _calls_within(journal, start, end):
    return [call for call in calls_of(journal) if call.start is not None and call.end is not None
            and start <= call.start <= end]


def _told(lane):
    return "Rank %d computes %s; %d collectives take %s, %s of it after the computation." % (
        lane.rank, units.duration(_length(lane, ("p1", "p2"))), len(lane.calls),
        units.duration(sum(call.end - call.start for call in lane.calls)),
        units.duration(_length(lane, ("p3",))))


def _length(lane, classes):
    return sum(piece.end - piece.start for piece in lane.computed if piece.class_ in classes)


def _rows(lanes, origin):
    rows = []
    for lane in lanes:
        found = [(piece.word, piece.start, piece.end, "") for piece in lane.computed]
        found += [(call.what, call.start, call.end, units.size(call.bytes)) for call in lane.calls]
        rows += [[str(lane.rank), what, units.duration(start - origin),
                  units.duration(end - start), size] for what, start, end, size in found]
    return rows


def _draw(lanes, origin):
    last = max(one.end for lane in lanes for one in lane.computed + lane.calls)
    canvas = Canvas(_WIDTH, 30 + _LANE * len(lanes) + 30)
    x = Linear(0, (last - origin) * 1.01, _LEFT, _WIDTH - 10, units.duration)
    bottom = 26 + _LANE * len(lanes)
    upright_grid(canvas, x, 22, bottom, bottom + 16)
    _legend(canvas)
    for place, lane in enumerate(lanes):
        _draw_lane(canvas, lambda at: x(at - origin), 30 + _LANE * place, lane)
    return canvas


def _legend(canvas):
    at = _LEFT
    for name, class_ in PART_CLASS.items():
        canvas.box(at, 2, 12, 12, class_)
        canvas.text(at + 16, 12, word_of(name))
        at += 30 + LETTER * len(word_of(name))
    canvas.box(at, 2, 12, 12, "call")
    canvas.text(at + 16, 12, "collective")


def _draw_lane(canvas, x, y, lane):
    canvas.text(0, y + 14, "rank %d" % lane.rank, "label")
    canvas.text(0, y + 31, "program", "tick")
    canvas.text(0, y + 55, "collectives", "tick")
    for piece in lane.computed:
        left, right = x(piece.start), x(piece.end)
        canvas.box(left, y + 18, right - left, 18, piece.class_,
                   "%s: %s" % (piece.word, units.duration(piece.end - piece.start)))
    for call in lane.calls:
        left, right = x(call.start), x(call.end)
        canvas.box(left, y + 42, right - left, 18, "call", "%s, %s: %s" % (
            call.what, units.size(call.bytes), units.duration(call.end - call.start)))
        short = call.short()
        if right - left > LETTER * len(short):
            canvas.text((left + right) / 2, y + 55, short, "on-call", "middle")
