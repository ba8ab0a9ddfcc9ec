"""How ranks that did not finish ended, and where they stood: each distinct stack of a thread once,
with its ranks, as results/report/stacks.cc prints them. The text is core/agent's: "asleep in pause
[do_sys]; stack: a@b < c@d; thread 2: …"."""

import collections
import re

import units

# ends: [(ranks, how they ended)]; stacks: [(ranks, what they did, frames)], the culprits' first and
# main threads before others; frames is "" where only the state or an error is known.
Ranks = collections.namedtuple("Ranks", "ends stacks")

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_THREAD = re.compile(r"; (?:stack|thread \d+): ")
_MAYBE_CUT = 1800  # files keep the beginning of a long text: its last frame may be a part of one


def _split(evidence):
    """(what the process did, [frames of each thread], the main one first)."""
    state, *threads = _THREAD.split(evidence)
    if threads and len(evidence) > _MAYBE_CUT:
        threads[-1] = threads[-1].rpartition(" < ")[0] or threads[-1]
    return state, threads


def _end(outcome):
    words = outcome.outcome
    if outcome.signal:
        words += ", signal %d" % outcome.signal
    if outcome.exit_code:
        words += ", exit code %d" % outcome.exit_code
    return words + (": %s" % outcome.where if outcome.where else "")


def _ends(outcomes):
    found = {}
    for one in outcomes:
        found.setdefault(_end(one), []).append(one)
    rows = []
    for words, alike in found.items():
        silent = max(one.silent for one in alike)
        words += ", silent %.1f s" % silent if silent >= 0.05 else ""
        rows.append((units.ranks([one.rank for one in alike]), words))
    return rows


def _stacks(outcomes):
    mains, others = {}, {}  # {frames without addresses: (ranks, words, frames)}
    for one in outcomes:
        state, threads = _split(one.evidence)
        for place, frames in enumerate(threads or [""] * bool(state)):
            groups, words = (others, "another thread") if place else (mains, state)
            key = _ADDRESS.sub("0x", frames or state)
            groups.setdefault(key, ([], words, frames))[0].append(one.rank)
    return [(units.ranks(ranks), words, frames.replace(" < ", "\n"))
            for ranks, words, frames in [*mains.values(), *others.values()]]


def of(outcomes, culprits):
    """Ranks, or None when all finished."""
    lost = sorted((one for one in outcomes if one.outcome != "finished"),
                  key=lambda one: (one.rank not in culprits, one.rank))
    return Ranks(_ends(lost), _stacks(lost)) if lost else None
