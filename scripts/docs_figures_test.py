#!/usr/bin/python3
"""No figure in the documentation is a matter of faith: it stands between marks and is what its
source says (docs_figures.py), or in a paragraph that refers to an observation."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath("WORKSPACE")), "scripts"))
# pylint: disable=wrong-import-position
from docs_figures import FIGURES, OPTIONS, PAGES, SPAN, WORDS, read, value

CODE = re.compile(r"`[^`\n]*`|\]\([^)\n]*\)|https?://\S+")
# A number with a unit is a figure. Those of a definition are none: a quantile, an interval.
FIGURE = re.compile(r"(?<![\w.,-])\d[\d,.]*\s(?:%|ppm|[num]?s|min|h|minutes|seconds|hours|times"
                    r"|bytes|[KMGT]?i?B(?:/s)?)(?!\w)")
DEFINED = re.compile(r"\b(?:95|99|100) %")
# (page, heading) of sections of which another test, which reads the page, holds every figure.
TESTED = {("docs/compare.md", "How often it is wrong"):
          "results/compare/compare_simulation_test.cc"}


def unbound(page, text):
    """['page: figure: its line'] of the figures that nothing holds."""
    heading, found = "", []
    for paragraph in re.split(r"\n\s*\n", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        title = re.match(r"#+ (.*)", paragraph)
        heading = title.group(1) if title else heading
        if (page, heading) in TESTED or "results/reference/" in paragraph:
            continue
        for line in DEFINED.sub("", SPAN.sub("#", CODE.sub("``", paragraph))).splitlines():
            found += ["%s: %s: %s" % (page, figure.group(0), line.strip())
                      for figure in FIGURE.finditer(line)]
    return found


class FiguresTest(unittest.TestCase):
    def test_every_figure_is_what_its_source_says(self):
        wrong = ["%s: %s is %s, and %s says %s" % (page, name, said, FIGURES[name][0], value(name))
                 for page in PAGES for name, said in SPAN.findall(read(page))
                 if said != value(name)]
        self.assertEqual(wrong, [], "write them anew: bazel run //scripts:docs_test -- --write")

    def test_every_figure_is_used(self):
        used = {span.group(1) for page in PAGES for span in SPAN.finditer(read(page))}
        self.assertEqual(used, set(FIGURES))

    def test_every_number_with_a_unit_is_bound_or_observed(self):
        self.assertEqual([one for page in PAGES if page not in (OPTIONS, WORDS)
                          for one in unbound(page, read(page))], [],
                         "\ngive each a row in scripts/docs_figures.py and marks in the page, or "
                         "refer to its observation in results/reference/ in the same paragraph")

    def test_exit_codes_are_those_of_the_source(self):
        body = re.search(r"enum class ExitCode[^{]*{(.*?)};", read("core/base/status.h"), re.DOTALL)
        codes = set(re.findall(r"=\s*(\d+)", body.group(1)))
        table = read("README.md").split("| exit code | meaning |")[1].split("\n\n")[0]
        self.assertEqual(set(re.findall(r"^\| (\d+) \|", table, re.MULTILINE)), codes)
        for page in set(PAGES) - {OPTIONS}:
            told = set(re.findall(r"exit codes? (\d+)", read(page)))
            self.assertEqual(told - codes, set(), page)

    def test_what_reads_a_page_is_there(self):
        for (page, heading), test in TESTED.items():
            self.assertIn(page, read(test))
            self.assertIn("# %s\n" % heading, read(page))

    def test_observations_are_there(self):
        for page in PAGES:
            for path in re.findall(r"results/reference/[\w-]+\.md", read(page)):
                text = read(path)
                self.assertRegex(text, r"\b20\d\d-\d\d-\d\d\b", "%s has no date" % path)
                self.assertRegex(text, r"processor|GPU", "%s names no machine" % path)

    def test_an_unbound_figure_is_found(self):
        text = ("It waits 7 s for rank 3.\n\nTook 9 s: `results/reference/x.md`.\n\n"
                "`a 5 s`, of 95 %, <!--=lost_s-->20<!--/--> s and 0.25 ms.\n")
        self.assertEqual([one.split(": ")[:2] for one in unbound("x.md", text)],
                         [["x.md", "7 s"], ["x.md", "0.25 ms"]])


if __name__ == "__main__":
    unittest.main()
