"""The rules of style that a program can check: pure functions from (path, text) to findings."""

import ast
import collections
import re

import complexity
import exceptions
from clocks import check_clocks
from vendor_headers import includes_of, vendor_of

MAX_LINES = 400
MAX_COLUMNS = 100
MAX_FUNCTION_LINES = 70
MAX_COMPLEXITY = 15
MAX_FOLDER_FILES = 40
MAX_LINES_WITHOUT_OPENING = 60

_VAGUE = ("common", "helper", "helpers", "manager", "misc", "util", "utils")


def check(path, text):
    """Every finding of every rule, as 'path:line: what is wrong'."""
    findings = check_layout(path, text) + check_name(path) + check_clocks(path, text)
    if path.endswith((".cc", ".cu", ".h")):
        findings += check_cc_functions(path, text) + check_includes(path, text)
        findings += check_namespace(path, text) + check_stderr(path, text)
    if path.endswith(".h"):
        findings += check_guard(path, text)
    if path.endswith(".py"):
        findings += check_python_functions(path, text)
    return findings


def check_layout(path, text):
    lines = text.split("\n")
    findings = []
    if len(lines) - 1 > MAX_LINES:
        findings.append("%s:1: %d lines, %d at most" % (path, len(lines) - 1, MAX_LINES))
    for number, line in enumerate(lines, start=1):
        where = "%s:%d: " % (path, number)
        if len(line) > MAX_COLUMNS:
            findings.append(where + "%d columns, %d at most" % (len(line), MAX_COLUMNS))
        if "\t" in line:
            findings.append(where + "a tab")
        if line != line.rstrip():
            findings.append(where + "space at the end of the line")
    if text and not text.endswith("\n"):
        findings.append("%s:%d: no newline at the end" % (path, len(lines)))
    return findings


def check_name(path):
    words = re.split(r"[/._]", path)
    vague = [word for word in words if word in _VAGUE]
    return ["%s:1: the name '%s' says nothing" % (path, word) for word in vague]


def cc_functions(text):
    """(first line, text) of those at namespace level and in classes, up to their closing brace."""
    start, margin, lines = 0, "", text.split("\n")
    for number, line in enumerate(lines, start=1):
        if re.match(r"(class|struct)\b[^;]*\{$", line):
            margin = "  "
        elif line == "};":
            margin = ""
        if re.match(margin + r"[A-Za-z_:~\[]", line):
            previous, start = start, number
            if re.match(margin + r"(namespace|template|public|private|protected)\b", line):
                start = previous if line.startswith(margin + "template") else 0
        elif line == margin + "}" and start:
            yield start, "\n".join(lines[start - 1:number])
            start = 0


def check_cc_functions(path, text):
    return [finding for start, function in cc_functions(text)
            for finding in _too_long(path, start, function.count("\n") + 1)]


def check_python_functions(path, text):
    findings = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            findings += _too_long(path, node.lineno, node.end_lineno - node.lineno + 1)
            findings += _too_complex(path, node.lineno, complexity.of_python(node))
    return findings


def _too_long(path, line, length):
    return ["%s:%d: function of %d lines, %d at most" % (path, line, length, MAX_FUNCTION_LINES)] \
        if length > MAX_FUNCTION_LINES else []


def _too_complex(path, line, found, most=MAX_COMPLEXITY):
    return ["%s:%d: function of complexity %d, %d at most" % (path, line, found, most)] \
        if found > most else []


def check_cc_complexity(texts, known=exceptions.FUNCTIONS):
    """{path: text} of the whole tree; `known`: {name of a function that is too complex: how}."""
    findings, counts = [], collections.Counter()
    for path, text in sorted(texts.items()):
        for start, function in cc_functions(text):
            name, found = complexity.name_of_cc(function), complexity.of_cc(function)
            counts[name] = max(counts[name], found)
            findings += _too_complex(path, start, found, known.get(name, MAX_COMPLEXITY))
    return findings + _needless(known, counts, MAX_COMPLEXITY)


