#!/usr/bin/env python3
"""Each rule finds what it is for, and leaves good code alone."""

import ast
import unittest

import check_layering
import complexity
import rules
import units

GUARDED = "#pragma once\n%s"


def function_of(lines):
    return "int F() {\n" + "  ++n;\n" * (lines - 2) + "}\n"


class RulesTest(unittest.TestCase):
    def assert_finds(self, path, text, part):
        found = rules.check(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def assert_clean(self, path, text):
        self.assertEqual(rules.check(path, text), [])

    def test_layout(self):
        self.assert_clean("core/base/x.cc", "x\n" * 400)
        self.assert_finds("core/base/x.cc", "x\n" * 401, "401 lines")
        self.assert_clean("core/base/x.cc", "x" * 100 + "\n")
        self.assert_finds("core/base/x.cc", "x" * 101 + "\n", ":1: 101 columns")
        self.assert_finds("core/base/x.cc", "a\n\tb\n", ":2: a tab")
        self.assert_finds("core/base/x.cc", "a \n", "space at the end")
        self.assert_finds("core/base/x.cc", "a", "no newline")

    def test_helpers_of_a_unit(self):
        def source(body):
            return "namespace {\n%s}  // namespace\n" % body

        texts = {"a/x.cc": source("int F() { return 1; }\n\nint G() {\n  return 2;\n}\n"),
                 "a/y.cc": source("int F(int n) {\n  return n;\n}\n"),
                 "b/z.cc": source("int G() { return 3; }\n\nTEST(A, B) {\n  G();\n}\n"),
                 "b/c.cc": source("class C {\n  int G() { return 4; }\n};\n"),
                 "b/d.cc": "int G() { return 5; }\n"}
        build = 'cc_library(name = "%s", srcs = [%s])\n'
        self.assertEqual(
            units.check(texts, {"a/BUILD": build % ("two", '"x.cc", "y.cc", "y.h"')}),
            ["a/y.cc:2: F() is in a/x.cc, too, which is compiled in one unit"])
        self.assertEqual(
            units.check(texts, {"a/BUILD": build % ("far", '":x.cc", "//b:z.cc"')}),
            ["b/z.cc:2: G() is in a/x.cc, too, which is compiled in one unit"])
        apart = build % ("x", '"x.cc"') + build % ("y", '"y.cc"')
        self.assertEqual(units.check(texts, {"a/BUILD": apart}), [])
        self.assertEqual(
            units.check(texts, {"b/BUILD": build % ("b", '"z.cc", "c.cc", "d.cc"')}), [])

    def test_name(self):
        self.assert_finds("core/utils/x.cc", "", "'utils'")
        self.assert_finds("core/base/buffer_manager.cc", "", "'manager'")
        self.assert_clean("core/base/communicator.cc", "")

    def test_functions(self):
        self.assert_clean("core/base/x.cc", function_of(70))
        self.assert_finds("core/base/x.cc", function_of(71), ":1: function of 71 lines")
        self.assert_finds("core/base/x.cc", "int G();\n\n" + function_of(71), ":3: function of 71")
        two = function_of(60) + "\n" + function_of(60)
        self.assert_clean("core/base/x.cc", "namespace lockstep {\n" + two + "}  // namespace\n")
        long_signature = "int F(int a,\n      int b) {\n" + "  ++n;\n" * 68 + "}\n"
        self.assert_finds("core/base/x.cc", long_signature, "function of 71 lines")
        self.assert_finds("scripts/x.py", "def f():\n" + "    f()\n" * 70, "function of 71 lines")

    def test_complexity_of_python(self):
        branches = ["if a: pass", "for a in b: pass", "while a: pass", "a = b if c else d",
                    "a = b and c", "a = b or c", "a = [b for b in c]",
                    "try: f()\n    except E: g()"]
        for one in branches:
            text = "def f():\n" + ("    %s\n" % one) * 14
            self.assert_clean("scripts/x.py", text)
            self.assert_finds("scripts/x.py", text + "    %s\n" % one, ":1: function of complexity "
                              "16, 15 at most")
        within = "def f():\n    if a:\n        b = [c for c in d if e and f]\n"
        self.assertEqual(complexity.of_python(ast.parse(within).body[0]), 5)
        straight = "def f():\n    with a: pass\n    b = {c: d}\n    return not b\n"
        self.assertEqual(complexity.of_python(ast.parse(straight).body[0]), 1)

    def test_complexity_of_cc(self):
        for text, found in (("int F(T&& a) { return a[0] & 1; }\n", 1),
                            ("if (a && b) c = d ? e : f;\n", 4),
                            ("for (;;)\n  while (a ||\n         b) {}\n", 4),
                            ("switch (a) {\n  case 1:\n  case 2:\n  default:\n}\n", 3),
                            ("try {\n} catch (const E& e) {\n}\n", 2),
                            ('a = "if (b && c) \\" ? ";  // if so, and while ? it\n', 1),
                            ("case 'x': return '\"' == a ? 1 : 2;  // \"\n", 3)):
            self.assertEqual(complexity.of_cc(text), found, text)

    def test_complex_functions_are_refused_and_exceptions_only_shrink(self):
        def check(branches, known):
            body = "  if (a) b();\n" * branches
            free = "void Room::F(int a,\n             int b) {\n%s}\n" % body
            member = "class Room {\n  void G() {\n%s  }\n};\n" % body.replace("  if", "    if")
            return rules.check_cc_complexity({"core/x.cc": "int x;\n\n" + free + member}, known)
        self.assertEqual(check(14, {}), [])
        self.assertEqual(check(15, {}), [
            "core/x.cc:3: function of complexity 16, 15 at most",
            "core/x.cc:%d: function of complexity 16, 15 at most" % (3 + 18 + 1)])
        self.assertEqual(check(15, {"Room::F": 16, "G": 16}), [])
        self.assertEqual(len(check(16, {"Room::F": 16, "G": 17})), 1)
        self.assertEqual(check(2, {"Room::F": 16}), [
            "scripts/tidy/exceptions.py:1: Room::F needs no exception: take it off the list"])

    def test_folders(self):
        def check(files, known=None, more=()):
            paths = ["core/room/%d.cc" % number for number in range(files)]
            return rules.check_folders(paths + list(more), known or {})
        tests = ["core/room/%d_test.cc" % number for number in range(50)] + [
            "core/room/testing/%d.cc" % number for number in range(50)]
        self.assertEqual(check(40, more=tests), [])
        self.assertEqual(check(41), ["core/room:1: 41 files in a folder, 40 at most"])
        self.assertEqual(check(45, {"core/room": 45}), [])
        self.assertEqual(check(46, {"core/room": 45}),
                         ["core/room:1: 46 files in a folder, 45 at most"])
        self.assertEqual(check(40, {"core/room": 45}), [
            "scripts/tidy/exceptions.py:1: core/room needs no exception: take it off the list"])

    def test_a_long_file_begins_with_a_sentence(self):
        def check(known, **texts):
            return rules.check_openings({"core/room/%s.cc" % name: text
                                         for name, text in texts.items()}, known)
        body = "#include <vector>\n" + "x\n" * 58
        self.assertEqual(check({}, short=body + "x\n"), [])
        self.assertEqual(check({}, told="// Adds up what the ranks sent.\n" + body + "x\n"), [])
        missing = "core/room/%s.cc:1: begins without a sentence on what it is for and what it " \
            "relies on"
        long = body + "x\n" * 2
        for text in (long, "// clang-format off\n" + long, "//\n" + long, "\n" + long):
            self.assertEqual(check({}, bare=text), [missing % "bare"])
        self.assertEqual(check({"core/room": 1}, bare=long), [])
        self.assertEqual(check({"core/room": 1}, a=long, b=long), [missing % "a", missing % "b"])
        self.assertEqual(check({"core/room": 1}), [
            "scripts/tidy/exceptions.py:1: core/room needs no exception: take it off the list"])

    def test_lines_for_people_do_not_throw(self):
        code = "namespace lockstep {\n%s\n}  // namespace lockstep\n"
        for line in ('PrintStderr("x");', '// As fmt::print(stderr, "x").', 'fmt::print("x");'):
            self.assert_clean("core/base/x.cc", code % line)
        self.assert_finds("core/base/x.cc", code % 'fmt::print(stderr, "x");', "call PrintStderr")

    def test_guard(self):
        self.assert_clean("core/base/x.h", GUARDED % "")
        self.assert_finds("core/base/y.h", "int x;\n", "#pragma once is missing")

    def test_namespace(self):
        opened = "namespace %s {\n}\n"
        for path, name in (("core/base/x.cc", "lockstep"),
                           ("core/verdict/x.cc", "lockstep::verdict"),
                           ("core/comm/nccl/testing/x.cc", "lockstep::comm::nccl"),
                           ("results/store/x.cc", "lockstep::results::store"),
                           ("cli/x.cc", "lockstep::cli")):
            self.assert_clean(path, opened % name)
            self.assert_finds(path, opened % "lockstep::other", "%s is that of its" % name)
        forward = "namespace lockstep::journal {\nstruct Words;  // elsewhere\n}\n"
        self.assert_clean("core/comm/x.cc", forward)

    def test_types(self):
        one = "namespace lockstep::comm {\nstruct Step {\n};\n}\n"
        hidden = "namespace {\nstruct Step {\n};\n}  // namespace\n"
        self.assertEqual(rules.check_types({"core/comm/a.h": one, "core/ddp/b.h": one,
                                            "core/comm/c.cc": hidden}), [])
        self.assertEqual(rules.check_types({"core/comm/a.h": one, "core/comm/b.cc": one}),
                         ["core/comm/b.cc:2: lockstep::comm::Step is defined in core/comm/a.h, "
                          "too"])

    def test_vendor_rooms(self):
        self.assert_clean("core/comm/mpi/x.cc", "#include <mpi.h>\n")
        self.assert_finds("core/comm/gloo/x.cc", "#include <mpi.h>\n", "belongs to core/comm/mpi/")
        self.assert_finds("bench/x.cc", '#include "hdf5.h"\n', "belongs to core/hdf5/ and")
        self.assert_finds("core/comm/mpi/x.cc", "#include <cuda_runtime.h>\n", "core/device/cuda/")
        self.assert_finds("core/ddp/x.cc", "#include <nccl.h>\n", "belongs to core/comm/nccl/")
        self.assert_clean("core/ddp/x.cc", "#include <fmt/format.h>\n#include <vector>\n")

    def test_clocks(self):
        path, found = "core/base/x_test.cc", "asserts how long"
        self.assert_finds(path, "EXPECT_LT(MonotonicNs() - begin, 5);\n", found)
        self.assert_finds(path, "EXPECT_LE(Abs(\n    MonotonicNs() - begin), 5);\n", found)
        self.assert_finds(path, "const double s =\n    Of(MonotonicNs() - a);\nEXPECT_LT(s, 9);\n",
                          ":3: " + found)
        self.assert_finds(path, "const std::chrono::duration<double> took = Clock::now() - a;\n"
                          "EXPECT_NEAR(took.count(), 1, 1);\n", ":2: " + found)
        self.assert_clean("core/base/x.cc", "EXPECT_LT(MonotonicNs() - begin, 5);\n")
        self.assert_clean(path, "EXPECT_GE(MonotonicNs() - begin, 5);\n")  # a load only adds
        self.assert_clean(path, "EXPECT_LE(stamp, NowTicks());\nEXPECT_LT(count, 5);\n")
        self.assert_clean(path, "// Below 1e-6: ...\nEXPECT_LT(MonotonicNs() - begin, 5);\n")
        path = "bench/x_test.py"
        self.assert_finds(path, "spent = time.monotonic() - begin\n", found)
        self.assert_finds(path, "self.assertLess(launch.seconds, 3 + 1 + 8)\n", found)
        self.assert_finds(path, 'if 1:\n    assert case["seconds"] < 15, "late"\n', ":2: " + found)
        self.assert_finds(path, 'assert 1.4 <= case["detected_after_seconds"] < 10, case\n', found)
        self.assert_clean(path, "while busy() and time.monotonic() < limit:\n    rest()\n")
        self.assert_clean(path, 'assert 0 <= case["seconds"] < A_DAY\n')
        self.assert_clean(path, 'assert case["detected_after_seconds"] >= 5.9\n')
        self.assert_clean(path, "self.assertLess(plan.seconds, budget)\n")
        self.assert_clean("bench/testing/x.py", "print(time.monotonic() - begin)\n")

    def test_layering(self):
        text = '#include <vector>\n#include "core/a.h"\n#include <mpi.h>\n'
        self.assertEqual(
            check_layering.violations("x.cc", text, {"core/a.h"}, {"system_mpi"}), []
        )
        found = check_layering.violations("x.cc", text, {"core/b.h"}, {"system_gloo"})
        self.assertEqual(len(found), 2, found)
        self.assertIn('x.cc:2: "core/a.h"', found[0])
        self.assertIn("x.cc:3: <mpi.h> needs a direct dependency on system_mpi", found[1])


if __name__ == "__main__":
    unittest.main()
