#!/usr/bin/env python3
"""`scripts/sanitize` with a bazel of our own: what it runs, finds, lists and keeps."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

# Two tests a room; one fails when `script` holds the room, with what a sanitizer says in its log.
_BAZEL = """#!%s
import json, os, sys
folder = os.path.dirname(os.path.abspath(__file__))
words = [word for word in sys.argv[1:] if not word.startswith("--output_base")]
with open(folder + "/calls", "a") as file:
    file.write(json.dumps(words) + "\\n")
with open(folder + "/script") as file:
    script = file.read()
if words[0] == "query":
    if "//..." in words[-1]:  # leads into bazel-out
        sys.exit(7)
    print("Loading: 0 packages\\n//a:one\\n//b:two\\n//c:absent")
if words[0] == "build" and "//c:absent" in words:
    print("WARNING: Target @//c:absent is incompatible and cannot be built, but was asked for")
    sys.exit(1)
if words[0] == "build" and "odr" in script:
    print("a.h:3: warning: type 'struct Step' violates the C++ One Definition Rule [-Wodr]")
if words[0] != "test":
    sys.exit(0)
for option in script.split()[1:] if script.startswith("say") else []:  # as processes of tests do
    (places,) = [word.split("log_path=")[1] for word in words if option in word]
    assert "--sandbox_writable_path=" + os.path.dirname(places) in words
    with open(folder + "/said") as said, open(places + ".my.program.77", "w") as file:
        file.write(said.read())
bad = words[-1].strip("/.") in script
events = [word.split("=", 1)[1] for word in words if word.startswith("--build_event_json_file")]
with open(events[0], "w") as file:
    for label, status in (("//a:good", "PASSED"), ("//a:bad", "FAILED" if bad else "PASSED")):
        file.write(json.dumps({"id": {"targetConfigured": {"label": label}},
                               "configured": {"targetKind": "cc_test rule"}}) + "\\n")
        file.write(json.dumps({"id": {"testResult": {"label": label}}, "testResult": {
            "testActionOutput": [{"name": "test.log", "uri": "file://" + folder + "/log." +
                                  ("bad" if bad and "bad" in label else "good")}]}}) + "\\n")
        file.write(json.dumps({"id": {"testSummary": {"label": label}},
                               "testSummary": {"overallStatus": status}}) + "\\n")
sys.exit(8 if "stop" in script else 3 if bad else 0)
""" % sys.executable
_SAID = "x.cc:7:3: runtime error: signed integer overflow"


class SanitizeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        # A tree of its own: two rooms, of which one has threads.
        self.tree = os.path.join(self.folder, "tree")
        for room, text in (("core/plain", "int x;\n"), ("core/busy", "std::jthread t;\n")):
            os.makedirs(os.path.join(self.tree, room))
            self.write(os.path.join(self.tree, room, "x.cc"), text)
            self.write(os.path.join(self.tree, room, "BUILD"), "")
        os.makedirs(os.path.join(self.tree, "scripts/suite"))
        for name in ("sanitize", "launches.py", "suite/bazel.py", "suite/sanitize.py",
                     "suite/test_summary.py"):
            shutil.copy("scripts/" + name, os.path.join(self.tree, "scripts", name))
        self.write(os.path.join(self.tree, ".bazelrc"), "test --test_env=ASAN_OPTIONS=a=1\n")
        self.bazel = os.path.join(self.folder, "bazel")
        self.write(self.bazel, _BAZEL)
        os.chmod(self.bazel, 0o755)
        self.write(os.path.join(self.folder, "log.bad"), "ok\n%s\n%s\n" % (_SAID, _SAID))
        self.write(os.path.join(self.folder, "log.good"), "ok\n")
        self.write(os.path.join(self.folder, "script"), "")

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def sanitize(self, *words):
        done = subprocess.run([self.tree + "/scripts/sanitize", "--bazel=" + self.bazel,
                               "--output-folder=" + self.folder + "/out", *words],
                              capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def rooms_tested(self):
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as file:
            calls = [json.loads(line) for line in file]
        return [(call[1], call[-1]) for call in calls if call[0] == "test"]

    def test_every_room_by_asan_and_unoptimized_and_those_with_threads_by_tsan(self):
        code, out, err = self.sanitize()
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.splitlines()[-1].startswith("PASS: 0 of "), out)
        rooms = self.rooms_tested()
        for room in ("//core/busy/...", "//core/plain/..."):
            self.assertIn(("--config=asan", room), rooms)
            self.assertIn(("--copt=-O0", room), rooms)
        self.assertIn(("--config=tsan", "//core/busy/..."), rooms)
        self.assertNotIn(("--config=tsan", "//core/plain/..."), rooms)

    def test_what_is_found_is_listed_once_and_kept(self):
        self.write(os.path.join(self.folder, "script"), "core/plain odr")
        code, out, _ = self.sanitize("asan", "odr", "--rooms=core/plain")
        self.assertEqual(code, 1, out)
        self.assertEqual(out.count("runtime error: signed integer overflow"), 1)
        self.assertIn("violates the C++ One Definition Rule", out)
        self.assertIn("odr core/plain: ", out)
        self.assertTrue(os.path.exists(self.folder + "/out/asan/a:bad.log"))
        with open(self.folder + "/out/bazel.log", encoding="utf-8") as file:
            self.assertIn("violates the C++ One Definition Rule", file.read())

    def test_a_finding_in_a_process_of_a_test_that_passed(self):
        for said, code in ((_SAID, 1), ("ERROR: AddressSanitizer: SEGV on unknown address", 0)):
            self.write(os.path.join(self.folder, "log.good"), said + "\n")
            self.assertEqual(self.sanitize("asan", "--rooms=core/plain")[0], code, said)

    def test_a_finding_that_only_its_process_told(self):
        for name, option in (("asan", "ASAN_OPTIONS=a=1:"), ("tsan", "TSAN_OPTIONS=")):
            self.write(os.path.join(self.folder, "script"), "say " + option)
            for said, code in ((_SAID, 1), ("ERROR: AddressSanitizer: SEGV on unknown", 0)):
                self.write(os.path.join(self.folder, "said"), said + "\n")
                found, out, _ = self.sanitize(name, "--rooms=core/plain")
                self.assertEqual(found, code, said)
                self.assertEqual("a process of my.program\n    " + _SAID in out, code == 1, out)

    def test_an_interrupted_bazel_finds_nothing(self):
        self.write(os.path.join(self.folder, "script"), "stop core/plain")
        self.assertEqual(self.sanitize("asan", "--rooms=core/plain")[0], 3)
        with open(self.folder + "/out/sanitize.jsonl", encoding="utf-8") as file:
            self.assertEqual(file.read(), "")

    def test_a_folder_of_rooms(self):
        self.assertEqual(self.sanitize("asan", "--rooms=core")[::2], (0, ""))
        self.assertEqual(self.rooms_tested(), [("--config=asan", "//core/...")])

    def test_bad_input(self):
        for words in (["msan"], ["--rooms=core/none"]):
            code, _, err = self.sanitize(*words)
            self.assertEqual(code, 2, err)


if __name__ == "__main__":
    unittest.main()
