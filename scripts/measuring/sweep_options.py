"""The options of programs that let bench_allreduce measure a range of sizes."""
import argparse
import re

import launches

_POWERS = {"": 0, "K": 10, "M": 20, "G": 30}


def size(text):
    """Of an argument: bytes, as in 8, 64K, 128M or 1G."""
    found = re.fullmatch(r"([1-9][0-9]*)([KMG]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write bytes such as 8, 64K, "
                                         "128M or 1G")
    return int(found[1]) << _POWERS[found[2]]


def add_to(parser, most):
    """bench, ranks, minbytes and maxbytes (a number of bytes; by default `most`)."""
    parser.add_argument("--bench", default="bazel-bin/bench/bench_allreduce", metavar="FILE",
                        help="The bench_allreduce that measures (default: below bazel-bin)")
    parser.add_argument("--ranks", type=int, default=2, metavar="COUNT",
                        help="Number of ranks (default 2)")
    parser.add_argument("-b", "--minbytes", type=size, default=8, metavar="BYTES",
                        help="Smallest size (a power of two; default 8)")
    parser.add_argument("-e", "--maxbytes", type=size, default=size(most), metavar="BYTES",
                        help=f"Largest size (a power of two; default {most})")
    launches.renamed(parser, first="--minbytes", last="--maxbytes")
