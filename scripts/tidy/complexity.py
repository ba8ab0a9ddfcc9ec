"""Cyclomatic complexity: one, and one more for each place where a function goes on in two ways."""

import ast
import re

_ONE = (ast.AsyncFor, ast.ExceptHandler, ast.For, ast.If, ast.IfExp, ast.While, ast.match_case)
# Logical operators and conditional expressions have spaces, references to values have not.
_CC_BRANCH = re.compile(r"\b(?:if|for|while|case|catch)\b| && | \|\| | \? ")
_CC_TEXT = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'')


def of_python(function):
    """Of a node; functions within it count."""
    found = 1
    for node in ast.walk(function):
        if isinstance(node, _ONE):
            found += 1
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
    return found


def of_cc(text):
    """Of a function as clang-format leaves it; comments and literals are none of it."""
    # A condition may begin a line, and end one.
    text = re.sub(r"\s+", " ", _CC_TEXT.sub("0", text))
    return 1 + len(_CC_BRANCH.findall(text))


def name_of_cc(text):
    """As its definition has it: "Coordinator::OnReport"."""
    found = re.search(r"([\w:~]*(?:operator\W{1,3}|\w))\(", text)
    return found[1] if found else ""
