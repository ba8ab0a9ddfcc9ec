"""How ranks that did not finish ended, and where they stood: each distinct stack once, with its
ranks. The text is core/agent's: "asleep in pause [do_sys]; stack: a@b < c@d; thread 2: …"."""

import collections
import re

import units

# ends: [(ranks, how they ended)]; text: what the first of them did, then a frame a line; whole:
# that has a stack.
Stack = collections.namedtuple("Stack", "ranks ends text whole")

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_MAYBE_CUT = 1800  # files keep the beginning of a long text: its last frame may be a part of one


def _split(evidence):
    """(what the process did, its stack or "")."""
    state, _, stack = evidence.partition("; stack: ")
    return state, stack


def _key(outcome):
    """Addresses, and shares of a processor, tell no stacks apart."""
    state, stack = _split(outcome.evidence)
    if len(outcome.evidence) > _MAYBE_CUT:
        stack = stack.rpartition(" < ")[0] or stack
    return _ADDRESS.sub("0x", stack) if stack else (state, _end(outcome))


def _end(outcome):
    words = outcome.outcome
    if outcome.signal:
        words += ", signal %d" % outcome.signal
    if outcome.exit_code:
        words += ", exit code %d" % outcome.exit_code
    return words + (", at %s" % outcome.where if outcome.where else "")


def _ends(outcomes):
    found = {}
    for one in outcomes:
        found.setdefault(_end(one), []).append(one)
    rows = []
    for words, alike in found.items():
        silent = max(one.silent for one in alike)
        rows.append((units.ranks([one.rank for one in alike]),
                     words + (", silent %s" % units.seconds(round(silent, 1)) if silent > 0
                              else "")))
    return rows


def of(outcomes, culprits):
    """[Stack] of the ranks that did not finish, the culprits' first."""
    groups = {}
    for one in sorted(outcomes, key=lambda one: (one.rank not in culprits, one.rank)):
        if one.outcome != "finished":
            groups.setdefault(_key(one), []).append(one)
    found = []
    for alike in groups.values():
        state, stack = _split(alike[0].evidence)
        frames = stack.replace("; thread ", "\nthread ").replace(" < ", "\n  < ")
        found.append(Stack(units.ranks([one.rank for one in alike]), _ends(alike),
                           (state + "\n" + frames).strip(), bool(stack)))
    return found
