#!/usr/bin/python3
"""Runs a ddp_training program with the installed PyTorch and prints what every rank enqueued.

    scripts/torch_oracle/oracle.py PROGRAM.toml...

The form is that of `lockstep trace-ddp --format=golden`.
"""

import json
import os
import subprocess
import sys
import tempfile

import programs

_TIMEOUT_S = 60


class Ranks:
    """Processes that stay, one a rank: importing PyTorch takes longer than a program."""

    def __init__(self, size, python=sys.executable):
        self._python = python
        self._folder = tempfile.TemporaryDirectory()
        self._workers = [self._start(rank, size) for rank in range(size)]

    def _start(self, rank, size):
        here = os.path.dirname(os.path.abspath(__file__))
        command = ["timeout", "600", self._python, os.path.join(here, "rank.py"),
                   str(rank), str(size), os.path.join(self._folder.name, "store")]
        environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env=environment)

    def run(self, ranks, program):
        """The results of ranks 0..ranks-1; a RuntimeError when one of them ended."""
        for worker in self._workers[:ranks]:
            worker.stdin.write(json.dumps([ranks, program]) + "\n")
            worker.stdin.flush()
        lines = [worker.stdout.readline() for worker in self._workers[:ranks]]
        if not all(lines):
            raise RuntimeError("ranks %s of PyTorch ended in a program" %
                               [rank for rank, line in enumerate(lines) if not line])
        return [json.loads(line) for line in lines]

    def close(self):
        for worker in self._workers:
            worker.stdin.close()
        for worker in self._workers:
            try:
                worker.wait(_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            worker.stdout.close()
        self._folder.cleanup()


def render(results):
    """Lines in the form of the golden file, without the header."""
    lines = []
    for rank, result in enumerate(results):
        sequence = 0
        for name, calls in result["sections"]:
            words = []
            for call in calls:
                shape = "[%d].%s" % tuple(call[1:]) if len(call) > 1 else ""
                words.append("%d:%s%s" % (sequence, call[0], shape))
                sequence += 1
            lines.append("  rank%d %-9s %s" % (rank, name, " ".join(words)))
    for rank, result in enumerate(results):
        first = [[None if values is None else round(values[0], 6) for values in result[key]]
                 for key in ("weights", "gradients")]
        lines.append("FINAL rank %d w0 %s grad %s" % (rank, *first))
        if result["error"]:
            lines.append("ERROR rank %d %s" % (rank, result["error"]))
    return lines


def main(paths):
    loaded = [programs.load(path) for path in paths]
    processes = Ranks(max(ranks for ranks, _ in loaded))
    try:
        for path, (ranks, program) in zip(paths, loaded):
            print("##### W=%d %s" % (ranks, os.path.basename(path)))
            print("\n".join(render(processes.run(ranks, program))))
    finally:
        processes.close()


if __name__ == "__main__":
    main(sys.argv[1:])
