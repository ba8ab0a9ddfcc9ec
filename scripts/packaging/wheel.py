"""Makes the Python wheel: the reader of run files, and the `lockstep` command for all that starts
no program, with its libraries inside. pip installs it where there is neither MPI nor a compiler.

  scripts/package wheel --output-folder=DIR [--built=BIN]
"""

import base64
import glob
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

import tree
from tree import SOURCES, CannotPackage, said

TARGET = "//cli:lockstep_portable"
# Of every Linux with Python: the C library's own, which the wheel's name promises.
_OF_GLIBC = re.compile(r"(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|util|resolv|anl))\.so\.\d+$")
_NEVER = re.compile(r"lib(mpi|mpich|open-rte|open-pal|gloo)\b")
_SUMMARY = "What the communication of data-parallel training does: verdicts, tables, run files"
_REQUIRES = ("h5py>=3.5", "jinja2>=3", "numpy", "pandas>=1.5")
_EPOCH = (2020, 1, 1, 0, 0, 0)  # of all members: the same tree makes the same wheel


def built_program(built):
    """The path of the program, which is built unless `built` names where it is."""
    if built is None:
        said("bazel", "build", "--config=stamped", TARGET, cwd=SOURCES, stdin=subprocess.DEVNULL)
        built = said("bazel", "info", "--config=stamped", "bazel-bin", cwd=SOURCES,
                     stdin=subprocess.DEVNULL).strip()
    program = os.path.join(built, TARGET[2:].replace(":", "/"))
    if not os.path.exists(program):
        raise CannotPackage(f"{program}: not found; bazel build {TARGET}")
    return program


def libraries_of(program):
    """{name: file} of what the program loads, the C library aside."""
    found = {}
    for line in said("ldd", program).splitlines():
        name, arrow, place = line.strip().partition(" => ")
        name = os.path.basename(name.split(" (")[0])
        if not arrow or _OF_GLIBC.match(name):
            continue
        if _NEVER.match(name):
            raise CannotPackage(f"{program} needs {name}, which no wheel holds")
        if not place.startswith("/"):
            raise CannotPackage(f"{program} needs {name}, which is not on this machine")
        found[name] = place.split(" (")[0]
    return found


def glibc_of(files):
    """The oldest C library that has all symbols: (2, 36)."""
    needed = {(2, 17)}
    for file in files:
        needed |= {tuple(map(int, version)) for version in
                   re.findall(r"\bGLIBC_(\d+)\.(\d+)", said("objdump", "-p", file))}
    return max(needed)


def stripped(file, folder):
    """Its bytes, without what only a debugger reads."""
    copy = os.path.join(folder, "stripped")
    said("strip", "--strip-unneeded", "-o", copy, os.path.realpath(file))
    with open(copy, "rb") as lean:
        return lean.read()


def copyrights_of(files):
    """{Debian package of a library: its copyright}"""
    real = [os.path.realpath(file) for file in files]
    # Since /lib is a link to /usr/lib, dpkg knows a file by either name only.
    done = subprocess.run(["dpkg-query", "--search", *real,
                           *(path.removeprefix("/usr") for path in real)],
                          capture_output=True, text=True, check=False)
    owners = {os.path.realpath(path): package for package, path in
              re.findall(r"^([^:,\s]+)(?::\w+)?: (/.*)$", done.stdout, re.MULTILINE)}
    for path in real:
        if path not in owners:
            raise CannotPackage(f"{path}: is of no Debian package, so its licence is not known")
    found = {}
    for package in set(owners.values()):
        with open(f"/usr/share/doc/{package}/copyright", "rb") as text:
            found[package] = text.read()
    return found


class Wheel:
    """Members: {path in the wheel: (bytes, mode)}."""

    def __init__(self, version):
        self.version = version
        self.info = f"lockstep-{version}.dist-info"
        self.members = {}

    def add(self, path, content, mode=0o644):
        self.members[path] = (content.encode() if isinstance(content, str) else content, mode)

    def add_files(self, folder, pattern, mode=0o644):
        """Those of the source tree that match; tests are no part of it."""
        paths = sorted(path for path in glob.glob(os.path.join(SOURCES, pattern))
                       if not path.endswith("_test.py"))
        if not paths:
            raise CannotPackage(f"{pattern}: no such file in {SOURCES}")
        for path in paths:
            with open(path, "rb") as file:
                self.add(f"{folder}/{os.path.basename(path)}", file.read(), mode)

    def add_sources(self):
        self.add_files("lockstep", "results/python/lockstep/*.py")
        for name in ("py.typed", "VERSION"):
            self.add_files("lockstep", "results/python/lockstep/" + name)
        with open(os.path.join(SOURCES, "scripts/packaging/lockstep_tool.py"), "rb") as file:
            self.add("lockstep_tool/__init__.py", file.read())
        report = "lockstep_tool/libexec/lockstep/report"
        for pattern in ("*.py", "*.html", "*.css", "*.js"):
            self.add_files(report, "results/report/html/" + pattern)
        self.add_files(report + "/figures", "results/report/html/figures/*.py")
        self.add_files("lockstep_tool/share/lockstep/datasets/manifests",
                       "datasets/manifests/*.json")
        self.add_files(self.info + "/licenses", "LICENSE")

    def add_program(self, program, libraries):
        with tempfile.TemporaryDirectory() as folder:
            self.add("lockstep_tool/bin/lockstep", stripped(program, folder), 0o755)
            for name, file in libraries.items():
                self.add(f"lockstep_tool/lib/{name}", stripped(file, folder), 0o755)
        for package, text in sorted(copyrights_of(libraries.values()).items()):
            self.add(f"{self.info}/licenses/{package}", text)

    def add_metadata(self, tag):
        requires = "".join(f"Requires-Dist: {one}\n" for one in _REQUIRES)
        self.add(f"{self.info}/METADATA",
                 f"Metadata-Version: 2.1\nName: lockstep\nVersion: {self.version}\n"
                 f"Summary: {_SUMMARY}\nLicense: Apache-2.0\nRequires-Python: >=3.11\n{requires}")
        self.add(f"{self.info}/WHEEL", "Wheel-Version: 1.0\nGenerator: lockstep\n"
                 f"Root-Is-Purelib: false\nTag: {tag}\n")
        self.add(f"{self.info}/entry_points.txt",
                 "[console_scripts]\nlockstep = lockstep_tool:main\n")
        self.add(f"{self.info}/RECORD", self.record())

    def record(self):
        lines = []
        for path, (content, _) in sorted(self.members.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            lines.append(f"{path},sha256={digest.decode()},{len(content)}\n")
        return "".join(lines) + f"{self.info}/RECORD,,\n"

    def write(self, path):
        """Whole or not at all; the record comes last, as pip wants it."""
        partial = path + ".partial"
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, (content, mode) in self.members.items():
                member = zipfile.ZipInfo(name, _EPOCH)
                member.external_attr = (0o100000 | mode) << 16
                member.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(member, content)
        os.replace(partial, path)


def make(output, options):
    """The path of the wheel; it is the same whatever the MPI."""
    program = built_program(options.built)
    libraries = libraries_of(program)
    wheel = Wheel(tree.version())
    major, minor = glibc_of([program, *libraries.values()])
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    wheel.add_sources()
    wheel.add_program(program, libraries)
    wheel.add_metadata(tag)
    path = os.path.join(output, f"lockstep-{wheel.version}-{tag}.whl")
    wheel.write(path)
    return path


def main(arguments):
    return tree.run("wheel", make, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
