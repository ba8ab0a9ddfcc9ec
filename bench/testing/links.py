"""What the tests of bench_links share."""
import os

import h5py

from bench.testing.launch import text

BENCH = os.path.abspath("bench/bench_links")


def rows(path):
    with h5py.File(path) as file:
        return [{name: text(row[name]) if row[name].dtype.kind == "S" else row[name].item()
                 for name in row.dtype.names} for row in file["links/pairs"][:]]
