#!/usr/bin/python3
"""The page in a browser: at the width of a phone and of a desk, dark, printed; without a complaint
on the console and without a request. Skipped, and says so, without chromium."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

_LOCKSTEP = os.path.abspath("cli/lockstep")
_DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
_CHROMIUM = shutil.which("chromium")
_PHONE, _DESK = 390, 1280
_LARGE_CASES = 10000
_ELEMENTS_A_CASE = 40

# Loads the page in a frame of the asked width, then tells what it found as the text of <pre>.
_PROBE = """<!DOCTYPE html><body style="margin:0"><pre id="found"></pre>
<iframe id="page" width="%d" height="900" style="border:0" src="%s"></iframe>
<script>
document.getElementById("page").addEventListener("load", (event) => {
  const inside = event.target.contentWindow, root = inside.document.documentElement;
  const height = root.getBoundingClientRect().height;  // forces the layout
  const shown = [...inside.document.querySelectorAll("svg")].filter((e) => e.checkVisibility());
  const filter = inside.document.getElementById("filter");
  let filtered = null;
  if (filter) {
    filter.value = "IN_PLACE all";
    filter.dispatchEvent(new inside.Event("input"));
    filtered = [...inside.document.querySelectorAll(".cases tbody tr")].filter((e) => !e.hidden)
        .map((e) => e.firstElementChild.textContent);
  }
  document.getElementById("found").textContent = JSON.stringify({ filtered,
    width: root.scrollWidth, height, elements: inside.document.getElementsByTagName("*").length,
    requests: inside.performance.getEntriesByType("resource").map((entry) => entry.name),
    drawings: shown.length, flat: shown.filter((e) => e.getBoundingClientRect().height < 20).length,
    ground: inside.getComputedStyle(root).backgroundColor,
    unfocusable: [...inside.document.querySelectorAll(".scroll")].filter(
        (e) => e.tabIndex !== 0 || !e.getAttribute("aria-label")).length });
});
</script>"""


def path_of(name):
    return os.path.join(_DIRECTORY, name)


def chromium(*arguments):
    """What it wrote to stdout; its log, where pages complain."""
    home = tempfile.mkdtemp(dir=_DIRECTORY)
    done = subprocess.run(
        [_CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--allow-file-access-from-files", "--enable-logging=stderr", "--user-data-dir=" + home,
         *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
        env=dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home))
    shutil.rmtree(home, ignore_errors=True)
    return done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def look(page, width, *arguments):
    """(what the probe found, what the console said)."""
    with open(path_of("probe.html"), "w", encoding="utf-8") as file:
        file.write(_PROBE % (width, page))
    out, log = chromium("--dump-dom", "--window-size=1400,1000", *arguments,
                        "file://" + path_of("probe.html"))
    found = re.search(r'<pre id="found">(\{.*?\})</pre>', out, re.S)
    assert found, "chromium did not load %s: %s" % (page, log[-2000:])
    said = [line for line in log.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found.group(1))), said


def make_page(*names):
    target = path_of("-".join(names) + ".html")
    subprocess.run([_LOCKSTEP, "report", *[path_of(name + ".h5") for name in names],
                    "--output", target],
                   check=True)
    return os.path.basename(target)


class BrowserTest(unittest.TestCase):
    def test_the_probe_sees_what_is_wrong(self):
        with open(path_of("wrong.html"), "w", encoding="utf-8") as file:
            file.write('<div style="width:2000px">x</div><img src="http://127.0.0.1:9/a">'
                       '<script>console.error("oh"); nothing();</script><div class=scroll>')
        found, said = look("wrong.html", _PHONE)
        self.assertGreater(found["width"], _PHONE)
        self.assertTrue(found["requests"] or any("127.0.0.1" in line for line in said), found)
        self.assertTrue(any("oh" in line for line in said), said)
        self.assertTrue(any("nothing is not defined" in line for line in said), said)
        self.assertEqual(found["unfocusable"], 1)

    def check(self, page, width, *arguments):
        found, said = look(page, width, *arguments)
        self.assertEqual(said, [])
        self.assertEqual(found["requests"], [])
        self.assertLessEqual(found["width"], width, "the page scrolls sideways")
        self.assertGreater(found["drawings"], 0)
        self.assertEqual((found["flat"], found["unfocusable"]), (0, 0))
        return found

    def test_phone_and_desk(self):
        failing, both = make_page("failing"), make_page("steps", "corrupt", "links")
        self.check(failing, _PHONE)
        self.check(failing, _DESK)
        self.check(both, _PHONE)

    def test_dark(self):
        page = make_page("passing")
        light = self.check(page, _DESK)
        self.assertEqual(light["filtered"], ["all_reduce/8B/in_place"])
        dark = self.check(page, _DESK, "--blink-settings=preferredColorScheme=0")
        self.assertEqual(light["ground"], "rgb(255, 255, 255)")
        self.assertNotEqual(dark["ground"], light["ground"])

    def test_print(self):
        page = make_page("failing")
        chromium("--print-to-pdf=" + path_of("page.pdf"), "file://" + path_of(page))
        with open(path_of("page.pdf"), "rb") as file:
            content = file.read()
        self.assertTrue(content.startswith(b"%PDF-"))
        self.assertGreater(len(content), 20000)

    def test_ten_thousand_cases(self):
        """What a browser lays out and draws, not how long that takes it."""
        found = self.check(make_page("large"), _PHONE)
        print("%d cases: %d elements, %d drawings" % (
            _LARGE_CASES, found["elements"], found["drawings"]))
        self.assertLess(found["elements"], _ELEMENTS_A_CASE * _LARGE_CASES)


if __name__ == "__main__":
    if not _CHROMIUM:
        print("SKIPPED: no chromium; apt-get install chromium")
        sys.exit(0)
    subprocess.run(["results/example_runs", _DIRECTORY], check=True)
    subprocess.run(["results/large_run", path_of("large.h5"), str(_LARGE_CASES)], check=True)
    unittest.main()
