"""Checks one Bazel target's includes against its own headers and those of its direct dependencies.

The aspect in layering.bzl runs it once a target: a header that arrives only through the dependency
of a dependency, or by luck from the system's include path, is an error here although it compiles.
"""

import argparse
import sys

from vendor_headers import includes_of, vendor_of


def violations(path, text, headers, vendors):
    """One line for each include in `text` that no direct dependency provides."""
    found = []
    for number, quote, header in includes_of(text):
        where = "%s:%d: " % (path, number)
        vendor = vendor_of(header)
        if vendor and not vendors & set(vendor[0].split(" or ")):
            found.append(where + "<%s> needs a direct dependency on %s" % (header, vendor[0]))
        elif not vendor and quote == '"' and header not in headers:
            found.append(where + '"%s" is no header of this target or a direct dependency' % header)
    return found


def main():
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--label", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--source", action="append", default=[])
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--vendor", action="append", default=[])
    arguments = parser.parse_args()
    found = []
    for path in arguments.source:
        with open(path, encoding="utf-8") as file:
            found += violations(path, file.read(), set(arguments.header), set(arguments.vendor))
    for line in found:
        print("%s: %s" % (arguments.label, line), file=sys.stderr)
    with open(arguments.out, "w", encoding="utf-8") as out:
        out.write("".join(line + "\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
