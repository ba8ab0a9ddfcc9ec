#!/usr/bin/env python3
"""Prints what a `bazel test --build_event_json_file` came to; the last line counts."""

import argparse
import collections
import json
import sys
import urllib.parse

# https://bazel.build/reference/exit-code: 0 is success, 3 is "some tests failed", 4 is "no tests".
_TIMED_OUT = (124, 137)


def read_events(path):
    """The events of the file up to a line that was cut off; none when there is no file."""
    events = []
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                events.append(json.loads(line))
    except (OSError, ValueError):
        pass
    return events


def outcomes(events):
    """{label: 'passed' | 'failed: why' | 'skipped'} of every test target in the events."""
    found = {}
    tests = set()
    for event in events:
        identity = event.get("id", {})
        if "targetConfigured" in identity:
            kind = event.get("configured", {}).get("targetKind", "")
            if kind.endswith("_test rule"):
                tests.add(identity["targetConfigured"]["label"])
        elif "targetCompleted" in identity:
            label = identity["targetCompleted"]["label"]
            if event.get("aborted", {}).get("reason") == "SKIPPED":
                found[label] = "skipped"
            elif not event.get("completed", {}).get("success"):
                found.setdefault(label, "failed: did not build")
        elif "testSummary" in identity:
            status = event.get("testSummary", {}).get("overallStatus", "NO_STATUS")
            label = identity["testSummary"]["label"]
            found[label] = "passed" if status == "PASSED" else "failed: " + status.lower()
    for label in tests - set(found):
        found[label] = "failed: was not run"
    return {label: what for label, what in found.items() if label in tests}


def ran(events):
    """The outcomes of those that were not skipped."""
    return {label: what for label, what in outcomes(events).items() if what != "skipped"}


def logs_of(events):
    """{label: paths of its logs}."""
    logs = collections.defaultdict(list)
    for event in events:
        for output in event.get("testResult", {}).get("testActionOutput", []):
            if output.get("name") == "test.log" and "uri" in output:
                path = urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
                logs[event["id"]["testResult"]["label"]].append(path)
    return logs


def summarize(found, bazel_exit, layering_exit):
    """(lines to print, exit code). Whatever went wrong is counted as failed at least once."""
    lines = ["%s  %s" % item for item in sorted(found.items()) if item[1] != "passed"]
    passed = sum(what == "passed" for what in found.values())
    skipped = sum(what == "skipped" for what in found.values())
    failed = len(found) - passed - skipped
    if bazel_exit in _TIMED_OUT:
        lines.append("bazel test ran out of time")
    if bazel_exit != 0 and failed == 0:
        lines.append("bazel test ended with exit code %d" % bazel_exit)
        failed += 1
    elif passed == 0 and failed == 0:
        lines.append("no test was run")
        failed += 1
    if layering_exit == 0:
        passed += 1
    else:
        lines.append("--config=layering  failed: exit code %d" % layering_exit)
        failed += 1
    counts = "%d passed, %d failed" % (passed, failed)
    lines.append(counts + (", %d skipped" % skipped if skipped else ""))
    return lines, 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("events")
    parser.add_argument("--bazel-exit", type=int, required=True)
    parser.add_argument("--layering-exit", type=int, required=True)
    arguments = parser.parse_args()
    found = outcomes(read_events(arguments.events))
    lines, code = summarize(found, arguments.bazel_exit, arguments.layering_exit)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
