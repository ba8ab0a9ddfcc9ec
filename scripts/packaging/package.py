"""Makes packages of Lockstep for machines that build nothing.

  scripts/package deb tarball --output-folder=DIR [--built=BIN | --mpi=mpich]

Kinds: deb, a package of Debian for the MPI that Lockstep was built for; tarball, which works from
any folder; wheel, for pip. Programs are built first, or are those in BIN, which is laid out as
bazel-bin. Every package ends as a line of standard output: its path.

Exit codes: 0; 2 usage; 4 environment: a tool or a library is missing.
"""
import importlib
import os
import sys

import launches

# In this folder, each with main(arguments).
KINDS = [kind for kind in ("deb", "tarball", "wheel")
         if os.path.exists(os.path.join(os.path.dirname(os.path.realpath(__file__)), kind + ".py"))]


def main(arguments):
    parser = launches.parser(__doc__)
    launches.renamed(parser, output="--output-folder")
    parser.add_argument("kinds", nargs="+", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--output-folder", required=True, metavar="FOLDER",
                        help="Folder to write (the packages)")
    parser.add_argument("--built", metavar="FOLDER",
                        help="Folder of programs that are built already (nothing is built)")
    parser.add_argument("--mpi", metavar="NAME",
                        help="The MPI in question (to build for; as of scripts/install)")
    options = parser.parse_args(arguments)
    if options.built and options.mpi:
        parser.error("--mpi: with --built nothing is built")
    for kind in options.kinds:
        if kind not in KINDS:
            parser.error(f"'{kind}' is no kind of package; choose from {', '.join(KINDS)}")
    words = ["--output-folder=" + options.output_folder] + (
        ["--built=" + options.built] if options.built else []) + (
            ["--mpi=" + options.mpi] if options.mpi else [])
    for kind in options.kinds:
        code = importlib.import_module(kind).main(words)
        if code != 0:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
