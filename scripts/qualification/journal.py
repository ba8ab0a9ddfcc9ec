"""What was run: a file of JSON lines. A launch counts when its `end` line is there: never twice,
since its name is looked up, and never lost, since its result file is fsynced and renamed before
that line.
"""

import fcntl
import json
import os
import time

from launches import JsonLines, sync_folder


_MOST_PAUSE_S = 24 * 3600  # of a run that goes on: what is older says nothing about now


class JournalError(ValueError):
    """One line: the input, the reason, the remedy."""


class Journal:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self._lock = open(os.path.join(folder, "lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise JournalError("%s: another nightly runs there; wait for it, or name another "
                               "--output-folder" % folder) from None
        self._lines = JsonLines(os.path.join(folder, "state.jsonl"))
        self.path = self._lines.path
        self.plan = None
        self.ended = {}    # launch -> its end
        self.attempts = {}  # launch -> how often it was begun
        self.spent = 0.0   # seconds of launches, those that were cut off included
        self.resumed = 0
        self.last = 0.0    # when the newest launch ended
        self._open = None  # a start without an end
        for number, line in enumerate(self._lines.lines, start=1):
            try:
                self._apply(json.loads(line))
            except (ValueError, KeyError, TypeError):
                raise JournalError("%s:%d: is no state of nightly; move the file away, or name "
                                   "another --output-folder" % (self.path, number)) from None

    def _apply(self, event):
        kind = event["event"]
        if kind in ("plan", "end"):
            self.last = float(event["at"])
        if kind == "plan":
            self.plan = event
        elif kind == "start":
            self.attempts[event["launch"]] = self.attempts.get(event["launch"], 0) + 1
            self._open = event
        elif kind == "end":
            self.ended[event["launch"]] = event
            self.spent += event["seconds"]
            self._open = None
        elif kind == "resume":
            self.spent += event["charged"]
            self.resumed += 1
            self._open = None

    def _append(self, event):
        self._lines.append(event)
        self._apply(event)

    def close(self):
        self._lines.close()
        self._lock.close()

    def finished(self, plan, name):
        """None, or what to say when an earlier process finished here: file `name` has its answer.
        It holds for the time when it was measured, so it is inconclusive for now."""
        self._check_plan(plan)
        path = os.path.join(self.folder, name)
        if self.plan is None:
            return None
        if not os.path.exists(path):
            if time.time() - self.last > _MOST_PAUSE_S:
                raise JournalError("%s: was begun on %s, and what is done in it is %s old; move it "
                                   "away, or name another --output-folder" % (
                                       self.folder, minute(self.plan["at"]),
                                       age(time.time() - self.last)))
            return None
        try:
            with open(path, encoding="utf-8") as file:
                earlier = json.load(file)
            found = str(earlier.get("verdict") or earlier["headline"])
        except (ValueError, KeyError, AttributeError):
            raise JournalError("%s: is no answer of an earlier run; move the folder away, or name "
                               "another --output-folder" % path) from None
        return {"verdict": "NOT RUN", "exit_code": 3, "earlier": earlier,
                "headline": "NOT RUN: %s was finished on %s, %s ago: %s. Nothing was run now; give "
                            "another --output-folder, or none for a folder of tonight" % (
                                self.folder, minute(self.last), age(time.time() - self.last),
                                found)}

    def _check_plan(self, plan):
        if self.plan is not None and self.plan["hash"] != plan.hash:
            raise JournalError("%s: is of another plan (%s); name another --output-folder, or "
                               "give the "
                               "same plan" % (self.path, self.plan["path"]))

    def begin(self, plan):
        """Begins, or goes on where an earlier process ended."""
        self._check_plan(plan)
        if self.plan is None:
            self._append({"event": "plan", "hash": plan.hash, "name": plan.name,
                          "path": plan.path, "at": time.time()})
        else:
            # The time of a launch that was cut off is spent, though nobody knows it exactly.
            charged = 0.0
            if self._open is not None:
                passed = max(0.0, time.time() - self._open["at"])
                charged = min(passed, self._open["limit"])
            self._append({"event": "resume", "charged": charged, "at": time.time()})

    def start(self, launch, limit):
        self._append({"event": "start", "launch": launch, "limit": limit, "at": time.time()})

    def end(self, launch, **facts):
        self._append(dict(facts, event="end", launch=launch, at=time.time()))


def tonight(root):
    """Below `root`. A night lasts from noon to noon; its name is the day on which it begins."""
    return os.path.join(root, time.strftime("%Y-%m-%d", time.localtime(time.time() - 12 * 3600)))


def minute(at):
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def age(seconds):
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return "%d %s" % (seconds // length, unit)
    return "%.0f s" % seconds


def write_whole(path, text):
    """The old content or the new one, whatever happens."""
    temporary = path + ".tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(os.path.dirname(path) or ".")
