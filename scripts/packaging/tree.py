"""What packages share: an installed tree of stripped programs, and what its files need."""
import argparse
import functools
import os
import re
import subprocess
import sys

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# Of every system with the C++ library that the programs were built with. libibverbs belongs to the
# drivers of the machine; a second one would come before the one that MPI was built with.
_BASE = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s|ibverbs))\.so")
MPI = {"libmpi.so.40": "Open MPI 4", "libmpich.so.12": "MPICH"}


class CannotPackage(Exception):
    """One line: what is missing, and the remedy."""


def said(*words, **how):
    """The standard output of a tool."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, **how)
    except FileNotFoundError:
        raise CannotPackage("'%s' is not installed; apt-get install dpkg-dev patchelf binutils" %
                            words[0]) from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason told"]
        raise CannotPackage("%s: %s" % (" ".join(words)[:100], lines[-1]))
    return done.stdout


def version():
    with open(os.path.join(SOURCES, "VERSION"), encoding="utf-8") as file:
        return file.read().strip()


def files_of(root):
    """Paths of all regular files, sorted."""
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(root)
                  for name in names if not os.path.islink(os.path.join(folder, name)))


def programs_of(root):
    """Programs and libraries for the processor."""
    found = []
    for path in files_of(root):
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                found.append(path)
    return found


def owners_of(paths):
    """Debian's packages of files. dpkg may know them by their names before /lib became /usr/lib.
    It reads all it knows at every call: so one call for all files."""
    real = [os.path.realpath(path) for path in paths]
    asked = [name for path in real for name in (path, path.removeprefix("/usr"))]
    done = subprocess.run(["dpkg-query", "--search", *asked], capture_output=True, text=True,
                          check=False)
    owners = {}
    for line in done.stdout.splitlines():
        package, _, path = line.rpartition(": ")
        owners.setdefault(path, package.split(":")[0])
    found = []
    for path in real:
        owner = owners.get(path) or owners.get(path.removeprefix("/usr"))
        if owner is None:
            raise CannotPackage("%s belongs to no package of this machine; install it with "
                                "apt-get" % path)
        found.append(owner)
    return found


def install(root, prefix, options):
    """Fills root/prefix; what a debugger reads of the programs is left out."""
    words = [os.path.join(SOURCES, "scripts/install"), "--destdir=" + root, "--prefix=" + prefix]
    said(*words, *(["--built=" + options.built] if options.built else []),
         *(["--mpi=" + options.mpi] if options.mpi else []))
    said("strip", "--strip-debug", "--remove-section=.comment", *programs_of(root))


@functools.cache
def needs_of(path):
    """Names of the libraries that a program or a library names itself; they stay as they are."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "--dynamic", path))


def mpi_of(paths):
    """The MPI of the programs: a key of MPI."""
    found = {name for path in paths for name in needs_of(path)} & set(MPI)
    if len(found) != 1:
        raise CannotPackage("the programs are built for %s; one MPI of %s is expected" % (
            " and ".join(sorted(found)) or "no MPI", ", ".join(MPI)))
    return found.pop()


def libraries_of(paths):
    """{name: file} of all that the programs need here, but for the machine's own and MPI."""
    found, left = {}, list(paths)
    where = {}
    while left:
        path = left.pop()
        for name in needs_of(path):
            if name in found or name in MPI or _BASE.match(name):
                continue
            if name not in where:
                where.update(re.findall(r"^\s*(\S+) => (/\S+)", said("ldd", path), re.MULTILINE))
            if name not in where:
                raise CannotPackage("%s needs %s, which is not on this machine" % (path, name))
            found[name] = os.path.realpath(where[name])
            left.append(found[name])
    return found


def options_of(kind, arguments):
    parser = argparse.ArgumentParser(prog="package " + kind, allow_abbrev=False)
    parser.add_argument("--output-folder", required=True)
    parser.add_argument("--built")
    parser.add_argument("--mpi")
    return parser.parse_args(arguments)


def run(kind, make, arguments):
    """The exit code of make(output, options), which returns the path of the package."""
    options = options_of(kind, arguments)
    try:
        os.makedirs(options.output_folder, exist_ok=True)
        print(make(os.path.abspath(options.output_folder), options))
    except (CannotPackage, OSError) as error:
        print("package: %s: %s" % (kind, error), file=sys.stderr)
        return 4
    return 0
