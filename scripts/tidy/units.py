"""Sources of a target are one translation unit (scripts/bazel/cc.bzl). So a helper of one source
may win an overload against its neighbour's of that name. Neither compiler nor reader is told."""

import ast
import os
import re

import complexity
import rules

_RULES = ("cc_binary", "cc_library", "cc_test")


def _strings(node):
    """Those of a list, or of lists that are added; what is chosen by select is no one unit."""
    if isinstance(node, ast.BinOp):
        return _strings(node.left) + _strings(node.right)
    if not isinstance(node, ast.List):
        return []
    return [each.value for each in node.elts if isinstance(each, ast.Constant)]


def sources_of(path, text):
    """{target: sources} of a BUILD file, as paths from the root."""
    found = {}
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call) or getattr(call.func, "id", "") not in _RULES:
            continue
        words = {word.arg: word.value for word in call.keywords}
        if not isinstance(words.get("name"), ast.Constant):
            continue
        sources = [name[2:].replace(":", "/") if name.startswith("//")
                   else os.path.join(os.path.dirname(path), name.lstrip(":"))
                   for name in _strings(words.get("srcs")) if name.endswith(".cc")]
        found[words["name"].value] = sources
    return found


def helpers(text):
    """{name: first line} of functions that only this source names."""
    found, unnamed = {}, rules.unnamed_lines(text)
    starts = {start for start, _ in rules.cc_functions(text)}
    for number, line in enumerate(text.split("\n"), start=1):
        begins = number in starts or (line.endswith("}") and re.match(r"[A-Za-z].*\) .*\{", line))
        if not begins or line[0] == " " or not (number in unnamed or line.startswith("static ")):
            continue
        name = complexity.name_of_cc(line)
        if name and "::" not in name and not re.match(r"TEST|[A-Z]+_", name):  # macros
            found.setdefault(name, number)
    return found


def check(texts, builds):
    """{path: text} of the sources and of the BUILD files."""
    findings = set()
    for path, text in builds.items():
        for sources in sources_of(path, text).values():
            seen = {}
            for source in sources:
                for name, line in helpers(texts.get(source, "")).items():
                    first = seen.setdefault(name, source)
                    if first != source:
                        findings.add("%s:%d: %s() is in %s, too, which is compiled in one unit"
                                     % (source, line, name, first))
    return sorted(findings)
