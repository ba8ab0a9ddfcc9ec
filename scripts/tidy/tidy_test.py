#!/usr/bin/env python3
"""The style of the whole source tree is a test (after TigerBeetle's tidy.zig). With --write the
drawing of the rooms in ARCHITECTURE.md gets the arrows that the sources have."""

import os
import re
import shutil
import subprocess
import sys

import rooms
import rules
import units

_SUFFIXES = (".bzl", ".cc", ".cu", ".h", ".py", ".sh")
_SHELLS = (b"#!/bin/bash", b"#!/bin/sh", b"#!/usr/bin/env bash")
_NAMES = ("BUILD", "WORKSPACE")
_SKIPPED_FOLDERS = re.compile(r"\.git$|__pycache__$|runs$|bazel-")


def first_line(path):
    with open(path, "rb") as file:
        return file.readline(200)


def is_shell(path):
    return path.endswith(".sh") or first_line(path).startswith(_SHELLS)


def source_files(root):
    """Paths from the root of everything that somebody wrote: sources, build files and scripts."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _SKIPPED_FOLDERS.match(name))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                continue
            if name.endswith(_SUFFIXES) or name in _NAMES or first_line(path).startswith(b"#!"):
                found.append(os.path.relpath(path, root))
    return found


def shellcheck(root, paths):
    program = shutil.which("shellcheck")
    if not paths:
        return []
    if not program:
        print("shellcheck is not installed: the shell scripts were checked for layout only")
        return []
    result = subprocess.run(
        [program, "--format=gcc"] + paths, cwd=root, capture_output=True, text=True, check=False
    )
    return (result.stdout + result.stderr).splitlines() if result.returncode else []


def main():
    # The runfiles hold a link to the WORKSPACE file; the tree lies where the link points to.
    root = os.path.dirname(os.path.realpath("WORKSPACE"))
    paths = source_files(root)
    if "scripts/tidy/tidy_test.py" not in paths:
        print("%s does not look like the source tree" % root)
        return 1
    findings, texts = [], {}
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            texts[path] = file.read()
        findings += rules.check(path, texts[path])
    of_cc = {path: text for path, text in texts.items() if path.endswith((".cc", ".cu", ".h"))}
    findings += rules.check_types(of_cc) + rules.check_cc_complexity(of_cc)
    with open(os.path.join(root, rooms.PAGE), encoding="utf-8") as file:
        page = file.read()
    if sys.argv[1:] == ["--write"]:
        page = rooms.redrawn(of_cc, page)
        with open(os.path.join(root, rooms.PAGE), "w", encoding="utf-8") as file:
            file.write(page)
    findings += rules.check_folders(paths) + rooms.check(of_cc, page)
    findings += rules.check_openings(of_cc)
    findings += units.check(of_cc, {path: text for path, text in texts.items()
                                    if os.path.basename(path) == "BUILD"})
    findings += shellcheck(root, [path for path in paths if is_shell(os.path.join(root, path))])
    print("\n".join(findings))
    print("%d files, %d findings" % (len(paths), len(findings)))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
