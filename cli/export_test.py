#!/usr/bin/python3
"""`lockstep export` from the outside: every format is read by a parser that is not ours."""

import collections
import csv
import io
import json
import math
import os
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

try:
    from prometheus_client import openmetrics, parser as prometheus
    import prometheus_client.openmetrics.parser  # pylint: disable=unused-import
except ImportError:
    openmetrics = prometheus = None

_LOCKSTEP = "cli/lockstep"
_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
_RUNS = ("passing", "failing", "corrupt", "steps", "simulated")
_SAMPLE = re.compile(r'([a-z_][a-z0-9_]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})?'
                     r' (-?[0-9.]+(?:e[+-]?[0-9]+)?)')
_FORMATS = ("chrome-trace", "prometheus", "openmetrics", "junit", "jsonl", "csv", "gbench")


def path_of(name):
    return os.path.join(_DIRECTORY, name)


def simulate():
    """simulated.h5: a healthy case, and one whose rank 1 is killed."""
    names = []
    for name, fault in (("healthy", ""), ("killed", '[[fault]]\nkind = "kill"\nrank = 1\n'
                                                    'at = "iteration:3"\n')):
        names.append("--scenario=" + path_of(name + ".toml"))
        with open(path_of(name + ".toml"), "w", encoding="utf-8") as file:
            file.write('name = "own/%s"\nranks = 2\n[workload]\nkind = "all_reduce_loop"\n'
                       'rounds = 10\n%s' % (name, fault))
    done = subprocess.run(["stress/stress", "--backend=sim", "--output=" + path_of("simulated.h5"),
                           *names], stdout=subprocess.DEVNULL, check=False)
    assert done.returncode in (0, 1, 3), done.returncode


