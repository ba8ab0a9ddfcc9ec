"""One training step as it happened: what each rank computed, and what travelled meanwhile."""

import collections

import numpy

import units
from chart import LETTER, Canvas, Figure, Linear
from journal import calls_of
from steps import CLASS_OF, word_of

_WIDTH, _LEFT = 960, 70
_MOST_RANKS = 8
_MOST_STEPS = 4

Lane = collections.namedtuple("Lane", "rank computed calls")  # computed: [(class, word, from, to)]


def _computed(run, case, iteration, ranks, samples):
    """The parts of each rank's step, one after the other from its entry on."""
    names = [part.name for part in run.parts[case["case"]] if part.name in CLASS_OF]
    values = {name: run.part_values(case["case"], name) for name in names}
    lanes = {}
    for rank in ranks:
        at, pieces = samples.entry[iteration, rank], []
        for name in names:
            length = values[name][iteration, rank]
            if not numpy.isnan(length) and length > 0:
                pieces.append((CLASS_OF[name], word_of(name), at, at + length))
                at += length
        lanes[rank] = pieces
    return lanes


def _lanes(run, case):
    """(iteration, [Lane]) of the step nearest to the median whose collectives are all in the
    journals; None when the journals, which keep the newest events, have none."""
    samples = run.samples(case["case"])
    lifetime = run.lifetime_of(case["case"])
    if lifetime is None or not samples.spent.size:
        return None
    journals = {journal.rank: journal for journal in run.journals(lifetime)}
    ranks = [rank for rank in range(samples.spent.shape[1]) if rank in journals][:_MOST_RANKS]
    calls = {rank: calls_of(journals[rank]) for rank in ranks}
    slowest = samples.spent.max(axis=1)
    known = [k for k in numpy.argsort(numpy.abs(slowest - numpy.nanmedian(slowest)))
             if not numpy.isnan(slowest[k]) and
             all(journals[rank].ns[0] <= samples.entry[k, rank] for rank in ranks)]
    if not known or not ranks:
        return None
    step = int(known[0])
    computed = _computed(run, case, step, ranks, samples)
    return step, [Lane(rank, computed[rank],
                       [call for call in calls[rank]
                        if call.start is not None and call.end is not None and
                        samples.entry[step, rank] <= call.start <= samples.exit[step, rank]])
                  for rank in ranks]


def step(run, case, slug):
    found = _lanes(run, case)
    if found is None:
        return None
    iteration, lanes = found
    origin = min(lane.computed[0][2] for lane in lanes if lane.computed)
    last = max([piece[3] for lane in lanes for piece in lane.computed] +
               [call.end for lane in lanes for call in lane.calls])
    canvas = Canvas(_WIDTH, 30 + 76 * len(lanes) + 30)
    x = Linear(0, (last - origin) * 1.01, _LEFT, _WIDTH - 10, units.duration)
    bottom = 26 + 76 * len(lanes)
    for value, label in x.ticks():
        canvas.line(x(value), 22, x(value), bottom, "grid")
        canvas.text(x(value), bottom + 16, label, "tick", "middle")
    at = _LEFT
    for name, class_ in CLASS_OF.items():
        canvas.box(at, 2, 12, 12, class_)
        canvas.text(at + 16, 12, word_of(name))
        at += 30 + LETTER * len(word_of(name))
    canvas.box(at, 2, 12, 12, "call")
    canvas.text(at + 16, 12, "collective")
    for place, lane in enumerate(lanes):
        _draw_lane(canvas, x, origin, 30 + 76 * place, lane)
    title = "A step of %s" % case["name"]
    alternative = "%s, iteration %d, on %d ranks. %s" % (title, iteration, len(lanes), " ".join(
        "Rank %d computes %s; %d collectives take %s, %s of it after the computation." % (
            lane.rank, units.duration(_length(lane, ("p1", "p2"))), len(lane.calls),
            units.duration(sum(call.end - call.start for call in lane.calls)),
            units.duration(_length(lane, ("p3",)))) for lane in lanes))
    rows = [[str(lane.rank), what, units.duration(start - origin), units.duration(end - start), how]
            for lane in lanes
            for what, start, end, how in
            [(word, start, end, "") for _, word, start, end in lane.computed] +
            [(call.what, call.start, call.end, units.size(call.bytes)) for call in lane.calls]]
    note = "The step nearest to the median whose events the journals still hold (iteration %d)." \
        % iteration
    return Figure(slug, title, canvas.svg(title, alternative), alternative, note,
                  ["rank", "what", "begins", "takes", "size"], rows, True)


def _length(lane, classes):
    return sum(end - start for class_, _, start, end in lane.computed if class_ in classes)


def _draw_lane(canvas, x, origin, y, lane):
    canvas.text(0, y + 14, "rank %d" % lane.rank, "label")
    canvas.text(0, y + 31, "program", "tick")
    canvas.text(0, y + 55, "collectives", "tick")
    for class_, word, start, end in lane.computed:
        left, right = x(start - origin), x(end - origin)
        canvas.box(left, y + 18, right - left, 18, class_,
                   "%s: %s" % (word, units.duration(end - start)))
    for call in lane.calls:
        left, right = x(call.start - origin), x(call.end - origin)
        canvas.box(left, y + 42, right - left, 18, "call", "%s, %s: %s" % (
            call.what, units.size(call.bytes), units.duration(call.end - call.start)))
        short = call.short()
        if right - left > LETTER * len(short):
            canvas.text((left + right) / 2, y + 55, short, "on-call", "middle")


def figures(run):
    steps = [case for case in run.cases if case["iterations"] > 0 and
             any(part.name == "backward_ns" for part in run.parts[case["case"]])]
    drawn = [step(run, case, "step-%s-%d" % (run.key, case["case"]))
             for case in steps[:_MOST_STEPS]]
    return [figure for figure in drawn if figure]
