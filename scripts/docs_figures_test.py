#!/usr/bin/python3
"""No figure in the documentation is a matter of faith: each is claimed by docs_figures.py and equal
to its source, or stands in a paragraph that refers to an observation in results/reference/."""
import glob
import os
import re
import sys
import unittest

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.path.insert(0, os.path.join(TREE, "scripts"))
# pylint: disable=wrong-import-position
import docs_figures

PAGES = ["README.md", "ARCHITECTURE.md", "stress/README.md", "stress/causes.md",
         "datasets/README.md", "results/schema.md", "results/compare/README.md",
         "results/report/README.md", "scripts/qualification/README.md",
         *sorted(glob.glob("docs/*.md", root_dir=TREE))]
GENERATED = {"docs/options.md"}  # by docs_test
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)\n]*\)|https?://\S+", re.DOTALL)


def read(path):
    with open(os.path.join(TREE, path), encoding="utf-8") as file:
        return file.read()


def source(name):
    if not name.startswith("help:"):
        return read(name)
    text = read("docs/options.md")
    return text.split("\n## %s\n" % name[len("help:"):])[1].split("\n## ")[0]


def values(groups):
    """Numbers as numbers, so that 0.08 and .080 are one."""
    return [float(text.replace(",", "")) if NUMBER.fullmatch(text) else text for text in groups]


def blank(match):
    """Of the same length, so that places stay; a line stays a line."""
    return re.sub(r"[^\n]", " ", match.group(0))


def paragraphs(text):
    """(where it begins, heading, paragraph)."""
    heading, place = "", 0
    for part in re.split(r"(\n\s*\n)", text):
        title = re.match(r"#+ (.*)", part)
        heading = title.group(1) if title else heading
        yield place, heading, part
        place += len(part)


def unclaimed(page, text):
    """['page:line: figure: its line'] of the figures that nothing holds."""
    left = text
    for name, pattern, _, _ in docs_figures.CLAIMS:
        if name == page:
            left = re.sub(pattern, blank, left)
    left = re.sub(docs_figures.EXIT_CODES, blank, CODE.sub(blank, left))
    for pattern in docs_figures.NAMES:
        left = re.sub(pattern, blank, left, flags=re.MULTILINE)
    tested = {heading for name, heading, _ in docs_figures.TESTED if name == page}
    found = []
    for place, heading, paragraph in paragraphs(left):
        observed = "results/reference/" in text[place:place + len(paragraph)]
        if "" in tested or heading in tested or observed:
            continue
        for number in NUMBER.finditer(paragraph):
            line = text.count("\n", 0, place + number.start())
            found.append("%s:%d: %s: %s" % (page, line + 1, number.group(0),
                                            text.splitlines()[line].strip()))
    return found


class FiguresTest(unittest.TestCase):
    def test_every_claim_holds(self):
        for page, said, origin, written in docs_figures.CLAIMS:
            with self.subTest(page=page, said=said):
                here, there = re.search(said, read(page)), re.search(written, source(origin))
                self.assertTrue(here, "the page says it no longer: drop or mend the claim")
                self.assertTrue(there, "%s says it no longer: mend the claim" % origin)
                self.assertEqual(values(here.groups()), values(there.groups()), origin)

    def test_every_figure_is_claimed_or_observed(self):
        found = [one for page in PAGES if page not in GENERATED
                 for one in unclaimed(page, read(page))]
        self.assertEqual(found, [], "\nclaim each in scripts/docs_figures.py, or refer to its "
                         "observation in results/reference/ in the same paragraph")

    def test_exit_codes_are_those_of_the_source(self):
        body = re.search(r"enum class ExitCode[^{]*{(.*?)};", read("core/base/status.h"), re.DOTALL)
        codes = set(re.findall(r"=\s*(\d+)", body.group(1)))
        self.assertGreater(len(codes), 6)
        told = {(page, code) for page in PAGES
                for sentence in re.findall(docs_figures.EXIT_CODES, CODE.sub(blank, read(page)))
                for code in re.findall(r"\b\d+\b", sentence)}
        self.assertEqual({one for one in told if one[1] not in codes}, set())

    def test_what_reads_a_page_is_there(self):
        for page, _, test in docs_figures.TESTED:
            self.assertIn(os.path.basename(page), read(test))

    def test_observations_are_there(self):
        for page in PAGES:
            for path in re.findall(r"`(results/reference/[\w./-]+)`", read(page)):
                text = read(path)
                self.assertRegex(text, r"\b20\d\d-\d\d-\d\d\b", "%s has no date" % path)
                self.assertRegex(text, r"processor|GPU", "%s names no machine" % path)

    def test_an_unclaimed_figure_is_found(self):
        text = ("It waits 7 s for rank 3.\n\nTook 9 s: `results/reference/x.md`.\n\n"
                "`a 5` and 0.25.\n")
        self.assertEqual([one.split(": ")[:2] for one in unclaimed("x.md", text)],
                         [["x.md:1", "7"], ["x.md:5", "0.25."]])


if __name__ == "__main__":
    unittest.main()
