"""A tarball that works from any folder: lockstep-VERSION-linux-x86_64.tar.gz, or lockstep-mpich-…
when the programs were built for MPICH. It holds libraries
that a base system lacks. MPI stays the user's: programs that need it stand behind a few lines of
shell, which say what is missing."""
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile

import tree

_LIBRARIES = "lib/lockstep"
# Programs find their data from the folder above theirs.
_BEHIND = "libexec/lockstep/programs"
_FRONT = """#!/bin/sh
# Runs the program, or says in one line which libraries of MPI ({library}) are missing.
program="$(dirname "$(readlink -f "$0")")/../{behind}/bin/{name}"
missing="$(LD_TRACE_LOADED_OBJECTS=1 "$program" |
  sed -n 's/^[[:space:]]*\\(.*\\) => not found$/\\1/p')"
[ -n "$missing" ] || exec "$program" "$@"
echo "{name}: this machine lacks" $missing "- install {mpi} (Debian: {package}), or put" \\
  "its folder into LD_LIBRARY_PATH" >&2
exit 4
"""
_PACKAGES = {"libmpi.so.40": "openmpi-bin", "libmpich.so.12": "mpich"}


def _set_path(path, root, libraries):
    """Where the program looks for libraries, seen from itself."""
    there = os.path.relpath(os.path.join(root, libraries), os.path.dirname(path))
    tree.said("patchelf", "--set-rpath", "$ORIGIN/" + there, path)


def _bring_libraries(root, programs):
    folder = os.path.join(root, _LIBRARIES)
    os.makedirs(folder)
    licenses = os.path.join(root, "share/doc/lockstep/licenses")
    os.makedirs(licenses)
    found = sorted(tree.libraries_of(programs).items())
    for (name, path), owner in zip(found, tree.owners_of([path for _, path in found])):
        copy = os.path.join(folder, name)
        shutil.copy(path, copy)
        os.chmod(copy, 0o755)
        tree.said("patchelf", "--set-rpath", "$ORIGIN", copy)
        shutil.copy("/usr/share/doc/%s/copyright" % owner, os.path.join(licenses, owner))
    shutil.copy(os.path.join(tree.SOURCES, "LICENSE"), os.path.join(licenses, "lockstep"))


def _put_behind(root, path, mpi):
    """Moves a program and writes what stands in its place."""
    name = os.path.basename(path)
    behind = os.path.join(root, _BEHIND, "bin", name)
    shutil.move(path, behind)
    with open(path, "w", encoding="utf-8") as file:
        file.write(_FRONT.format(behind=_BEHIND, name=name, mpi=tree.MPI[mpi], library=mpi,
                                 package=_PACKAGES[mpi]))
    os.chmod(path, 0o755)
    return behind


def _fill(root):
    """Makes the installed tree one that can be moved; the library of its MPI."""
    library = os.path.join(root, "lib/liblockstep_watch.so")  # for the user's programs: as it is
    programs = [path for path in tree.programs_of(root) if path != library]
    mpi = tree.mpi_of(programs)
    _bring_libraries(root, programs)
    os.makedirs(os.path.join(root, _BEHIND, "bin"))
    for name in ("share", "libexec", "lib"):
        os.symlink(os.path.relpath(name, _BEHIND), os.path.join(root, _BEHIND, name))
    for path in programs:
        if _needs_mpi(path, root):
            path = _put_behind(root, path, mpi)
        else:  # programs find each other behind, too
            behind = os.path.join(root, _BEHIND, "bin")
            os.symlink(os.path.relpath(path, behind),
                       os.path.join(behind, os.path.basename(path)))
        _set_path(path, root, _LIBRARIES)
    return mpi


def _needs_mpi(path, root):
    """Itself, or by a library that was brought along."""
    names, left = set(), list(tree.needs_of(path))
    while left:
        name = left.pop()
        brought = os.path.join(root, _LIBRARIES, name)
        if name not in names and os.path.exists(brought):
            left += tree.needs_of(brought)
        names.add(name)
    return not names.isdisjoint(tree.MPI)


def make(output, options):
    with tempfile.TemporaryDirectory() as folder:
        tree.install(folder, "/opt/lockstep", options)
        root = os.path.join(folder, "opt/lockstep")
        mpi = _fill(root)
        name = "lockstep%s-%s-linux-%s" % ("-mpich" if tree.MPI[mpi] == "MPICH" else "",
                                           tree.version(), platform.machine())
        path = os.path.join(output, name + ".tar.gz")
        subprocess.run(["chmod", "-R", "u=rwX,go=rX", root], check=True)
        with tarfile.open(path + ".part", "w:gz", compresslevel=6) as archive:
            archive.add(root, name, filter=_of_root)
    os.replace(path + ".part", path)
    return path


def _of_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def main(arguments):
    return tree.run("tarball", make, arguments)
