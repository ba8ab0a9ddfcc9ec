"""The page: which sections a set of runs has, in which order. page.html says how they look."""

import os

import jinja2
import markupsafe

import comparison
import machine
import names
import outcomes
import sections
import units
import waiting
from figures import changes, link_matrices
from run_file import WORST

_HERE = os.path.dirname(os.path.abspath(__file__))
_MOST_RUNS_IN_DETAIL = 4  # of several: the worst, then the last
_OPEN_FIGURES = 12   # of a section; the rest can be unfolded
_WORDS = {"pass": "pass", "fail": "fail", "unknown": "inconclusive"}  # those of exit codes


def _read(name):
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read()


def _breakable(name):
    """A long name may go on in the next line after its separators."""
    for separator in "/_":
        name = markupsafe.escape(name).replace(separator, separator + markupsafe.Markup("<wbr>"))
    return name


class Document:
    """Everything that is shown, drawn once."""

    def __init__(self, runs, lockstep, title="", candidates=1):
        self.runs = runs
        names.give(runs)
        self.title = title or self._title()
        self.comparison = self._compared(lockstep, candidates) if len(runs) > 1 else None
        # An iteration of a link is no collective: its ranks are not compared.
        collectives = [run for run in runs if not run.links]
        self.curves = sections.curves(collectives)
        self.steps = [figure for run in collectives
                      for figure in self._of(run, sections.steps(run))]
        self.links = [figure for run in runs
                      for figure in self._of(run, link_matrices.figures(run))]
        self.waiting = waiting.tables(runs)
        self.spread, self.pairs = sections.spread(collectives), []
        self.in_detail = self._in_detail()
        for run in [run for run in self.in_detail if not run.links]:
            over_all, pairs = sections.details(run)
            self.spread += self._of(run, over_all)
            self.pairs += self._of(run, pairs)
        self.matrix = outcomes.matrix(runs)
        self.failures, self.others, self.left_out = outcomes.traces(runs)

    def _compared(self, lockstep, candidates):
        found = comparison.compare(lockstep, self.runs, candidates)
        return found and found._replace(figure=changes.figure(found.cases))

    def _in_detail(self):
        last = sorted(range(len(self.runs)),
                      key=lambda place: (WORST.index(self.runs[place].worst()), -place))
        return [self.runs[place] for place in sorted(last[:_MOST_RUNS_IN_DETAIL])]

    def _title(self):
        names = sorted({run.name for run in self.runs})
        return ", ".join(names) + (" (%d runs)" % len(self.runs) if len(self.runs) > 1 else "")

    def _of(self, run, figures):
        """Their titles say of which run they are, when there are several."""
        if len(self.runs) == 1:
            return figures
        return [figure._replace(title="%s (%s)" % (figure.title, run.label()))
                for figure in figures]

    def figures(self):
        found = list(self.curves + self.steps + self.links + self.spread + self.pairs)
        if self.comparison and self.comparison.figure:
            found.insert(0, self.comparison.figure)
        found += [trace.figure for trace in self.failures if trace.figure]
        return found

    def verdict(self):
        """(the worst of the runs and their comparison, in a word of exit codes, of what)"""
        worst = min((run.worst() for run in self.runs), key=WORST.index)
        compared = self.comparison.verdict if self.comparison else "pass"
        if WORST.index(compared) < WORST.index(worst):
            return compared, self.comparison.headline.partition(":")[0].lower(), "the comparison"
        if len(self.runs) == 1:
            return worst, _WORDS[worst], ""
        alike = len({run.worst() for run in self.runs}) == 1
        return worst, _WORDS[worst], "%s %d runs" % ("all" if alike else "the worst of",
                                                     len(self.runs))

    def told(self, headline):
        """Whether the banner has this first line of a finding, which is not repeated below then."""
        return any(outcomes.headline(run).startswith(headline) for run in self.runs
                   if not outcomes.failed(run))

    def _run_rows(self):
        rows = []
        for run in self.runs:
            counts = {verdict: sum(case["verdict"] == verdict for case in run.cases)
                      for verdict in WORST}
            rows.append({"run": run, "worst": run.worst(), "counts": counts,
                         "headline": outcomes.headline(run),
                         "failed": outcomes.failed(run), "unmeasured": outcomes.unmeasured(run),
                         "wrong": sum(case["wrong_elements"] for case in run.cases),
                         "checked": sum(case["checked_elements"] for case in run.cases),
                         "backends": sorted({case["backend"] for case in run.cases}),
                         "ranks": sorted({case["ranks"] for case in run.cases})})
        return rows

    def _case_tables(self):
        """Every measured case, in one table for each run and operation: [(title, rows)]."""
        tables = {}
        for run in self.runs:
            for case in run.cases:
                if case["case"] in run.trials or run.is_unmeasured(case):
                    continue
                key = (run, case["model"] or case["operation"] or "other")
                tables.setdefault(key, []).append([
                    case["name"], outcomes.outcome(run, case), outcomes.measured(case),
                    units.median_of(case),
                    units.precision_of(case),
                    units.duration(case["p99_ns"]), units.duration(case["max_ns"]),
                    units.bus_bandwidth_of(case), units.limit_of(case),
                    units.size(case["bytes"]), "%d" % case["ranks"], "%d" % case["iterations"],
                    "%d" % case["wrong_elements"]])
        return [("%s of %s" % (name, run.label()) if len(self.runs) > 1 else name, rows)
                for (run, name), rows in tables.items()]

    def html(self):
        environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                         undefined=jinja2.StrictUndefined,
                                         loader=jinja2.FileSystemLoader(_HERE))
        environment.filters.update(duration=units.duration, seconds=units.seconds,
                                   ranks=units.ranks, wrong_cells=outcomes.wrong_cells,
                                   breakable=_breakable, label_of=lambda run: run.label(),
                                   time_of_day=names.time_of_day, word=_WORDS.get,
                                   safe_svg=jinja2.filters.do_mark_safe)
        verdict, word, of = self.verdict()
        return environment.get_template("page.html").render(
            document=self, title=self.title, verdict=verdict, word=word, of=of,
            rows=self._run_rows(),
            runs=self.runs, tables=self._case_tables(), machine=machine,
            differences=machine.differences(self.runs) if len(self.runs) > 1 else [],
            plan_text=outcomes.plan_text, open_figures=_OPEN_FIGURES, style=_read("page.css"),
            script=_read("page.js"))
