"""Environment of the runs, and what differs between them."""

import collections
import re

import units

# Facts that differ between any two launches and decide nothing.
_PASSING = re.compile(r"jobid|session|_uri|pid|tmpdir|precondition|memory_available|"
                      r"initial_wdir|clock_offset|server|nonce|namespace", re.IGNORECASE)


def differences(runs):
    """[[fact, value of each run …]] that differ, passing ones left out."""
    names = sorted(set().union(*(run.environment for run in runs)))
    found = []
    for name in names:
        values = [run.environment.get(name, "–") for run in runs]
        if len(set(values)) > 1 and not _PASSING.search(name):
            found.append([name] + values)
    return found


def facts(run):
    """{group: [(fact, value)]}."""
    groups = collections.OrderedDict()
    for path in sorted(run.environment):
        group, _, fact = path.rpartition("/")
        groups.setdefault(group or "facts", []).append((fact, run.environment[path]))
    return groups


def floors(run):
    """[(name in words, value with unit)]."""
    rows = []
    for name, value in sorted(run.floors.items()):
        if "_gbps" in name:
            rows.append((name.replace("_gbps", "").replace("_", " "), units.bandwidth(value)))
        elif name.endswith("_ns"):
            rows.append((name[:-3].replace("_", " "), units.duration(value)))
        else:
            rows.append((name.replace("_", " "), units.plain(value)))
    return rows
