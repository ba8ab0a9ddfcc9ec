"""Parts of a training step or a load, as figures and tables name them."""

import units

MOST_BARS = 24
# The class, so the colour, of a part of a step.
PART_CLASS = {"buffer_broadcast_ns": "p0", "forward_ns": "p1", "backward_ns": "p2",
              "exposed_communication_ns": "p3", "copy_back_ns": "p4"}


def follows(part):
    """Parts of the slowest rank follow each other and add up; communication runs beside them."""
    return part.units == "ns" and part.over == "slowest" and part.name != "communication_ns"


def word_of(part_name):
    return part_name.removesuffix("_ns").replace("_", " ")


def table(run, cases):
    """(headers, rows)."""
    names = [part.name for part in run.parts[cases[0]["case"]]]
    rows = []
    for case in cases:
        found = {part.name: units.part(part) for part in run.parts[case["case"]]}
        rows.append([case["name"], units.median_of(case), units.precision_of(case)] +
                    [found.get(name, "–") for name in names])
    return ["case", "step", "± 95 %"] + [word_of(name) for name in names], rows