def export(*arguments):
    done = subprocess.run([_LOCKSTEP, "export"] + list(arguments), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def exported(run, form):
    code, out, err = export(path_of(run + ".h5"), "--format=" + form)
    assert (code, err) == (0, ""), (code, err)
    return out


def samples_of(text):
    """{name: [(labels, value)]} of Prometheus' text format; ValueError where it is none."""
    families, samples, done, current = {}, collections.defaultdict(list), set(), None
    for line in text.splitlines():
        comment = re.fullmatch(r"# (HELP|TYPE|UNIT) ([a-z_][a-z0-9_]*) (.+)", line)
        if comment:
            kind, name, rest = comment.groups()
            if name != current:
                if name in done or kind != "HELP":
                    raise ValueError("family %s is not in one piece: %s" % (name, line))
                done.add(name)
                current = name
            if kind == "UNIT" and not name.endswith("_" + rest):
                raise ValueError("unit %s is not in the name %s" % (rest, name))
            families[name] = kind
            continue
        sample = _SAMPLE.fullmatch(line)
        if not sample or sample.group(1) != current:
            raise ValueError("no sample of %s: %s" % (current, line))
        labels = sample.group(2) or ""
        if any(labels == other for other, _ in samples[current]):
            raise ValueError("given twice: %s" % line)
        samples[current].append((labels, float(sample.group(3))))
    return samples


class ExportTest(unittest.TestCase):
    def test_the_checker_of_metrics_rejects_what_is_wrong(self):
        head = "# HELP a_seconds text\n# TYPE a_seconds gauge\n"
        samples_of(head + 'a_seconds{case="x"} 1\n')
        for wrong in ("b 1\n", 'a_seconds{case="x} 1\n', "a_seconds NaN\n", "a_seconds 1\n" * 2,
                      'a_seconds{case="x\\y"} 1\n', "# UNIT a_seconds bytes\n"):
            with self.assertRaises(ValueError, msg=wrong):
                samples_of(head + wrong)

    def test_metrics(self):
        for run in _RUNS:
            samples = samples_of(exported(run, "prometheus"))
            self.assertIn("lockstep_run_verdict", samples)
        passing = samples_of(exported("passing", "prometheus"))
        medians = {re.search(r'case="([^"]*)"', labels).group(1): value
                   for labels, value in passing["lockstep_case_median_seconds"]}
        self.assertAlmostEqual(medians["all_reduce/8B"], 850e-9, delta=1e-15)
        self.assertAlmostEqual(medians["all_reduce/64MiB"], 21.4e-3, delta=1e-12)
        # A barrier has no bandwidth: no sample, and neither NaN.
        self.assertEqual(len(passing["lockstep_case_bus_bytes_per_second"]), 4)
        self.assertEqual(passing["lockstep_floor_copy_alone_bytes_per_second"][0][1], 9.8125e9)
        failing = samples_of(exported("failing", "prometheus"))
        verdicts = dict(failing["lockstep_run_verdict"])
        self.assertEqual([verdicts['program="bench_allreduce",verdict="%s"' % verdict]
                          for verdict in ("pass", "fail", "unknown")], [0, 1, 0])
        self.assertIn('outcome="killed"', str(failing["lockstep_rank_outcome"]))

    def test_openmetrics_ends_with_its_mark(self):
        for run in _RUNS:
            text = exported(run, "openmetrics")
            self.assertTrue(text.endswith("# EOF\n"))
            body = text[:-len("# EOF\n")]
            self.assertEqual({name: sorted(values) for name, values in samples_of(body).items()},
                             {name: sorted(values) for name, values in
                              samples_of(exported(run, "prometheus")).items()})

    @unittest.skipIf(prometheus is None, "apt-get install python3-prometheus-client")
    def test_metrics_by_the_parsers_of_prometheus(self):
        for run in _RUNS:
            text = exported(run, "prometheus")
            families = list(prometheus.text_string_to_metric_families(text))
            self.assertEqual({family.type for family in families}, {"gauge"})
            self.assertEqual({family.name for family in families}, set(samples_of(text)))
            strict = openmetrics.parser.text_string_to_metric_families(
                exported(run, "openmetrics"))
            self.assertEqual(len(list(strict)), len(families))

    def test_every_metric_is_documented_and_the_reverse(self):
        names = {name for run in _RUNS for name in samples_of(exported(run, "prometheus"))}
        with open("docs/results.md", encoding="utf-8") as file:
            documented = set(re.findall(r"`(lockstep_[a-z0-9_]+)`", file.read()))
        self.assertEqual({name for name in names if not name.startswith("lockstep_floor_")},
                         documented)

    def test_junit(self):
        for run, tests, failures in (("passing", 6, 0), ("failing", 3, 2), ("corrupt", 2, 2),
                                     ("steps", 3, 0)):
            root = xml.etree.ElementTree.fromstring(exported(run, "junit"))
            suite = root.find("testsuite")
            self.assertEqual(root.tag, "testsuites")
            for element in (root, suite):
                self.assertEqual(int(element.get("tests")), tests)
                self.assertEqual(int(element.get("failures")), failures)
            self.assertEqual(len(suite.findall("testcase")), tests)
            self.assertEqual(len(suite.findall("testcase/failure")), failures)
        lost = xml.etree.ElementTree.fromstring(exported("failing", "junit"))
        failure = lost.findall(".//failure")[-1]
        self.assertEqual(failure.get("type"), "rank_killed")
        self.assertIn("rank 1: killed, exit code 0, signal 9", failure.text)
        self.assertIn("running, no system call\n#0 main", failure.text)

    def check_event(self, event, last_ts):
        """The rules of the Trace Event Format (Duration, Instant, Metadata Events), and that every
        track is in the order of time."""
        self.assertIsInstance(event["name"], str)
        for key in ("pid", "tid"):
            self.assertIsInstance(event[key], int, event)
        if event["ph"] == "M":
            keys = {"process_name": "name", "thread_name": "name",
                    "process_sort_index": "sort_index", "thread_sort_index": "sort_index"}
            self.assertEqual([keys[event["name"]]], list(event["args"]))
            return
        self.assertTrue(math.isfinite(event["ts"]) and event["cat"], event)
        track = (event["pid"], event["tid"], event["ph"])
        self.assertGreaterEqual(event["ts"], last_ts.get(track, -math.inf))
        last_ts[track] = event["ts"]
        if event["ph"] == "X":
            self.assertTrue(math.isfinite(event["dur"]) and event["dur"] >= 0, event)
        else:
            self.assertEqual("i", event["ph"])  # no B, so no E is missing
            self.assertIn(event["s"], ("g", "p", "t"))

    def test_the_checker_of_traces_rejects_what_is_wrong(self):
        good = {"name": "a", "cat": "c", "ph": "X", "ts": 2, "dur": 1, "pid": 0, "tid": 0}
        self.check_event(good, {})
        for wrong in ({"dur": -1}, {"ts": math.nan}, {"ph": "B"}, {"ph": "i", "s": "x"},
                      {"pid": "0"}, {"ts": 1}, {"ph": "M", "name": "thread_name", "args": {}}):
            with self.assertRaises((AssertionError, KeyError), msg=wrong):
                self.check_event(dict(good, **wrong), {(0, 0, "X"): 2})

    def test_chrome_trace(self):
        for run in _RUNS:
            trace = json.loads(exported(run, "chrome-trace"))
            self.assertIn(trace["displayTimeUnit"], ("ms", "ns"))
            last_ts = {}
            for event in trace["traceEvents"]:
                self.check_event(event, last_ts)
            threads = collections.defaultdict(list)
            named = set()
            for event in trace["traceEvents"]:
                self.assertIn(event["ph"], "XMi")
                if event["ph"] == "M":
                    named.add((event["name"], event["pid"], event["tid"]))
                if event["ph"] == "X":
                    self.assertGreaterEqual(event["dur"], 0)
                    threads[event["pid"], event["tid"]].append(event)
            for (rank, thread), slices in threads.items():
                self.assertIn(("process_name", rank, 0), named)
                self.assertIn(("thread_name", rank, thread), named)
                self.check_nesting(slices)

    def test_lifetimes_of_a_simulation_follow_each_other(self):
        events = json.loads(exported("simulated", "chrome-trace"))["traceEvents"]
        spans = collections.defaultdict(list)
        for event in events:
            if event["ph"] != "M":
                spans[event["args"]["lifetime"]] += [event["ts"], event["ts"] + event.get("dur", 0)]
        self.assertEqual(sorted(spans), [0, 1])
        self.assertEqual(min(spans[0]), 0)
        self.assertAlmostEqual(min(spans[1]), max(spans[0]) + 1000, delta=0.01)
        self.assertEqual([(event["pid"], event["s"]) for event in events
                          if event["name"].startswith("fault ")], [(1, "p")])
        self.assertTrue([event for event in events if event["name"].endswith("(not finished)")])

    def check_nesting(self, slices):
        """Perfetto drops a slice that reaches out of the one around it."""
        ends = []
        for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
            while ends and ends[-1] <= event["ts"] + 1e-4:
                ends.pop()
            end = event["ts"] + event["dur"]
            self.assertTrue(not ends or end <= ends[-1] + 2e-3, event)
            ends.append(end)

    def test_chrome_trace_shows_what_never_ended_and_the_death(self):
        events = json.loads(exported("failing", "chrome-trace"))["traceEvents"]
        (collective,) = [event for event in events if event.get("cat") == "collective"]
        self.assertEqual(collective["name"], "all_reduce (not finished)")
        self.assertEqual((collective["pid"], collective["ts"], collective["dur"]), (1, 1e3, 1e3))
        self.assertEqual(collective["args"]["sequence"], 101)
        self.assertEqual(collective["args"]["bytes"], 1024)
        deaths = [event for event in events if event["name"] == "death"]
        self.assertEqual([(event["ph"], event["args"]["wait_status"]) for event in deaths],
                         [("i", 9)])

    def test_google_benchmark(self):
        report = json.loads(exported("failing", "gbench"))
        self.assertEqual(report["context"]["lockstep_run"], "1a2b3c4d")
        first = report["benchmarks"][0]
        # 800 and 798 ns on the two ranks, in each of five iterations: the slowest counts.
        self.assertEqual((first["name"], first["real_time"], first["time_unit"],
                          first["iterations"]), ("all_reduce/8B", 800, "ns", 5))
        for benchmark in report["benchmarks"]:
            for field in ("name", "run_name", "run_type", "cpu_time", "real_time", "repetitions",
                          "family_index", "repetition_index", "threads"):
                self.assertIn(field, benchmark)

    def test_the_version_is_in_every_format(self):
        for form in _FORMATS:
            if form == "csv":
                continue  # a row a case, which names the run
            self.assertIn('"lockstep_commit":"1a2b3c4"' if form == "jsonl"
                          else "1.2.3 (1a2b3c4, modified)", exported("passing", form), form)
        said = subprocess.run([_LOCKSTEP, "--version"], stdout=subprocess.PIPE, check=True)
        written = [line for line in exported("simulated", "junit").splitlines()
                   if 'name="lockstep" value=' in line]
        self.assertIn('"%s"' % said.stdout.decode("utf-8").strip().partition(" ")[2], written[0])

    def test_json_lines_are_those_of_show(self):
        done = subprocess.run([_LOCKSTEP, "show", path_of("steps.h5"), "--format=jsonl"],
                              stdout=subprocess.PIPE, check=True)
        self.assertEqual(exported("steps", "jsonl"), done.stdout.decode("utf-8"))

    def test_comma_separated_values(self):
        """As Python reads them: a row a case, and what was not measured is empty."""
        rows = list(csv.DictReader(io.StringIO(exported("passing", "csv"))))
        self.assertEqual([row["case"] for row in rows][:2], ["all_reduce/8B", "all_reduce/64MiB"])
        self.assertEqual((float(rows[0]["median_ns"]), rows[0]["verdict"]), (850, "pass"))
        self.assertEqual(rows[3]["bus_gbps"], "")
        self.assertTrue(all(len(row) == len(rows[0]) and None not in row for row in rows))

    def test_a_file_appears_whole(self):
        for form in _FORMATS:
            target = path_of("out." + form)
            code, out, err = export(path_of("passing.h5"), "--format=" + form, "--output", target)
            self.assertEqual((code, out, err), (0, "", ""))
            with open(target, encoding="utf-8") as file:
                self.assertEqual(file.read(), exported("passing", form))
        self.assertEqual([name for name in os.listdir(_DIRECTORY) if "tmp" in name], [])

    def test_wrong_input_is_one_line_and_exit_code_2(self):
        with open(path_of("text.h5"), "w", encoding="utf-8") as file:
            file.write("a,b\n")
        for arguments in (["text.h5"], ["missing.h5"], ["passing.h5", "--format=xml"], []):
            words = [path_of(word) if word.endswith(".h5") else word for word in arguments]
            if len(arguments) == 1:
                words.append("--format=junit")
            code, out, err = export(*words)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), (arguments, err))
        code, _, err = export(path_of("passing.h5"), "--format=junit", "--output", "/proc/no/file")
        self.assertEqual((code, err.count("\n")), (4, 1), err)


if __name__ == "__main__":
    subprocess.run(["results/example_runs", _DIRECTORY], check=True)
    simulate()
    unittest.main()
