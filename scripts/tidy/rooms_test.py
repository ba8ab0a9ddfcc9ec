#!/usr/bin/env python3
"""The drawing of the rooms is what the sources include, and nothing runs up or in a circle."""

import unittest

import rooms

PAGE = """# A page

┌─ above ─┐
│ cli the command → bench/kind │
├─ below ─┤
│ bench/kind a kind → bench/run │
│ bench/run the run → core/base │
│ stress/run cases → core/base │
│ core/comm → core/base │
│ core/base │
└──┘

The end.
"""
TREE = {
    "cli/main.cc": ("bench/kind/kind.h",),
    "cli/trace/x.cc": ("core/base/base.h",),  # reached through the others: no arrow of its own
    "bench/kind/kind.h": ("bench/run/run.h",),
    "bench/run/run.h": ("core/base/base.h",),
    "bench/run/testing/fake.h": ("core/base/base.h",),
    "stress/run/x.cc": ("core/base/base.h",),
    "core/comm/x.h": ("core/base/base.h",),
    "core/base/base.h": (),
}


def texts_of(**more):
    """TREE, with more includes by path ('/' and '.' as '__' and '_dot_')."""
    tree = dict(TREE)
    for path, headers in more.items():
        path = path.replace("__", "/").replace("_dot_", ".")
        tree[path] = tree.get(path, ()) + headers
    return {path: "#include <vector>\n" + "".join('#include "%s"\n' % header for header in headers)
            for path, headers in tree.items()}


def check(page=PAGE, known=None, **more):
    return rooms.check(texts_of(**more), page, known or {})


class RoomsTest(unittest.TestCase):
    def assert_finds(self, part, **arguments):
        found = check(**arguments)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_a_room_is_two_folders(self):
        self.assertEqual([rooms.room_of(path) for path in (
            "core/comm/nccl/x.h", "core/comm/testing/x.h", "datasets/x.h", "cli/trace/x.cc",
            "x.h")], ["core/comm", "core/comm", "datasets", "cli", ""])

    def test_what_is_drawn_is_there(self):
        self.assertEqual(check(), [])
        self.assertEqual(rooms.drawn(PAGE)["bench/run"], ["core/base"])

    def test_an_arrow_that_is_not_drawn(self):
        self.assert_finds("stress/run -> core/comm is not drawn",
                          stress__run__x_dot_cc=("core/comm/x.h",))

    def test_an_arrow_that_runs_up(self):
        self.assert_finds("core/comm/x.h:3: core/comm -> stress/run runs up",
                          core__comm__x_dot_h=("stress/run/y.h",))
        self.assert_finds("core/base -> core/comm runs up",
                          core__base__x_test_dot_cc=("core/comm/x.h",))
        self.assertEqual(check(stress__run__x_test_dot_cc=("core/comm/x.h",)), [])  # a test: down

    def test_a_circle(self):
        found = check(core__base__base_dot_h=("bench/run/run.h",))
        self.assertIn("a circle: core/base -> bench/run -> core/base", "\n".join(found))

    def test_suites_know_nothing_of_each_other(self):
        self.assert_finds("bench/run must not include stress/run",
                          bench__run__run_dot_h=("stress/run/x.h",))

    def test_rooms_that_the_drawing_lacks_or_only_the_drawing_has(self):
        self.assert_finds("the drawing lacks core/new", core__new__x_dot_h=())
        self.assert_finds("the drawing has core/old, which is no room",
                          page=PAGE.replace("└", "│ core/old gone │\n└"))

    def test_arrows_that_no_source_has(self):
        self.assert_finds("stress/run -> core/comm, which no source includes",
                          page=PAGE.replace("cases →", "cases → core/comm"))
        self.assert_finds("cli -> core/base, which follows from its other arrows",
                          page=PAGE.replace("→ bench/kind", "→ bench/kind core/base"))

    def test_a_header_of_no_room(self):
        self.assert_finds('core/comm/x.h:3: "neighbour.h" is in no room',
                          core__comm__x_dot_h=("neighbour.h",))
        self.assertEqual(check(core__comm__x_dot_h=("mpi.h", "fmt/core.h")), [])

    def test_exceptions_only_shrink(self):
        up = {"core__comm__x_dot_h": ("stress/run/y.h", "stress/run/z.h")}
        self.assertEqual(check(known={"core/comm -> stress/run": 2}, **up), [])
        self.assertEqual(len(check(known={"core/comm -> stress/run": 1}, **up)), 2)
        self.assert_finds("core/comm -> stress/run has 2 includes, not 3",
                          known={"core/comm -> stress/run": 3}, **up)
        circle = {"core__base__base_dot_h": ("core/comm/x.h",)}
        self.assertEqual(check(known={"core/base -> core/comm": 1}, **circle), [])

    def test_what_is_drawn_anew(self):
        page = rooms.redrawn(texts_of(stress__run__x_dot_cc=("core/comm/x.h",)), PAGE)
        self.assertEqual(rooms.drawn(page), {
            "cli": ["bench/kind"], "bench/kind": ["bench/run"], "bench/run": ["core/base"],
            "stress/run": ["core/comm"], "core/comm": ["core/base"], "core/base": []})
        self.assertEqual({len(line) for line in page.split("\n") if "│" in line or "─" in line},
                         {len(page.split("\n")[2])})
        self.assertTrue(page.startswith("# A page\n\n┌─ above ─") and page.endswith("The end.\n"))
        many = {"core/r%02d" % number: () for number in range(12)}
        texts = texts_of(**{"cli__main_dot_cc": tuple(room + "/x.h" for room in many)})
        texts.update({room + "/x.h": "" for room in many})
        page = rooms.redrawn(texts, PAGE.replace("└", "".join(
            "│ %s │\n" % room for room in many) + "└"))
        self.assertEqual(rooms.drawn(page)["cli"], ["bench/kind", *many])  # on several lines
        self.assertEqual(rooms.redrawn(texts, page), page)


if __name__ == "__main__":
    unittest.main()
