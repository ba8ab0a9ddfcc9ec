#!/usr/bin/env python3
"""results/schema.md and what h5py finds in written files say the same, in both directions."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import pandas
except ImportError as error:
    print("SKIPPED: %s; apt-get install python3-h5py python3-pandas" % error)
    sys.exit(0)

_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
_SCHEMA = "results/schema.md"
_OF_SCALES = {"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS"}


def general(path):
    """/cases/17/samples -> /cases/n/samples"""
    path = re.sub(r"^/(cases|history)/\d+", r"/\1/n", path)
    return re.sub(r"^(/cases/n/parts)/.+", r"\1/PART", path)


def section_of(path):
    """The heading of schema.md under which an object is documented."""
    if path == "/":
        return "Attributes of /"
    for prefix, heading in (("/cases/n", "/cases/n"), ("/history", "/history and /history/n")):
        if path.startswith(prefix):
            return heading
    if path.startswith("/links"):
        return "/links"
    if path in ("/summary", "/parts", "/effects", "/operations", "/wrong", "/verdicts/outcomes",
                "/verdicts/findings", "/verdicts/trials", "/verdicts/evidence",
                "/verdicts/sockets", "/recovery", "/arrivals", "/clocks",
                "/clock_anchors", "/gpu_samples", "/logs", "/watch/ranks", "/watch/places",
                "/watch/waited_for", "/watch/calls"):
        return path
    return "Groups"


def sections():
    found, heading = {}, None
    for line in open(_SCHEMA, encoding="utf-8"):
        match = re.match(r"### ([^:\n]*)", line)
        if match:
            heading = match.group(1).strip()
        if heading:
            found[heading] = found.get(heading, "") + line
    return found


class SchemaTest(unittest.TestCase):
    def setUp(self):
        self.sections = sections()
        self.names = {}  # section -> every attribute, column and dataset that files have there

    def expect(self, path, name):
        heading = section_of(path)
        self.names.setdefault(heading, set()).add(name)
        documented = re.findall(r"`([^`]+)`", self.sections[heading])
        self.assertIn(name, documented, "%s of %s is not in section '%s'" % (name, path, heading))

    def expect_unit(self, path, name, unit):
        for line in self.sections[section_of(path)].split("\n"):
            if "`%s`" % name in line and unit in line:
                return
        self.fail("unit %s of %s in %s is not documented" % (unit, name, path))

    def check_object(self, path, item):
        if path.startswith("/environment/"):
            return  # facts; their names are the machine's
        for name in item.attrs:
            free = path in ("/environment", "/floors", "/cases/n/settings")
            if free or name in _OF_SCALES or name == "units":
                continue
            if name.endswith(".units"):
                self.expect_unit(path, name[:-len(".units")], item.attrs[name])
            else:
                self.expect(path, name)
        if isinstance(item, h5py.Group):
            if section_of(path) == "Groups":
                self.expect(path, path)
            elif path.startswith("/cases/n/"):
                self.expect(path, path.rsplit("/", 1)[1])
        elif item.dtype.names:
            for name in item.dtype.names:
                self.expect(path, name)
        else:
            parent, name = path.rsplit("/", 1)
            self.expect(path, path if parent == "/plan" else name)
            if "units" in item.attrs and not path.endswith("/PART"):
                self.expect_unit(path, name, item.attrs["units"])

    def test_everything_in_a_file_is_documented_and_the_reverse(self):
        for name in ("passing.h5", "failing.h5", "corrupt.h5", "steps.h5", "links.h5",
                     "watched.h5"):
            with h5py.File(os.path.join(_DIRECTORY, name), "r") as file:
                self.check_object("/", file)
                file.visititems(lambda path, item: self.check_object(general("/" + path), item))
        for heading, text in self.sections.items():
            first_cells = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+)", text, re.MULTILINE)
            self.assertTrue(first_cells, heading)
            for cell in first_cells:
                for name in re.findall(r"`([^`]+)`", cell):
                    self.assertIn(name, self.names[heading], "documented, but in no file")

    def test_the_three_lines_for_pandas(self):
        code = re.search(r"```python\n(.*?)```", open(_SCHEMA, encoding="utf-8").read(), re.S)
        lines = code.group(1).replace("RUN.h5", os.path.join(_DIRECTORY, "passing.h5"))
        self.assertEqual(lines.count("\n"), 3)
        names = {}
        exec(lines, names)  # pylint: disable=exec-used
        summary = names["summary"]
        self.assertIsInstance(summary, pandas.DataFrame)
        self.assertEqual(list(summary["name"])[:2], ["all_reduce/8B", "all_reduce/64MiB"])
        self.assertEqual(summary["median_ns"][0], 850.0)
        self.assertEqual(list(summary["verdict"].unique()), ["pass"])
        self.assertTrue(summary["in_place"].dtype == bool and summary["in_place"][2])
        self.assertTrue(summary["bus_gbps"].isna()[3])

    def test_samples_have_scales_and_labels(self):
        with h5py.File(os.path.join(_DIRECTORY, "passing.h5"), "r") as file:
            entry = file["cases/0/samples/entry_ns"]
            self.assertEqual([axis.label for axis in entry.dims], ["iteration", "rank"])
            self.assertEqual(list(entry.dims[0]["round"]), [0, 0, 1, 1, 2])
            self.assertEqual(list(entry.dims[1]["rank"]), [0, 1])
            self.assertEqual(list(entry[1]), [1000, 1001])

    def test_parts_have_units_scales_and_labels(self):
        with h5py.File(os.path.join(_DIRECTORY, "steps.h5"), "r") as file:
            forward = file["cases/0/parts/forward_ns"]
            self.assertEqual(forward.attrs["units"], "ns")
            self.assertEqual([axis.label for axis in forward.dims], ["iteration", "rank"])
            self.assertEqual(list(forward.dims[0]["round"]), [0, 0, 1, 1, 2])
            self.assertEqual(list(forward[0]), [5e6, 5e6 + 1])
            self.assertEqual(file["cases/1/settings"].attrs["bucket_cap_mb"], "10")

    def test_enumerations_of_the_history_carry_their_names(self):
        with h5py.File(os.path.join(_DIRECTORY, "failing.h5"), "r") as file:
            kinds = h5py.check_enum_dtype(file["history/0"].dtype["kind"])
            self.assertEqual(file["history/0"]["kind"][1], kinds["death"])


if __name__ == "__main__":
    subprocess.run(["results/example_runs", _DIRECTORY], check=True)
    unittest.main()