def check_folders(paths, known=exceptions.FOLDERS):
    """Of all sources; tests and what they share are no part of a folder."""
    counts = collections.Counter(
        folder for folder, _, name in (path.rpartition("/") for path in paths)
        if "_test." not in name and "testing" not in folder.split("/"))
    most = {folder: known.get(folder, MAX_FOLDER_FILES) for folder in counts}
    return ["%s:1: %d files in a folder, %d at most" % (folder, count, most[folder])
            for folder, count in counts.items() if count > most[folder]] + \
        _needless(known, counts, MAX_FOLDER_FILES)


def check_openings(texts, known=exceptions.OPENINGS):
    """{path: text} of the whole tree: a longer .cc begins with what it is for and relies on."""
    bare = [path for path, text in sorted(texts.items())
            if path.endswith((".cc", ".cu")) and text.count("\n") > MAX_LINES_WITHOUT_OPENING
            and not re.match(r"// +\S+( +\S+){3}", text)]
    counts = collections.Counter(path.rpartition("/")[0] for path in bare)
    return ["%s:1: begins without a sentence on what it is for and what it relies on" % path
            for path in bare if counts[path.rpartition("/")[0]] >
            known.get(path.rpartition("/")[0], 0)] + _needless(known, counts, 0)


def _needless(known, counts, most):
    return ["scripts/tidy/exceptions.py:1: %s needs no exception: take it off the list" % name
            for name in sorted(known) if counts[name] <= most]


def check_stderr(path, text):
    """fmt throws where standard error takes nothing, which ends a watcher or an agent."""
    return ["%s:%d: fmt::print to stderr throws: call PrintStderr" % (path, number)
            for number, line in enumerate(text.split("\n"), start=1)
            if re.search(r"fmt::print\(\s*stderr", line) and not line.lstrip().startswith("//")]


def check_includes(path, text):
    """A vendor's header belongs to its rooms; rooms.py holds the others against the drawing."""
    vendors = [(number, header, vendor_of(header)) for number, _, header in includes_of(text)]
    return ["%s:%d: <%s> belongs to %s" % (path, number, header, " and ".join(vendor[1]))
            for number, header, vendor in vendors
            if vendor and vendor[1] and not path.startswith(vendor[1])]


def namespace_of(path):
    """That of its folder; core/base is lockstep itself, and testing/ belongs to its room."""
    room = re.sub(r"/testing$", "", path.rpartition("/")[0])
    for folder, name in (("core/base", ""), ("core/", "")):
        if room.startswith(folder):
            room = name + room[len(folder):]
            break
    return "::".join(["lockstep"] + [part for part in room.split("/") if part])


def check_namespace(path, text):
    wanted = namespace_of(path)
    return ["%s:%d: namespace %s, %s is that of its folder" % (path, number, found[1], wanted)
            for number, line in enumerate(text.split("\n"), start=1)
            if (found := re.match(r"namespace (lockstep[\w:]*) \{$", line))
            and found[1] != wanted and "struct " not in text.split("\n")[number]]


def unnamed_lines(text):
    """Numbers of the lines within unnamed namespaces."""
    found, inside = set(), False
    for number, line in enumerate(text.split("\n"), start=1):
        inside = line == "namespace {" or (inside and line != "}  // namespace")
        if inside:
            found.add(number)
    return found


def check_types(texts):
    """{path: text} of the whole tree: a type is defined once in a namespace."""
    seen, findings = {}, []
    for path, text in sorted(texts.items()):
        unnamed = unnamed_lines(text)
        for number, line in enumerate(text.split("\n"), start=1):
            found = re.match(r"(?:class|struct|union|enum(?: class)?) (\w+)(?!\w|::)[^;]*\{", line)
            if not found or number in unnamed:
                continue
            name = "%s::%s" % (namespace_of(path), found[1])
            first = seen.setdefault(name, path)
            if first != path:
                findings.append("%s:%d: %s is defined in %s, too" % (path, number, name, first))
    return findings


def check_guard(path, text):
    return [] if "\n#pragma once\n" in "\n" + text else ["%s:1: #pragma once is missing" % path]
