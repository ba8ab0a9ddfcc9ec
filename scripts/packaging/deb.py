"""A package of Debian: lockstep_VERSION_amd64.deb, or lockstep-mpich_… when the programs were built
for MPICH. Debian's tools say which packages it needs."""
import ast
import gzip
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

import tree

# {library of the MPI: (name of the package, its launcher)}
_FLAVOURS = {"libmpi.so.40": ("lockstep", "mpirun.openmpi"),
             "libmpich.so.12": ("lockstep-mpich", "mpiexec.mpich")}
_PYTHON = "python3 (>= 3.11)"  # tomllib
# Of a part: figures as PNG, hosts on one machine.
_RECOMMENDED = ("librsvg2-bin", "iproute2")
# Where Debian's python3 looks, so that `import lockstep` works.
_MODULES = "usr/lib/python3/dist-packages"
_OF_PYTHON = "usr/libexec/lockstep"
# What Python writes beside modules comes with the package, and goes with it.
_POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile >/dev/null; then
  py3compile -p {name}
  py3compile -p {name} /{folder}
fi
"""
_PRERM = """#!/bin/sh
set -e
if command -v py3clean >/dev/null; then py3clean -p {name}; fi
"""
_CONTROL = """Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: Lockstep
Section: science
Priority: optional
Installed-Size: {kib}
Depends: {depends}
Recommends: {recommends}
{conflicts}Description: which rank of a training job is slow, wrong or hung
 Lockstep measures the collectives of data-parallel training, injects faults, and
 says which rank is slow, wrong or hung, and how that is known. These programs
 are built for {mpi}.
"""


def _library_packages(programs):
    """As dpkg-shlibdeps finds them: ["libc6 (>= 2.34)", …]."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "debian"))
        with open(os.path.join(folder, "debian/control"), "w", encoding="utf-8") as file:
            file.write("Source: lockstep\n\nPackage: lockstep\nArchitecture: any\n")
        found = tree.said("dpkg-shlibdeps", "-O", *["-e" + path for path in programs], cwd=folder)
    return found.strip().split("=", 1)[1].split(", ")


def _python_packages(root):
    """The packages of all modules that installed programs import."""
    imported, own = set(), {"figures"}
    for path in tree.files_of(root):
        with open(path, "rb") as file:
            if not path.endswith(".py") and b"python" not in file.readline():
                continue
        own.add(os.path.basename(path).removesuffix(".py"))
        own.add(os.path.basename(os.path.dirname(path)))
        with open(path, encoding="utf-8") as file:
            for node in ast.walk(ast.parse(file.read(), path)):
                if isinstance(node, ast.Import):
                    imported |= {name.name.split(".")[0] for name in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    imported.add(node.module.split(".")[0])
    origins = []
    for name in sorted(imported - own - sys.stdlib_module_names):
        found = importlib.util.find_spec(name)
        if found is None or not found.origin:
            raise tree.CannotPackage("the installed scripts import '%s', which is not on this "
                                     "machine; run scripts/install_packages" % name)
        origins.append(found.origin)
    return sorted(set(tree.owners_of(origins)))


def _as_debian_wants(root, name):
    """Moves and packs what has another place in a package."""
    share = os.path.join(root, "usr/share")
    shutil.move(os.path.join(share, "zsh/site-functions"),
                os.path.join(share, "zsh/vendor-completions"))
    for page in os.listdir(os.path.join(share, "man/man1")):
        path = os.path.join(share, "man/man1", page)
        with open(path, "rb") as file, open(path + ".gz", "wb") as packed:
            with gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as writer:
                writer.write(file.read())
        os.remove(path)
    modules = os.path.join(root, _MODULES)
    os.makedirs(modules)
    shutil.move(os.path.join(root, _OF_PYTHON, "python/lockstep"), modules)
    # … and where our own programs look, whichever Python runs them.
    os.symlink("../../../lib/python3/dist-packages/lockstep",
               os.path.join(root, _OF_PYTHON, "python/lockstep"))
    os.makedirs(os.path.join(share, "doc", name))
    shutil.copy(os.path.join(tree.SOURCES, "LICENSE"),
                os.path.join(share, "doc", name, "copyright"))


def _write_control(root, name, launcher, mpi):
    programs = tree.programs_of(root)
    depends = [*_library_packages(programs), *tree.owners_of([launcher]), _PYTHON,
               *_python_packages(root)]
    other = "lockstep-mpich" if name == "lockstep" else "lockstep"
    os.mkdir(os.path.join(root, "DEBIAN"))
    control = _CONTROL.format(
        name=name, version=tree.version(), mpi=mpi, depends=", ".join(depends),
        architecture=tree.said("dpkg", "--print-architecture").strip(),
        kib=sum(os.path.getsize(path) for path in tree.files_of(root)) // 1024,
        recommends=", ".join(_RECOMMENDED), conflicts=f"Conflicts: {other}\n")
    with open(os.path.join(root, "DEBIAN/control"), "w", encoding="utf-8") as file:
        file.write(control)
    for script, text in (("postinst", _POSTINST), ("prerm", _PRERM)):
        path = os.path.join(root, "DEBIAN", script)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.format(name=name, folder=_OF_PYTHON))
        os.chmod(path, 0o755)


def make(output, options):
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "root")
        os.makedirs(root, mode=0o755)
        tree.install(root, "/usr", options)
        mpi = tree.mpi_of(tree.programs_of(root))
        name, launcher = _FLAVOURS[mpi]
        found = shutil.which(launcher)
        if found is None:
            raise tree.CannotPackage("'%s' is not installed, so its package is unknown" % launcher)
        _as_debian_wants(root, name)
        _write_control(root, name, found, tree.MPI[mpi])
        subprocess.run(["chmod", "-R", "u=rwX,go=rX", root], check=True)
        made = tree.said("dpkg-deb", "--root-owner-group", "--build", root, output)
    return made.split("'")[-2] if "'" in made else made


def main(arguments):
    return tree.run("deb", make, arguments)
