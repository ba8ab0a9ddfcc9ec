"""The figures of a page as files: the same drawings, with the page's colours written out, light
and, for browsers that ask for it, dark."""

import os
import re
import shutil
import subprocess

_HERE = os.path.dirname(os.path.abspath(__file__))
_PIXELS = 1440  # width of a PNG


class NotDrawn(Exception):
    """One line: what is missing, what to do."""


def _style():
    """The rules for drawings, every variable replaced by its value: programs that draw PNG know no
    variables, and take the light ones."""
    with open(os.path.join(_HERE, "page.css"), encoding="utf-8") as file:
        css = file.read()
    rules = re.search(r"/\* drawings \*/(.*?)/\* end of drawings \*/", css, re.S).group(1)
    rules += ".ground { fill: var(--ground); }"
    light, dark = [dict(re.findall(r"(--[a-z0-9-]+):\s*([^;]+);", scheme)) for scheme in
                   re.findall(r":root\s*\{(.*?)\}", css, re.S)]
    return "%s@media screen and (prefers-color-scheme: dark) {%s}" % (
        _with(light, rules), _with(dark, rules))


def _with(values, rules):
    return re.sub(r"var\((--[a-z0-9-]+)\)", lambda match: values[match.group(1)], rules)


def standalone(figure, style):
    width, height = re.search(r'viewBox="0 0 (\S+) (\S+)"', figure.svg).groups()
    head = '<svg width="%s" height="%s" ' % (width, height)
    body = figure.svg.replace("<svg ", head, 1)
    ground = '<rect width="100%" height="100%" class="ground"/>'
    return body.replace("<title", "<style>%s</style>%s<title" % (style, ground), 1) + "\n"


def write(figures, folder):
    """Writes SLUG.svg and SLUG.png for each figure."""
    converter = shutil.which("rsvg-convert")
    if not converter:
        raise NotDrawn("--figures needs rsvg-convert for PNG; apt-get install librsvg2-bin")
    style = _style()
    try:
        os.makedirs(folder, exist_ok=True)
        for figure in figures:
            path = os.path.join(folder, re.sub(r"[^A-Za-z0-9._-]", "_", figure.slug))
            with open(path + ".svg", "w", encoding="utf-8") as file:
                file.write(standalone(figure, style))
            done = subprocess.run([converter, "--width=%d" % _PIXELS, "--keep-aspect-ratio",
                                   "--output=" + path + ".png", path + ".svg"], timeout=60,
                                  stderr=subprocess.PIPE, check=False)
            if done.returncode:
                raise NotDrawn("%s.svg: rsvg-convert: %s; is the disk full?" % (
                    path, done.stderr.decode("utf-8", "replace").strip()))
    except OSError as error:
        raise NotDrawn("%s: cannot be written (%s); name another --figures" % (
            folder, error.strerror)) from error
