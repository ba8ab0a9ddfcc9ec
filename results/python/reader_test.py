#!/usr/bin/python3
"""Python's reader on files that the build writes: as the C++ reader has them, and as it refuses
them."""

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy
import pandas

sys.path.insert(0, "results/python")
# pylint: disable=wrong-import-position
import lockstep  # noqa: E402
from lockstep import digits  # noqa: E402

_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
_EXAMPLES = ("passing", "failing", "corrupt", "steps", "links", "watched")
_OLD = "results/store/testdata"
_SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(10**6)))


def path_of(name):
    return os.path.join(_DIRECTORY, name + ".h5")


def all_files():
    return [path_of(name) for name in _EXAMPLES] + [
        os.path.join(_OLD, name) for name in sorted(os.listdir(_OLD))]


def read(name):
    return lockstep.open(path_of(name))


def show(path, *options):
    """(exit code, what `lockstep show` prints, what it refuses the file with)"""
    done = subprocess.run(["cli/lockstep", "show", path, *options], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr.strip().removeprefix("lockstep: ")


def equal(one, other):
    """NaN is null in JSON."""
    return other is None and numpy.isnan(one) or one == other


class DigitsTest(unittest.TestCase):
    def test_figures_have_the_digits_of_their_interval(self):
        with open("core/base/testdata/figures.txt", encoding="utf-8") as file:
            rows = [line.split() for line in file if not line.startswith("#")]
        self.assertGreater(len(rows), 20)
        for value, half_width, text in rows:
            self.assertEqual(digits.figure(float(value), float(half_width)), text)

    def test_a_figure_can_have_a_least_step(self):
        self.assertEqual([digits.figure(value, digits.half_width_of_step(step)) for value, step in (
            (0.826, 0.01), (4.24, 0.1), (87.4, 1))], ["0.83", "4.2", "87"])

    def test_changes_have_a_sign(self):
        self.assertEqual([digits.change(*pair) for pair in (
            (5.14, 4), (-20.04, 0.3), (-0.04, 3), (numpy.nan,))], ["+5", "-20.0", "+0", "-"])

    def test_an_interval_has_the_digits_of_its_figure(self):
        self.assertEqual(digits.interval(0.9681, 1.0004, " .. "), "0.968 .. 1.000")
        self.assertEqual(digits.interval(3.21, 7.04), "3.2 to 7.0")
        self.assertEqual(digits.interval(1.2, 1.2), "1.20 to 1.20")
        self.assertEqual(digits.interval(0.133, 11.555), "0.1 to 12")


class AgreementTest(unittest.TestCase):
    """With the C++ reader, whose JSON lines have every figure."""

    def test_every_figure(self):
        for path in all_files():
            code, out, err = show(path, "--format=jsonl")
            self.assertEqual((code, err), (0, ""))
            records = [json.loads(line) for line in out.splitlines()]
            cases = [record for record in records if record["record"] == "case"]
            with lockstep.open(path) as run:
                self.compare_run(run, records[-1])
                rows = run.rows("summary")
                self.assertEqual([row["name"] for row in rows], [case["name"] for case in cases])
                for row, case in zip(rows, cases):
                    self.compare(run, row, case)

    def compare_run(self, run, record):
        if run.lockstep_version:
            record["environment"]["software/lockstep"] = run.lockstep
        for name, value in record.items():
            if name not in ("record", "run", "cases", "clocks", "judgement"):
                self.assertEqual(getattr(run, name), value, (run, name))

    def compare(self, run, row, case):
        for name, value in case["summary"].items():
            stored = row.get(name, numpy.nan)  # a column of later files is null in older ones
            self.assertTrue(equal(stored, value), (run, name, stored, value))
        self.assertEqual(row["verdict"], case["judgement"]["verdict"])
        self.assertEqual(run.settings(row["case"]), case["settings"])
        found = [finding._asdict() for finding in run.findings] + run.rows("wrong")
        found = [one for one in found if one.pop("case") == row["case"]]
        told = case["judgement"]["findings"] + case["wrong"]
        if "headline" not in run.table("verdicts/findings"):  # C++ cuts what it takes for one
            found, told = ([{**one, "headline": ""} for one in some] for some in (found, told))
        self.assertEqual(found, told)

    def test_what_it_refuses_is_refused_with_the_same_words(self):
        with open(path_of("passing"), "rb") as file:
            whole = file.read()
        newer = whole.replace(b"schema=4", b"schema=5", 1)
        damaged = {
            "empty": b"", "text": b"a,b\n", "short": whole[:30], "line": b"l" + whole[1:],
            "first_line": whole.replace(b"schema=", b"SCHEMA=", 1), "foreign": whole[512:],
            "newer": newer, "truncated": whole[:-1], "longer": whole + b"\0",
            "changed": whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]}
        paths = [_DIRECTORY, path_of("missing"), "/dev/null"]
        for name, content in damaged.items():
            with open(path_of("damaged_" + name), "wb") as file:
                file.write(content)
            paths.append(path_of("damaged_" + name))
        for path in paths:
            code, _, said = show(path)
            with self.assertRaises(lockstep.Error) as refused:
                lockstep.open(path)
            if path == _DIRECTORY:
                self.assertIn("is a directory", str(refused.exception))
                continue  # `show` lists it
            self.assertEqual((code, str(refused.exception)), (2, said), path)

    def test_no_changed_byte_is_overlooked(self):
        print("LOCKSTEP_TEST_SEED=%d" % _SEED)
        with open(path_of("links"), "rb") as file:
            whole = file.read()
        places = random.Random(_SEED).sample(range(512, len(whole)), 20)
        for place in places + [512, len(whole) - 1]:
            changed = bytearray(whole)
            changed[place] ^= 0x40
            with open(path_of("flipped"), "wb") as file:
                file.write(changed)
            with self.assertRaisesRegex(lockstep.Error, "checksum differs"):
                lockstep.open(path_of("flipped"))

    def test_it_knows_the_schema_of_this_tree(self):
        with open("results/schema.md", encoding="utf-8") as file:
            page = file.read()
        self.assertIn("## Schema <!--=schema_version-->%d<!--/-->" % lockstep.SCHEMA_VERSION, page)
        headings = re.findall(r"^### /([\w/]+)(?=:|$)", page, re.MULTILINE)
        tables = {name for name in headings if name not in ("cases/n", "links", "history")}
        tables |= {name.lstrip("/") for name in re.findall(r"The table `(/[\w/]+)`", page)}
        self.assertEqual(set(lockstep.TABLES), tables)


