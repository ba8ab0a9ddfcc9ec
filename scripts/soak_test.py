#!/usr/bin/env python3
"""`scripts/soak` with a bazel of our own: what it counts, lists, keeps, and how it goes on."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# Says of //a:good that it passed, and of //a:flaky what its n-th line of `script` says; keeps the
# number of busy loops that it sees, and waits where the line is "wait".
_BAZEL = """#!%s
import json, os, signal, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
parent = os.getppid()
loops = 0
for name in os.listdir("/proc"):
    try:
        with open("/proc/%%s/stat" %% name) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        with open("/proc/%%s/cmdline" %% name) as file:
            loops += int(fields[1]) == parent and "while True" in file.read()
    except (OSError, ValueError):
        pass
with open(folder + "/calls", "a+") as file:
    file.write(json.dumps({"arguments": sys.argv[1:], "loops": loops, "pid": os.getpid()}) + "\\n")
    file.seek(0)
    number = len(file.readlines())
with open(folder + "/script") as file:
    what = (file.read().split() + ["PASSED"] * 100)[number - 1]
if what == "commit":
    with open(folder + "/tree/scripts/workspace_status", "w") as file:
        file.write("#!/bin/sh\\necho STABLE_LOCKSTEP_COMMIT 7654321\\n")
    what = "FAILED"
if what == "wait":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    with open(folder + "/waits", "w"):
        pass
    signal.sigwait([signal.SIGTERM])
    with open(folder + "/interrupted", "w"):
        sys.exit(8)
if what == "broken":
    sys.exit(1)
events = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--build_event_json_file")]
with open(events[0], "w") as file:
    for label, status in (("//a:good", "PASSED"), ("//a:flaky", what)):
        file.write(json.dumps({"id": {"targetConfigured": {"label": label}},
                               "configured": {"targetKind": "cc_test rule"}}) + "\\n")
        file.write(json.dumps({"id": {"testResult": {"label": label}}, "testResult": {
            "testActionOutput": [{"name": "test.log", "uri": "file://" + folder + "/script"}]}})
            + "\\n")
        file.write(json.dumps({"id": {"testSummary": {"label": label}},
                               "testSummary": {"overallStatus": status}}) + "\\n")
