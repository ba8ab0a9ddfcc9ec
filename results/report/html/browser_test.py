#!/usr/bin/python3
"""The page in a browser: at the width of a phone and of a desk, dark, printed; without a complaint
on the console and without a request. Measured are places and colours, never pixels. BUILD skips it
without chromium."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("results/report/html/testing"))
# pylint: disable=wrong-import-position
from pages import DIRECTORY, make_examples, page_of, path_of  # noqa: E402

_PHONE, _DESK = 390, 1280
_LARGE_CASES = 10000
_ELEMENTS_A_CASE = 40
_DARK = "--blink-settings=preferredColorScheme=0"

# Loads the page in a frame of the asked width, then tells what it found as the text of <pre>.
_PROBE = """<!DOCTYPE html><body style="margin:0"><pre id="found"></pre>
<iframe id="page" width="%d" height="900" style="border:0" src="%s"></iframe>
<script>
// Red, green, blue and how opaque, of a computed colour.
const parts = (text) => {
  const [r, g, b, a] = text.match(/[0-9.]+/g).map(Number);
  return [r, g, b, a === undefined ? 1 : a];
};
const luminance = (colour) => {
  const [r, g, b] = colour.map((c) => c / 255).map(
      (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const layout = (inside, width) => {
  const document = inside.document, seen = (e) => e.checkVisibility() && e.textContent.trim();
  const right = (e) => e.getBoundingClientRect().right;
  const name = (e) => `${e.tagName}.${e.className}: ${e.textContent.trim().slice(0, 40)}`;
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parts(inside.getComputedStyle(e).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255, 1];
  };
  const contrast = (e) => {
    const pair = [parts(inside.getComputedStyle(e).color), ground(e)].map(luminance);
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  };
  const texts = [...document.querySelectorAll("body *:not(svg *, script, style, .skip)")].filter(
      (e) => seen(e) && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
  const culprits = [...document.querySelectorAll(".calls .culprit")].filter(seen);
  return {
    culprits: culprits.length, culprits_out: culprits.filter((e) => right(e) > width).map(name),
    outcomes_out: [...document.querySelectorAll(".cases tbody td:nth-child(2)")].filter(
        (e) => seen(e) && right(e) > width).map(name),
    loose: [...document.querySelectorAll("table, pre")].filter(
        (e) => !e.closest(".scroll") && seen(e) && right(e) > width).map(name),
    stacks: document.querySelectorAll("details.stacks").length,
    unfolded: document.querySelectorAll(
        "details.stacks[open], details.more[open], details.unmeasured[open]").length,
    texts: texts.length, pale: texts.filter((e) => contrast(e) < 4.5).map(name),
  };
};
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
    ...layout(inside, event.target.width),
    unfocusable: [...inside.document.querySelectorAll(".scroll")].filter(
        (e) => e.tabIndex !== 0 || !e.getAttribute("aria-label")).length });
});
</script>"""


def chromium(*arguments):
    """What it wrote to stdout; its log, where pages complain."""
    home = tempfile.mkdtemp(dir=DIRECTORY)
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
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
    page_of(*names)
    return "-".join(names) + ".html"


class BrowserTest(unittest.TestCase):
    def test_the_probe_sees_what_is_wrong(self):
        with open(path_of("wrong.html"), "w", encoding="utf-8") as file:
            file.write('<div style="width:2000px">x</div><img src="http://127.0.0.1:9/a">'
                       '<script>console.error("oh"); nothing();</script><div class=scroll></div>'
                       '<table class=calls><th style="min-width:600px;color:#777" class=culprit>'
                       'rank 1</table><details class=stacks open>s</details>')
        found, said = look("wrong.html", _PHONE)
        self.assertGreater(found["width"], _PHONE)
        self.assertTrue(found["requests"] or any("127.0.0.1" in line for line in said), found)
        self.assertTrue(any("oh" in line for line in said), said)
        self.assertTrue(any("nothing is not defined" in line for line in said), said)
        self.assertEqual(found["unfocusable"], 1)
        self.assertEqual((found["unfolded"], len(found["loose"])), (1, 1))
        for what in ("culprits_out", "pale"):
            self.assertEqual(found[what], ["TH.culprit: rank 1"])

    def check(self, page, width, *arguments):
        found, said = look(page, width, *arguments)
        self.assertEqual(said, [])
        self.assertEqual(found["requests"], [])
        self.assertLessEqual(found["width"], width, "the page scrolls sideways")
        self.assertGreater(found["drawings"], 0)
        self.assertEqual((found["flat"], found["unfocusable"], found["unfolded"]), (0, 0, 0))
        for what in ("culprits_out", "outcomes_out", "loose", "pale"):
            self.assertEqual(found[what], [], what)
        self.assertGreater(found["texts"], 10)
        return found

    def test_phone_and_desk(self):
        failing, both = make_page("failing"), make_page("steps", "corrupt", "links")
        self.check(failing, _PHONE)
        self.check(failing, _DESK)
        self.check(both, _PHONE)

    def test_a_hang(self):
        """Who hangs is in sight without scrolling sideways; stacks are folded."""
        page = make_page("hanging")
        for width in (_PHONE, _DESK):
            for scheme in ([], [_DARK]):
                found = self.check(page, width, *scheme)
                self.assertEqual((found["culprits"], found["stacks"]), (2, 2))

    def test_what_was_ended_early(self):
        page = make_page("interrupted", "steps")
        self.check(page, _PHONE, _DARK)
        self.check(page, _DESK)

    def test_dark(self):
        page = make_page("passing")
        light = self.check(page, _DESK)
        self.assertEqual(light["filtered"], ["all_reduce/8B/in_place"])
        dark = self.check(page, _DESK, _DARK)
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
    make_examples()
    subprocess.run(["results/large_run", path_of("large.h5"), str(_LARGE_CASES)], check=True)
    unittest.main()