class ReaderTest(unittest.TestCase):
    def test_texts_are_texts(self):
        with read("passing") as run:
            self.assertTrue(run.verdict == "pass" and run.id == "1a2b3c4d")
            self.assertTrue((run.summary.verdict == "pass").all())
            self.assertEqual(list(run.summary.name)[:2], ["all_reduce/8B", "all_reduce/64MiB"])
            self.assertEqual(run.summary.median_ns[0], 850)
            self.assertTrue(run.summary.in_place.dtype == bool and run.summary.in_place[2])
            self.assertTrue(numpy.isnan(run.summary.bus_gbps[3]))
            self.assertEqual(run.environment["host/0/cpu_model"], "Some CPU")
            self.assertEqual((run.floors["copy_gbps_alone"], run.plan), (9.8125, {}))
            self.assertEqual(run.findings, [])

    def test_samples(self):
        with read("passing") as run:
            samples = run.samples(0)
            self.assertEqual((samples.shape, samples.dtype), ((5, 2), float))
            self.assertEqual(samples.tolist(), [[800, 798]] * 5)
            numpy.testing.assert_array_equal(samples, run.samples("all_reduce/8B"))
            entry, leave = run.stamps(0)
            self.assertEqual((list(entry[1]), list(leave[1])), ([1000, 1001], [1800, 1799]))
            self.assertEqual(run.rounds(0).tolist(), [0, 0, 1, 1, 2])
            for wrong in (5, -1, "all_gather"):
                with self.assertRaisesRegex(lockstep.Error, "passing.h5: has no case %r; name one "
                                            "of its 5 cases" % wrong):
                    run.samples(wrong)
            with self.assertRaises(TypeError):
                run.samples(0.5)

    def test_a_rank_that_did_not_get_there_is_nan(self):
        with h5py.File(path_of("passing"), "r") as whole, h5py.File(path_of("lost"), "w",
                                                                    userblock_size=512) as lost:
            for name in whole:
                whole.copy(name, lost)
            lost.attrs.update(whole.attrs)
            lost["cases/0/samples/exit_ns"][3, 1] = -1
        with open(path_of("passing"), "rb") as file, open(path_of("lost"), "r+b") as lost:
            lost.write(file.read(512))
        with lockstep.open(path_of("lost"), verify=False) as run:
            self.assertEqual(numpy.argwhere(numpy.isnan(run.samples(0))).tolist(), [[3, 1]])
            self.assertTrue(numpy.isnan(run.stamps(0)[0][3, 1]))

    def test_parts_and_settings_of_steps(self):
        with read("steps") as run:
            forward = run.part(0, "forward_ns")
            self.assertEqual((forward.shape, forward[0].tolist()), ((5, 2), [5e6, 5e6 + 1]))
            self.assertEqual(run.settings(1)["bucket_cap_mb"], "10")
            self.assertIn("forward_ns", set(run.table("parts").part))
            with self.assertRaisesRegex(lockstep.Error, "no part 'nap'; its parts are .*forward"):
                run.part(0, "nap")

    def test_links(self):
        with read("links") as run:
            self.assertGreater(run.links["usual_latency_ns"], 0)
            self.assertIn("slow_link", set(run.table("links/pairs").standing))
        with read("passing") as run:
            self.assertEqual((run.links, run.rows("links/pairs")), ({}, []))
            self.assertTrue(run.table("links/pairs").empty)
            with self.assertRaisesRegex(lockstep.Error, "'sumary' is no table; name one of summ"):
                run.rows("sumary")

    def test_findings_and_journals(self):
        with read("failing") as run:
            self.assertEqual((run.verdict, run.exit_code, run.complete), ("fail", 1, False))
            finding = run.findings[0]
            self.assertEqual((finding.cause, finding.culprits, finding.proved, finding.case),
                             ("rank_killed", [1], True, lockstep.LAUNCH))
            self.assertEqual(run.lifetimes(), [0])
            journals = run.journals(0)
            events = journals[0].frame()
            self.assertEqual(list(events.kind), [journals[0].name("kind", event)
                                                 for event in journals[0].events])
            self.assertEqual(list(events.ns), list(journals[0].ns))
            self.assertEqual(run.lifetime_of(lockstep.LAUNCH), 0)
            with self.assertRaisesRegex(lockstep.Error, "no journals of lifetime 7; name one of"):
                run.journals(7)

    def test_many_runs_are_one_frame(self):
        paths = [path_of("passing"), path_of("failing")]
        with read("steps") as run:
            table = lockstep.frame(paths + [run], facts=["host/0/cpu_model", "host/0/none"])
            self.assertEqual(len(table), 5 + 2 + len(run.summary))
        self.assertEqual(list(table.columns[:6]), ["file", "run", "program", "started_at",
                                                   "host/0/cpu_model", "host/0/none"])
        self.assertEqual(set(table["host/0/cpu_model"]) | set(table["host/0/none"]),
                         {"Some CPU", ""})
        self.assertEqual(list(table.groupby("program").size()), [7, len(table) - 7])
        self.assertEqual(len(lockstep.frame(paths[0])), 5)
        with self.assertRaisesRegex(lockstep.Error, "name at least one"):
            lockstep.frame([])
        with self.assertRaisesRegex(lockstep.Error, "missing.h5: cannot be opened"):
            lockstep.frame([path_of("passing"), path_of("missing")])

    def test_all_tables_of_all_files(self):
        """Files of older schemas lack some; rows and frames agree."""
        for path in all_files():
            with lockstep.open(path) as run:
                for name in lockstep.TABLES:
                    rows, table = run.rows(name), run.table(name)
                    self.assertEqual(len(rows), len(table))
                    for column in table:
                        numpy.testing.assert_array_equal(table[column].tolist(),
                                                         [row[column] for row in rows])

    def test_a_file_without_what_the_schema_says(self):
        with open(path_of("passing"), "rb") as file:
            whole = file.read()
        for missing in ("summary", "environment", "plan"):
            with open(path_of("lacks"), "wb") as file:
                file.write(whole)
            with h5py.File(path_of("lacks"), "r+") as file:
                del file[missing]
            with self.assertRaisesRegex(lockstep.Error, r"^\S+lacks.h5: .* is not what "
                                        r"results/schema.md says \(.*\); use an unmodified copy"):
                with lockstep.open(path_of("lacks"), verify=False) as run:
                    run.summary, run.environment  # pylint: disable=pointless-statement