sys.exit(0 if what == "PASSED" else 3)
""" % sys.executable


class SoakTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.bazel = os.path.join(self.folder, "bazel")
        with open(self.bazel, "w", encoding="utf-8") as file:
            file.write(_BAZEL)
        os.chmod(self.bazel, 0o755)
        self.output = os.path.join(self.folder, "soak")
        self.scripts = os.path.join(self.folder, "tree", "scripts")
        shutil.copytree("scripts", self.scripts)  # links become files
        self.checkout("STABLE_LOCKSTEP_COMMIT 1234567")
        self.script("")

    def checkout(self, *lines):
        """What is tested: not the checkout of this test, which may have changes."""
        with open(os.path.join(self.scripts, "workspace_status"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + "".join("echo %s\n" % line for line in lines))

    def script(self, words):
        with open(os.path.join(self.folder, "script"), "w", encoding="utf-8") as file:
            file.write(words)

    def calls(self):
        path = os.path.join(self.folder, "calls")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def command(self, *words):
        return [self.scripts + "/soak", "--bazel=" + self.bazel,
                "--output-folder=" + self.output, *words]

    def soak(self, *words):
        done = subprocess.run(self.command(*words), capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def test_every_load_has_its_passes_and_its_loops(self):
        code, lines, _ = self.soak("2", "--busy-loops=0,2,4", "//a/...")
        self.assertEqual((code, lines[-1]), (0, "PASS: 2 tests; clean passes: 2 of 2 beside 0, "
                                                "2 of 2 beside 2, 2 of 2 beside 4 busy loops"))
        self.assertEqual([call["loops"] for call in self.calls()], [0, 2, 4, 0, 2, 4])
        for call in self.calls():
            self.assertIn("--nocache_test_results", call["arguments"])
            self.assertEqual(call["arguments"][-1], "//a/...")

    def test_who_failed_once_is_listed_with_load_and_pass(self):
        self.script("PASSED PASSED PASSED PASSED TIMEOUT FAILED")
        code, lines, _ = self.soak("2")
        self.assertEqual(code, 1)
        self.assertEqual(lines[-2], "//a:flaky: load 2 pass 2 (failed: timeout); "
                                    "load 4 pass 2 (failed: failed)")
        self.assertEqual(lines[-1], "FAIL: 1 of 2 tests failed at least once; clean passes: 2 of 2 "
                                    "beside 0, 1 of 2 beside 2, 1 of 2 beside 4 busy loops")
        self.assertTrue(os.path.exists(os.path.join(self.output, "load4-pass2/a_flaky.log")))

    def test_it_goes_on_where_it_was_interrupted(self):
        self.script("PASSED FAILED wait")
        process = subprocess.Popen(self.command("1"), stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        while len(self.calls()) < 3 and process.poll() is None:
            time.sleep(0.02)
        os.kill(self.calls()[2]["pid"], signal.SIGKILL)
        process.kill()
        process.communicate()
        self.script("PASSED FAILED PASSED PASSED")
        code, lines, _ = self.soak("1")
        self.assertEqual((code, len(self.calls())), (1, 4), "only the pass that was not over")
        self.assertIn("1 of 1 beside 4", lines[-1])
        self.assertEqual(self.soak("1")[0], 1)
        self.assertEqual(len(self.calls()), 4, "everything is over")

    def test_half_a_line_of_a_crash_is_no_pass(self):
        self.assertEqual(self.soak("1", "--busy-loops=0")[0], 0)
        with open(os.path.join(self.output, "soak.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"load": 0, "pa')
        for _ in range(2):
            code, lines, err = self.soak("2", "--busy-loops=0")
            self.assertEqual((code, err), (0, ""), "the line after it can be read")
            self.assertIn("2 of 2 beside 0", lines[-1])
        self.assertEqual(len(self.calls()), 2)

    def test_passes_of_another_commit_do_not_count(self):
        self.assertEqual(self.soak("1", "--busy-loops=0")[0], 0)
        path = os.path.join(self.output, "soak.jsonl")
        with open(path, encoding="utf-8") as file:
            first, rest = file.readline(), file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({**json.loads(first), "STABLE_LOCKSTEP_COMMIT": "0" * 7}) + "\n")
            file.write(rest)
        code, _, err = self.soak("1", "--busy-loops=0")
        self.assertEqual(code, 2)
        self.assertIn("another commit", err)
        self.assertEqual(len(self.calls()), 1)

    def test_a_tree_with_changes_is_refused(self):
        self.checkout("STABLE_LOCKSTEP_COMMIT 1234567", "STABLE_LOCKSTEP_MODIFIED true")
        code, lines, err = self.soak("1")
        self.assertEqual((code, lines, len(err.splitlines())), (2, [], 1), err)
        self.assertIn("commit them first", err)
        self.assertEqual((self.calls(), os.path.exists(self.output)), ([], False))

    def test_a_pass_in_which_the_commit_changed_does_not_count(self):
        self.script("PASSED commit PASSED")
        code, lines, err = self.soak("2", "--busy-loops=0")
        self.assertEqual((code, len(lines), len(err.splitlines())), (2, 1, 1), err)
        self.assertIn("another commit than " + self.output, err)
        self.checkout("STABLE_LOCKSTEP_COMMIT 1234567")
        code, lines, _ = self.soak("2", "--busy-loops=0")
        self.assertEqual((code, lines[-1]),
                         (0, "PASS: 2 tests; clean passes: 2 of 2 beside 0 busy loops"))

    def test_told_to_end_it_says_what_is_known(self):
        self.script("PASSED wait")
        process = subprocess.Popen(self.command("1"), stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.DEVNULL)
        while not os.path.exists(os.path.join(self.folder, "waits")) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
        self.assertEqual(process.returncode, 3)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "interrupted")),
                        "the tests have ended, too")
        self.assertEqual(out.splitlines()[-1],
                         "INCONCLUSIVE: 1 of 3 passes are over, none with a failure")

    def test_what_cannot_run_is_one_line(self):
        self.script("broken")
        code, _, err = self.soak("1")
        self.assertEqual((code, len(err.splitlines())), (4, 1), err)
        for words in (["0"], ["1", "--busy-loops=x"], ["soon"]):
            self.assertEqual(self.soak(*words)[0], 2)
        self.assertIn("--loads is called --busy-loops now", self.soak("1", "--loads=2")[2])
        self.script("")
        self.soak("1", "//a/...")
        code, _, err = self.soak("1", "//b/...")
        self.assertEqual((code, len(err.splitlines())), (2, 1), err)


if __name__ == "__main__":
    unittest.main()
