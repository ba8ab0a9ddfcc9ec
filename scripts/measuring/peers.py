"""Benchmarks of other people, as compare_with_osu starts them and reads what they print.

Each is one program that lies in the user's folder; its times are read in microseconds. `figure` is
what it prints of its iterations, so that ours is the same figure of ours: the median or the mean,
over iterations, of the average over ranks of exit - entry. Where the loop is another one (calls
back to back, without a barrier), the ratio says how far apart the two definitions are, no more.
"""
import dataclasses
import os
import re
import tempfile
from collections.abc import Callable

import launches


@dataclasses.dataclass(frozen=True)
class Peer:
    program: str           # the file's name
    backend: str           # of ours
    figure: str            # "median" or "mean"
    same_loop: bool        # a barrier, a stamp, the call, a stamp
    words: Callable        # (path, ranks, first, last, folder) -> command line
    columns: tuple         # of bytes and of microseconds, in its table


def _mpirun(ranks, *words):
    return ["timeout", "300", *launches.mpirun("-np", str(ranks)), *words]


def _osu(path, ranks, first, last, _):
    return _mpirun(ranks, path, "-m", f"{first}:{last}", "-T", "mpi_float", "-z", "50,90,99")


def _imb(path, ranks, first, last, _):
    # -msglog counts powers of two; -multi would start several groups.
    span = f"{first.bit_length() - 1}:{last.bit_length() - 1}"
    return _mpirun(ranks, path, "-npmin", str(ranks), "-msglog", span, "Allreduce")


def _plain(path, ranks, first, last, _):
    return _mpirun(ranks, path, str(first), str(last))


def _nccl(path, ranks, first, last, _):
    return _mpirun(ranks, path, "-b", str(first), "-e", str(last), "-f", "2", "-g", "1")


def _gloo(path, ranks, first, last, folder):
    # A launch measures one size: the counts of elements follow each other in one shell.
    counts = " ".join(str(2**i // 4) for i in range(first.bit_length() - 1, last.bit_length()))
    each = (f'for n in {counts}; do "{path}" --transport tcp --size {ranks} '
            f'--rank $OMPI_COMM_WORLD_RANK --shared-path "{folder}" --prefix "size$n" '
            "--elements $n allreduce_ring_chunked || exit 1; done")
    return _mpirun(ranks, "sh", "-c", each)


# In the order in which a folder is searched.
PEERS = (
    Peer("osu_allreduce", "mpi", "median", True, _osu, (0, 2)),
    Peer("IMB-MPI1", "mpi", "mean", True, _imb, (0, 4)),
    Peer("plain_allreduce", "mpi", "median", True, _plain, (0, 1)),
    Peer("all_reduce_perf", "nccl", "mean", False, _nccl, (0, 5)),
    Peer("benchmark", "gloo", "median", False, _gloo, (0, 3)),  # gloo's own
)


def found_in(folder):
    """[(peer, path)] of the programs that lie in the folder or below it."""
    found = []
    for peer in PEERS:
        for top, _, names in sorted(os.walk(folder)):
            path = os.path.join(top, peer.program)
            if peer.program in names and os.access(path, os.X_OK) and os.path.isfile(path):
                found.append((peer, os.path.abspath(path)))
                break
    return found


def command(peer, path, ranks, first, last):
    """The command line, and a folder that lives as long as the launch."""
    folder = tempfile.TemporaryDirectory()
    return peer.words(path, ranks, first, last, folder.name), folder


def times(peer, text):
    """{bytes: microseconds} of the rows of its table: lines that begin with a count of bytes."""
    size, column = peer.columns
    rows = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > max(peer.columns) and re.fullmatch(r"\d+", words[size]):
            rows[int(words[size])] = float(words[column])
    return rows
