"""What a person reads instead of a run's id: the name of its file, or program and time of day where
the file has the name that Lockstep gave it."""

import os
import re

_GIVEN = re.compile(r"\d{8}T\d{6}Z-(.+)-[0-9a-f]{8}")


def time_of_day(stamp):
    """"2026-11-23 13:14:32 UTC" of "2026-11-23T13:14:32Z"."""
    return stamp.replace("T", " ").replace("Z", " UTC")


def _name(run, depth):
    """With so many parts of the path."""
    parts = os.path.abspath(run.path).removesuffix(".h5").split(os.sep)
    if depth == 1 and _GIVEN.fullmatch(parts[-1]):
        return "%s %s" % (run.name, time_of_day(run.started_at))
    return "/".join(parts[-depth:])


def give(runs):
    """Sets `shown` of each run, as short as keeps them apart; `key` names it in anchors."""
    names = []
    for depth in range(1, 9):
        names = [_name(run, depth) for run in runs]
        if len(set(names)) == len(names):
            break
    for place, (run, name) in enumerate(zip(runs, names)):
        again = names[:place].count(name)  # a file that was named twice
        run.shown = "%s (%d)" % (name, again + 1) if again else name
        run.key = "%s-%d" % (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-"), place) \
            if len(runs) > 1 else re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
