#!/usr/bin/env python3
"""`lockstep buckets` as a user sees it: the recorded layouts of every mode, and bad input."""

import csv
import json
import os
import shutil
import subprocess
import tempfile
import unittest

LOCKSTEP = "cli/lockstep"
MODELS = ("resnet50", "bert_base", "gpt2_small")

# Options -> key of the recording.
MODES = [
    ([], "rebuilt_buckets"),
    (["--initial"], "iter1_buckets"),
    (["--find-unused"], "unused_mode_buckets"),
    (["--find-unused", "--initial"], "unused_mode_buckets"),
    (["--find-unused", "--static-graph"], "rebuilt_buckets"),
    (["--torch=1.13", "--bucket-cap-mb=25"], "rebuilt_buckets"),
    (["--bucket-cap-mb=25", "--first-bucket-mb=1"], "rebuilt_buckets"),
    (["--torch=1.9", "--initial"], "unused_mode_buckets"),
]

# Arguments -> what the error must say.
BAD_INPUT = [
    ([], "A subcommand is required"),
    (["bukets"], "'bukets' is not a subcommand; choose from: buckets"),
    (["--wrong"], "see lockstep --help"),
    (["buckets"], "--model is required; see lockstep buckets --help"),
    (["buckets", "--model="], "--model"),
    (["buckets", "--model=resnet"], "did you mean 'resnet50'?"),
    (["buckets", "--model=resnet50,"], "empty item"),
    (["buckets", "--model=no/such/file"], "'no/such/file' does not exist"),
    (["buckets", "--model=/"], "'/' is not a file"),
    (["buckets", "--model=/proc/self/cmdline"], "line 1: not JSON"),
    (["buckets", "--model=resnet50", "--bucket-cap-mb=0"], "--bucket-cap-mb: '0'"),
    (["buckets", "--model=resnet50", "--bucket-cap-mb=-5"], "--bucket-cap-mb: '-5'"),
    (["buckets", "--model=resnet50", "--bucket-cap-mb=5,,1"], "empty item"),
    (["buckets", "--model=resnet50", "--first-bucket-mb=x"], "--first-bucket-mb: 'x'"),
    (["buckets", "--model=resnet50", "--dtype=f12"], "--dtype: 'f12'"),
    (["buckets", "--model=resnet50", "--dtype=i32"], "--dtype: 'i32' cannot hold gradients"),
    (["buckets", "--model=resnet50", "--torch=7"], "--torch: '7'"),
    (["buckets", "--model=resnet50", "--format=xml"], "--format: 'xml'"),
    (["buckets", "--model=resnet50", "--wrong"], "--wrong"),
    (["buckets", "--model=resnet50", "extra"], "extra"),
]


def run(*arguments, **options):
    return subprocess.run([LOCKSTEP, *arguments], stdout=options.get("stdout", subprocess.PIPE),
                          stderr=subprocess.PIPE, text=True)


def golden(model):
    with open(f"datasets/testdata/{model}_golden.json") as recording:
        return json.load(recording)


class BucketsTest(unittest.TestCase):
    def test_every_recorded_mode(self):
        for model in MODELS:
            recorded = golden(model)
            for options, key in MODES:
                with self.subTest(model=model, options=options):
                    got = json.loads(
                        run("buckets", f"--model={model}", "--format=jsonl", *options).stdout)
                    self.assertEqual([b["params"] for b in got["buckets"]], recorded[key])
                    numel = [sum(recorded["params"][i]["numel"] for i in b) for b in recorded[key]]
                    self.assertEqual(got["elements"], numel)
                    self.assertEqual([b["bytes"] for b in got["buckets"]], [4 * n for n in numel])

    def test_text_begins_with_the_elements(self):
        lines = run("buckets", "--model=resnet50").stdout.splitlines()
        self.assertEqual(lines[0], "[2049000, 7875584, 6563840, 6637568, 2431040]")
        self.assertEqual(lines[-1].split()[-3:], ["layer3.0.bn3.weight", "..", "conv1.weight"])
        half = run("buckets", "--model=resnet50", "--dtype=bf16").stdout.splitlines()
        self.assertEqual(half[0], "[2049000, 14439424, 9068608]")

    def test_an_explicit_cap_is_the_first_buckets_too(self):
        got = json.loads(run("buckets", "--model=resnet50", "--bucket-cap-mb=25",
                             "--format=jsonl").stdout)
        self.assertEqual(got["limits_bytes"], [25 << 20, 25 << 20])
        self.assertGreaterEqual(got["buckets"][0]["bytes"], 25 << 20)

    def test_models_times_caps(self):
        lines = run("buckets", "--model=resnet50,datasets/testdata/bert_base_golden.json",
                    "--bucket-cap-mb=1,100", "--format=jsonl").stdout.splitlines()
        got = [(case["model"], case["limits_bytes"][1] >> 20) for case in map(json.loads, lines)]
        self.assertEqual(got, [("resnet50", 1), ("resnet50", 100), ("bert_base", 1),
                               ("bert_base", 100)])

    def test_csv_has_a_row_a_bucket(self):
        rows = list(csv.DictReader(run("buckets", "--model=resnet50", "--bucket-cap-mb=25,100",
                                       "--first-bucket-mb=1", "--format=csv").stdout.splitlines()))
        of_25 = [row for row in rows if row["limit_bytes"] in (str(1 << 20), str(25 << 20))]
        self.assertEqual([int(row["elements"]) for row in of_25][:3], [2049000, 7875584, 6563840])
        self.assertEqual([row["bucket"] for row in of_25[:5]], list("01234"))
        self.assertEqual((rows[4]["last_param"], rows[4]["sparse"]), ("conv1.weight", "false"))
        without = run("buckets", "--model=resnet50", "--find-unused", "--format=csv").stdout
        self.assertEqual(next(csv.DictReader(without.splitlines()))["kind"], "initial")

    def test_bad_input_is_one_line_and_exit_code_2(self):
        for arguments, says in BAD_INPUT:
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertTrue(done.stderr.startswith("lockstep: "), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(says, done.stderr)

    def test_unwritable_output(self):
        with open("/dev/full", "w") as full:
            done = run("buckets", "--model=resnet50", stdout=full)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("standard output", done.stderr)

    def test_installed_copy_needs_nothing_of_the_source_tree(self):
        for place in ("share/lockstep/manifests", "share/lockstep/datasets/manifests"):
            with self.subTest(place=place), tempfile.TemporaryDirectory() as prefix:
                os.makedirs(f"{prefix}/bin")
                os.makedirs(f"{prefix}/{place}")
                shutil.copy(LOCKSTEP, f"{prefix}/bin/lockstep")
                shutil.copy("datasets/testdata/bert_base_golden.json", f"{prefix}/{place}/own.json")
                installed = [f"{prefix}/bin/lockstep", "buckets", "--format=jsonl"]
                own = subprocess.run(installed + ["--model=own"], stdout=subprocess.PIPE, env={},
                                     cwd="/", check=True)
                self.assertEqual(json.loads(own.stdout)["elements"][-1], 23837184)
                other = subprocess.run(installed + ["--model=resnet50"], stderr=subprocess.PIPE,
                                       env={}, cwd="/", text=True)
                self.assertEqual(other.returncode, 2)
                self.assertIn("available: own;", other.stderr)

    def test_help_and_version(self):
        for arguments in (["--help"], ["--version"], ["buckets", "--help"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
            self.assertNotEqual(done.stdout, "", arguments)


if __name__ == "__main__":
    unittest.main()
