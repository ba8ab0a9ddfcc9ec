"""What tests of the page share: example runs, pages of them, and what a page holds."""

import functools
import html.parser
import os
import re
import subprocess
import tempfile

HERE = "results/report/html"
LOCKSTEP = os.path.abspath("cli/lockstep")
RUNS = ("passing", "failing", "corrupt", "steps", "links", "interrupted", "hanging",
        "watched")
DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def path_of(name):
    return os.path.join(DIRECTORY, name)


def report(*arguments):
    done = subprocess.run([LOCKSTEP, "report"] + list(arguments), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


@functools.lru_cache(maxsize=None)
def page_of(*names):
    """The page of example runs, made once."""
    target = path_of("-".join(names) + ".html")
    code, out, err = report(*[path_of(name + ".h5") for name in names], "--output", target)
    assert (code, out, err) == (0, "", ""), (code, out, err)
    return text_of(target)


def text_of(target):
    with open(target, encoding="utf-8") as file:
        return file.read()


def make_examples():
    subprocess.run(["results/example_runs", DIRECTORY], check=True)


class Outline(html.parser.HTMLParser):
    """What is checked of a page; a tag that does not close is an AssertionError."""

    _VOID = {"meta", "link", "input", "br", "wbr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.sources = [], [], [], []
        self.headings, self.drawings, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a":
            self.links.append(values["href"])
        self.sources += [values[name] for name in ("src", "href", "xlink:href", "srcset", "action")
                         if name in values and tag != "a"]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "svg":
            self.drawings.append(values)
        if tag not in self._VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        if "id" in dict(attrs):
            self.ids.append(dict(attrs)["id"])

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    def text(self):
        return " ".join(" ".join(self.words).split())
