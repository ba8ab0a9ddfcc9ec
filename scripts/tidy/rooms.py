"""The drawing of the rooms in ARCHITECTURE.md against the includes of the sources.

Each line of the drawing is a room, what it is for, and what it includes, less what it reaches
through those. Rooms include only rooms on lines below their own, so there is no circle. Pure.
"""
import collections
import itertools
import re
import textwrap

import exceptions
from vendor_headers import includes_of, vendor_of

PAGE = "ARCHITECTURE.md"
_SUITES = ("bench", "stress", "watch")  # they know nothing of each other
# A line without a room goes on with the arrows of the one above.
_ROW = re.compile(r"│ (\S*) *([^→]*?)(?: *→ (.*?))? *│$")
_FRAME = re.compile(r"([┌├└](?:─ .+? )?)─*([┐┤┘])$")
_ARROWS_COLUMNS = 57
_WRITE = "; scripts/tidy/tidy_test.py --write draws the arrows anew"


def room_of(path):
    """The first two folders, of cli the first; what is in testing/ belongs to its room."""
    folders = [folder for folder in path.split("/")[:-1] if folder != "testing"]
    return "/".join(folders[:1] if folders[:1] == ["cli"] else folders[:2])


def drawn(page):
    """{room: rooms that its arrows lead to}, from the top down."""
    arrows = {}
    for line in page.split("\n"):
        row = _ROW.match(line)
        if row:
            room = row[1] or room
            arrows.setdefault(room, []).extend((row[3] or "").split())
    return arrows


def includes_between(texts):
    """{(room, room): [(path, line)]} of sources and of tests, and what leads to no room."""
    rooms = {room_of(path) for path in texts}
    sources, tests = collections.defaultdict(list), collections.defaultdict(list)
    strays = []
    for path, text in sorted(texts.items()):
        arrows = tests if "_test." in path or "/testing/" in path else sources
        for number, quote, header in includes_of(text):
            if quote != '"' or vendor_of(header):
                continue
            if room_of(header) not in rooms:
                strays.append('%s:%d: "%s" is in no room' % (path, number, header))
            elif room_of(header) != room_of(path):
                arrows[room_of(path), room_of(header)].append((path, number))
    return dict(sources), dict(tests), strays


def way(arrows, start, end):
    """The rooms from start to end along {room: rooms}, both with it; none: []."""
    ways = [[start]]
    seen = {start}
    for one in ways:
        for after in sorted(set(arrows.get(one[-1], ())) - seen):
            ways.append(one + [after])
            seen.add(after)
            if after == end:
                return ways[-1]
    return []


def reduced(pairs):
    """{room: rooms}: the arrows of [(room, room)] that no way along the others replaces."""
    arrows = collections.defaultdict(set)
    for start, end in pairs:
        arrows[start].add(end)
    return {start: sorted(end for end in ends
                          if not way({**arrows, start: ends - {end}}, start, end))
            for start, ends in arrows.items()}


def check(texts, page, known=exceptions.ARROWS):
    """{path: text} of all C++ and the page; `known`: {"room -> room": includes} against it."""
    arrows = drawn(page)
    sources, tests, strays = includes_between(texts)
    findings = strays + _check_rows(texts, arrows) + _check_known(sources, tests, known) + \
        _check_arrows(sources, tests, arrows, known)
    return findings or _check_drawn(sources, arrows, known)


def _check_rows(texts, arrows):
    rooms = {room_of(path) for path in texts}
    return ["%s:1: the drawing lacks %s: give it a line above all that it includes%s"
            % (PAGE, room, _WRITE) for room in sorted(rooms - set(arrows))] + \
        ["%s:1: the drawing has %s, which is no room" % (PAGE, room)
         for room in sorted(set(arrows) - rooms)]


def _check_known(sources, tests, known):
    counts = collections.Counter()
    for pair, places in [*sources.items(), *tests.items()]:
        counts["%s -> %s" % pair] += len(places)
    return ["scripts/tidy/exceptions.py:1: %s has %d includes, not %d: write that"
            % (arrow, counts[arrow], most)
            for arrow, most in sorted(known.items()) if counts[arrow] < most]


def _check_arrows(sources, tests, arrows, known):
    lines = {room: line for line, room in enumerate(arrows)}
    others = collections.defaultdict(set)
    for start, end in sources:
        if "%s -> %s" % (start, end) not in known:
            others[start].add(end)
    findings = []
    for pair in sorted(set(sources) | set(tests)):
        places = sources.get(pair, []) + tests.get(pair, [])
        if not set(pair) <= set(lines) or len(places) <= known.get("%s -> %s" % pair, 0):
            continue  # a room that the drawing lacks is told already
        back = way(others, *reversed(pair)) if pair in sources else []
        what = _wrong(pair, lines, back, pair not in sources or way(arrows, *pair))
        findings += ["%s:%d: %s" % (*place, what) for place in places if what]
    return findings


def _wrong(pair, lines, back, is_drawn):
    start, end = pair
    if back:
        return "a circle: %s" % " -> ".join([start, *back])
    if lines[start] > lines[end]:
        return "%s -> %s runs up in the drawing of %s" % (start, end, PAGE)
    suites = {room.split("/")[0] for room in pair} & set(_SUITES)
    if len(suites) > 1:
        return "%s must not include %s" % (start, end)
    return "" if is_drawn else "%s -> %s is not drawn in %s%s" % (start, end, PAGE, _WRITE)


def _check_drawn(sources, arrows, known):
    wanted = _wanted(sources, known)
    return ["%s:1: the drawing has %s -> %s, which %s%s"
            % (PAGE, room, end, "no source includes" if (room, end) not in sources
               else "follows from its other arrows", _WRITE)
            for room, ends in arrows.items() for end in ends if end not in wanted.get(room, [])]


def _wanted(sources, known):
    return reduced(pair for pair in sources if "%s -> %s" % pair not in known)


def redrawn(texts, page, known=exceptions.ARROWS):
    """The page with the arrows of the sources; rooms, their order and what they are for stay."""
    wanted = _wanted(includes_between(texts)[0], known)
    rows = [row for row in map(_ROW.match, page.split("\n")) if row and row[1]]
    form = "│ %%-%ds  %%-%ds  %%-%ds │" % (*(
        max((len(row[part]) for row in rows), default=0) for part in (1, 2)), _ARROWS_COLUMNS + 2)
    return "\n".join(after for line in page.split("\n") for after in _redrawn(line, wanted, form))


def _redrawn(line, wanted, form):
    """The lines in place of one."""
    row, frame = _ROW.match(line), _FRAME.match(line)
    if row:
        arrows = textwrap.wrap(" ".join(wanted.get(row[1], [])), _ARROWS_COLUMNS)
        cells = itertools.zip_longest([row[1]], [row[2]], arrows, fillvalue="")
        return [form % (room, what, part and "→ " + part)
                for room, what, part in cells] if row[1] else []
    if frame:
        width = len(form % ("", "", "")) - 1
        return [frame[1].ljust(width, "─") + frame[2]]
    return [line]
