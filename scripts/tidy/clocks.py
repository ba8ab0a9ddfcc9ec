"""No clock in a test: a test that asserts how long something took fails on a busy machine. Counts,
order, virtual time and bytes do not. That a thing takes no less than some time may be asserted: a
load only adds. So may what has a chance below 1e-6, which a comment above says ("1e-6")."""

import re

_TESTS = re.compile(r"^(?!scripts/tidy/).*(_test\.(cc|py)|contract\.h)$")
# Lines above an assertion in which the comment may stand.
_COMMENT_LINES = 6

_CC_CLOCK = r"(?:MonotonicNs\(\)|NowTicks\(\)|::now\(\)|std::clock\(\)|ProcessorSeconds\(\))"
_CC_MEASURED = re.compile(r"(\w+)\s*(?:=|\()[^;=]*?" + _CC_CLOCK + r" - ")
_CC_ASSERTED = re.compile(r"(?:EXPECT|ASSERT)_(?:LT|LE|NEAR)\(([^;]*);")

_PYTHON_CLOCK = r"time\.(?:monotonic|perf_counter|process_time|time)(?:_ns)?\(\)"
_PYTHON_MEASURED = re.compile(_PYTHON_CLOCK + r" - ")
# An upper bound in figures, of less than a day, on what is called a time.
_PYTHON_ASSERTED = re.compile(
    r"assertLess(?:Equal)?\([^#\n]*(?:seconds|elapsed|took)\b[^#\n]*, *[\d.+* ]+[,)]|"
    r"^\s*assert [^#\n]*(?:seconds|elapsed|took)\b[\"'\])]* *<=? *\d{1,4}(?:\.\d+)?\b", re.M)


def check_clocks(path, text):
    if not _TESTS.search(path):
        return []
    places = _cc_places(text) if path.endswith((".cc", ".h")) else _python_places(text)
    return ["%s:%d: asserts how long something takes: assert a count, an order, bytes or virtual "
            "time (docs/contributing.md)" % (path, line)
            for line in sorted({text.count("\n", 0, at) + 1 for at in places})
            if not _has_a_stated_chance(text, line)]


def _has_a_stated_chance(text, line):
    above = text.split("\n")[max(0, line - 1 - _COMMENT_LINES):line]
    return any("1e-6" in one for one in above)


def _cc_places(text):
    measured = {found.group(1) for found in _CC_MEASURED.finditer(text)}
    difference = re.compile(_CC_CLOCK + r" - ")
    for found in _CC_ASSERTED.finditer(text):
        names = set(re.findall(r"\w+", found.group(1)))
        if difference.search(found.group(1)) or names & measured:
            yield found.start()


def _python_places(text):
    for pattern in (_PYTHON_MEASURED, _PYTHON_ASSERTED):
        for found in pattern.finditer(text):
            start = found.group(0)
            yield found.start() + len(start) - len(start.lstrip())