class DocumentationTest(unittest.TestCase):
    def test_the_snippets_run(self):
        with open("docs/results.md", encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        code = "\n".join(blocks).replace("RUN.h5", path_of("steps")).replace("results/runs",
                                                                           _DIRECTORY)
        self.assertIn("import lockstep", code)
        for name in os.listdir(_DIRECTORY):  # a folder of runs has no damaged ones
            if name[:-3] not in _EXAMPLES:
                os.unlink(os.path.join(_DIRECTORY, name))
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True,
                              text=True, check=False,
                              env={**os.environ, "PYTHONPATH": "results/python"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("ddp_step/resnet50/cap:25", done.stdout)

    def test_the_summary_with_h5py_and_pandas_alone(self):
        """results/schema.md's lines: texts are texts, figures stay figures."""
        with open("results/schema.md", encoding="utf-8") as file:
            lines, = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        for path in all_files():
            names = {}
            exec(lines.replace("RUN.h5", path), names)  # pylint: disable=exec-used
            with lockstep.open(path) as run:
                pandas.testing.assert_frame_equal(names["summary"], run.summary)
                self.assertTrue(names["summary"].verdict.isin(["pass", "fail", "unknown"]).all())

    def test_types(self):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("no mypy: apt-get install mypy")
        # Versions of mypy have different words for ignoring that in a line.
        settings = os.path.join(_DIRECTORY, "mypy.ini")
        with open(settings, "w", encoding="utf-8") as file:
            file.write("[mypy]\nstrict = True\n"
                       "[mypy-h5py.*,pandas.*]\nignore_missing_imports = True\n")
        done = subprocess.run([sys.executable, "-m", "mypy", "--config-file=" + settings,
                               "--cache-dir=/dev/null",
                               "results/python/lockstep"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_its_version(self):
        said = subprocess.run(["cli/lockstep", "--version"], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(f"lockstep {lockstep.__version__}", said.split(" (")[0].strip())

    def test_everything_public_says_what_it_is(self):
        public = [getattr(lockstep, name) for name in lockstep.__all__]
        for one in (lockstep.Run, lockstep.Journal):
            public += [value for name, value in vars(one).items() if name[0] != "_"]
        for one in public:
            if callable(one) or hasattr(one, "func"):
                self.assertTrue(one.__doc__, one)


if __name__ == "__main__":
    subprocess.run(["results/example_runs", _DIRECTORY], check=True)
    unittest.main()
