"""What became of the cases: the matrix of scenarios by backend, and the traces of failures."""

import collections
import json
import re

import stacks
import units
from figures import history
from journal import aligned, communicators
from lockstep import LAUNCH
from run_file import WORST

_MARK = {"pass": "✓", "fail": "✗", "unknown": "?"}
_MOST_TRACES = 200
_MOST_COLUMNS = 16  # of the last collectives side by side
_MOST_NAMED = 5
_MOST_FINDINGS = 50
# Of `stopped_by`: why a case was never measured, and what its interval is worth.
_REASONS = {"not_run": "not begun", "not_kept": "records not kept",
            "time_budget": "no time left", "": "no reason is known"}
_MEASURED = {"precision": "precise", "iterations": "", "cut_short": "cut short"}

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
    case = run.cases[number]
    if run.is_open(case):  # the run was ended, or out of time: its first line says so
        return False
    return case["verdict"] != "pass" or bool(run.findings_of.get(number))


def matrix(runs):
    """{columns: [text], rows: [(scenario, [[Cell]])]} of stress runs; None without any. Columns
    with what is worst come first, where a phone shows them."""
    columns, rows = {}, {}  # columns: {text: how good the worst of it is}
    for run in runs:
        for number in sorted(run.trials):
            case = run.cases[number]
            column = "%s, %d ranks" % (case["backend"], case["ranks"])
            columns[column] = min(columns.get(column, len(WORST)), WORST.index(case["verdict"]))
            name = case["name"].split("/repetition:")[0]
            cell = Cell(case["verdict"], _MARK[case["verdict"]], _words(run, number),
                        anchor_of(run, number) if wants_trace(run, number) else None)
            rows.setdefault(name, collections.defaultdict(list))[column].append(cell)
    if not rows:
        return None
    columns = sorted(columns, key=columns.get)
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


def _tables(journals, culprits):
    """The last collectives of the ranks side by side, one table a communicator: its name, columns
    (ranks, whether a culprit is among them) and rows."""
    tables = []
    for communicator in communicators(journals)[:8]:
        rows, columns = aligned(journals, communicator, 5, 3, culprits)
        tables.append(("world" if communicator == 0 else "communicator %d" % communicator,
                       [(ranks, bool(culprits.intersection(ranks)))
                        for ranks in columns[:_MOST_COLUMNS]],
                       [(sequence, broken, cells[:_MOST_COLUMNS])
                        for sequence, broken, cells in rows]))
    return tables


def _journals(run, lifetime, culprits):
    """The culprits' first."""
    journals = [] if lifetime is None else run.journals(lifetime)
    return sorted(journals, key=lambda journal: journal.rank not in culprits)


def _trace(run, number):
    case = run.cases[number] if number != LAUNCH else None
    trial = run.trials.get(number)
    findings = run.findings_of.get(number, [])[:_MOST_FINDINGS]
    culprits = set().union(*(finding.culprits for finding in findings))
    journals = _journals(run, _lifetime(run, number), culprits)
    return Trace(
        anchor_of(run, number), case["name"] if case else "The launch of %s" % run.label(),
        "%s, %d ranks" % (case["backend"], case["ranks"]) if case else "",
        case["verdict"] if case else run.launch_verdict, _expected(run, number),
        trial["why"] if trial else "", findings,
        stacks.of(run.outcomes.get(number, ()), culprits), _tables(journals, culprits),
        history.figure(journals, "history-" + anchor_of(run, number), run.faults(number)),
        [row for row in run.wrong if row["case"] == number][:20])


def traces(runs):
    """(failures, others, left out): traces of what did not pass, the worst first; of what was found
    as expected; and how many more there would be."""
    wanted = []
    for run in runs:
        verdicts = [(LAUNCH, run.launch_verdict)] + [(case["case"], case["verdict"])
                                                     for case in run.cases]
        wanted += [(WORST.index(verdict), run, number) for number, verdict in verdicts
                   if wants_trace(run, number)]
    wanted.sort(key=lambda one: one[0])
    found = [_trace(run, number) for _, run, number in wanted[:_MOST_TRACES]]
    failures = [trace for trace in found if trace.verdict != "pass"]
    return failures, [trace for trace in found if trace.verdict == "pass"], \
        len(wanted) - len(found)


def wrong_cells(rows):
    return [[row[name] for name in ("rank", "iteration", "operation", "element", "expected",
                                    "got")] for row in rows]


def unmeasured(run):
    """("3 of 5 cases; no time left (1), not begun (2)", their names); None without any."""
    cases = [case for case in run.cases if run.is_unmeasured(case)]
    if not cases:
        return None
    reasons = collections.Counter(_REASONS.get(case["stopped_by"], case["stopped_by"])
                                  for case in cases)
    why = ", ".join(reason if len(reasons) == 1 else "%s (%d)" % (reason, count)
                    for reason, count in sorted(reasons.items()))
    return "%d of %d case%s; %s" % (len(cases), len(run.cases), "s" if len(run.cases) > 1 else "",
                                    why), [case["name"] for case in cases]


def outcome(run, case):
    """What became of a case, in the terminal's words: "pass", "fail, rank 1 killed"."""
    if case["verdict"] != "pass" and not run.is_open(case):
        others = [one for one in run.outcomes.get(case["case"], ()) if one.outcome != "finished"]
        culprits = set().union(*(found.culprits for found in run.findings_of.get(case["case"], ())))
        others.sort(key=lambda one: one.rank not in culprits)
        if others:
            return "%s, rank %d %s" % (case["verdict"], others[0].rank, others[0].outcome)
    return "unfinished" if run.is_open(case) else case["verdict"]


def measured(case):
    """Whether its interval is as narrow as was asked; "" where nobody asked."""
    return _MEASURED.get(case["stopped_by"], "imprecise") if case["iterations"] else ""


def failed(run):
    """Traces' anchors and names of cases that failed, if they are several: each has its own first
    line then. (shown, how many more)"""
    cases = [case for case in run.cases if case["verdict"] == "fail"]
    if len(cases) < 2:
        return None
    return [(anchor_of(run, case["case"]), case["name"]) for case in cases[:_MOST_NAMED]], \
        len(cases) - len(cases[:_MOST_NAMED])


def headline(run):
    """The first line that a person reads, without the verdict if it begins with one."""
    text = run.summary_line or next(
        (found[0].headline for _, found in sorted(run.findings_of.items()) if found),
        "%d cases" % len(run.cases))
    text = re.sub(r"^(PASS|FAIL|UNKNOWN|INCONCLUSIVE): ", "", text)
    # Where nothing else is wrong, the text says that it was ended.
    return text + ("" if run.complete or run.verdict == "unknown" else " (incomplete)")


def plan_text(run, most=20000):
    """The plan, indented, unless it is long."""
    text = json.dumps(run.plan, indent=1, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + "\n… (%d characters more)" % (
        len(text) - most)
