"""What became of the cases: the matrix of scenarios by backend, and the traces of failures."""

import collections
import json
import re

import units
from figures import history
from journal import aligned, communicators
from lockstep import LAUNCH

_MARK = {"pass": "✓", "fail": "✗", "unknown": "?"}
_WORST = ("fail", "unknown", "pass")
_MOST_TRACES = 200
_MOST_FINDINGS = 50

Cell = collections.namedtuple("Cell", "verdict mark words anchor")
Trace = collections.namedtuple(
    "Trace", "anchor case backend verdict expected why findings ranks tables figure wrong")


def anchor_of(run, case):
    return "trace-%s-%s" % (run.key, "launch" if case == LAUNCH else case)


def _words(run, number):
    """What came of it in a few words: the cause, or how all ranks ended."""
    findings = run.findings_of.get(number)
    if findings:
        return "%s, %s" % (findings[0].cause.replace("_", " "),
                           units.ranks(findings[0].culprits))
    others = [one for one in run.outcomes.get(number, ()) if one.outcome != "finished"]
    if others:
        return "%s %s" % (units.ranks([one.rank for one in others]), others[0].outcome)
    return "finished" if run.outcomes.get(number) else run.cases[number]["stopped_by"]


def wants_trace(run, number):
    """Whatever did not pass, and what was found where it was expected."""
    if number == LAUNCH:  # what broke a case is told there
        told = set().union(*(_messages(run, case["case"]) for case in run.cases))
        return run.launch_verdict != "pass" and bool(_messages(run, LAUNCH) - told)
    return run.cases[number]["verdict"] != "pass" or bool(run.findings_of.get(number))


def matrix(runs):
    """{columns: [text], rows: [(scenario, [[Cell]])]} of stress runs; None without any."""
    columns, rows = [], collections.OrderedDict()
    for run in runs:
        for number in sorted(run.trials):
            case = run.cases[number]
            column = "%s, %d ranks" % (case["backend"], case["ranks"])
            if column not in columns:
                columns.append(column)
            name = case["name"].split("/repetition:")[0]
            cell = Cell(case["verdict"], _MARK[case["verdict"]], _words(run, number),
                        anchor_of(run, number) if wants_trace(run, number) else None)
            rows.setdefault(name, collections.defaultdict(list))[column].append(cell)
    if not rows:
        return None
    counts = [(verdict, _MARK[verdict], sum(cell.verdict == verdict for row in rows.values()
                                            for cells in row.values() for cell in cells))
              for verdict in _MARK]
    return {"columns": columns, "counts": counts,
            "rows": [(name, [row.get(column, []) for column in columns])
                     for name, row in rows.items()]}


def _expected(run, number):
    trial = run.trials.get(number)
    if not trial or not trial["expected_outcomes"]:
        return ""
    text = trial["expected_outcomes"].replace(",", ", ").replace("|", " or ")
    if trial["expected_cause"]:
        text += " by %s" % trial["expected_cause"].replace("_", " ")
    if trial["expected_culprits"]:
        text += " of " + units.ranks(trial["expected_culprits"].split(","))
    return text


def _lifetime(run, number):
    """The newest lifetime stands for a case that broke the launch as soon as it was met."""
    found = run.lifetime_of(number)
    if found is None and number not in run.trials and _messages(run, number):
        found = run.lifetime_of(LAUNCH)
    return found


def _messages(run, number):
    return {finding.message for finding in run.findings_of.get(number, ())}


def _tables(run, lifetime):
    """The last collectives of the ranks side by side, one table a communicator."""
    if lifetime is None:
        return []
    journals = run.journals(lifetime)[:16]
    tables = []
    for communicator in communicators(journals)[:8]:
        rows, ranks = aligned(journals, communicator, 5, 3)
        tables.append(("world" if communicator == 0 else "communicator %d" % communicator, ranks,
                       rows))
    return tables


def _trace(run, number):
    case = run.cases[number] if number != LAUNCH else None
    trial = run.trials.get(number)
    lifetime = _lifetime(run, number)
    return Trace(
        anchor_of(run, number), case["name"] if case else "The launch of %s" % run.label(),
        "%s, %d ranks" % (case["backend"], case["ranks"]) if case else "",
        case["verdict"] if case else run.launch_verdict, _expected(run, number),
        trial["why"] if trial else "", run.findings_of.get(number, [])[:_MOST_FINDINGS],
        [one for one in run.outcomes.get(number, ()) if one.outcome != "finished"],
        _tables(run, lifetime), history.figure(run, lifetime, "history-" + anchor_of(run, number),
                                                run.faults(number)),
        [row for row in run.wrong if row["case"] == number][:20])


def traces(runs):
    """(failures, others, left out): traces of what did not pass, the worst first; of what was found
    as expected; and how many more there would be."""
    wanted = []
    for run in runs:
        verdicts = [(LAUNCH, run.launch_verdict)] + [(case["case"], case["verdict"])
                                                     for case in run.cases]
        wanted += [(_WORST.index(verdict), run, number) for number, verdict in verdicts
                   if wants_trace(run, number)]
    wanted.sort(key=lambda one: one[0])
    found = [_trace(run, number) for _, run, number in wanted[:_MOST_TRACES]]
    failures = [trace for trace in found if trace.verdict != "pass"]
    return failures, [trace for trace in found if trace.verdict == "pass"], \
        len(wanted) - len(found)


def wrong_cells(rows):
    return [[row[name] for name in ("rank", "iteration", "operation", "element", "expected",
                                    "got")] for row in rows]


def headline(run):
    """The first line that a person reads, without the verdict if it begins with one."""
    text = run.summary_line or next(
        (found[0].headline for _, found in sorted(run.findings_of.items()) if found),
        "%d cases" % len(run.cases))
    text = re.sub(r"^(PASS|FAIL|UNKNOWN): ", "", text)
    return text + ("" if run.complete else " (incomplete: saved on the way out)")


def plan_text(run, most=20000):
    """The plan, indented, unless it is long."""
    text = json.dumps(run.plan, indent=1, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + "\n… (%d characters more)" % (
        len(text) - most)
