#!/usr/bin/python3
"""Random programs: PyTorch's own DistributedDataParallel and `lockstep trace-ddp` enqueue the same
collectives on every rank, end alike and leave the same gradients and parameters.

    torch_compare_test.py [--seed=N] [--programs=N] [--python=PYTHON --torch=2.6]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import oracle
import programs

LOCKSTEP = "cli/lockstep"
_KINDS = {"all_reduce": "ALLREDUCE", "broadcast": "BROADCAST", "all_gather": "ALLGATHER",
          "barrier": "BARRIER"}
_TYPES = {"f32": "Float", "f16": "Half", "i64": "Long", "i32": "Int", "u8": "Byte"}


def traced_sections(rank):
    """Sections of a rank of `trace-ddp --format=jsonl` in the oracle's form."""
    sections = []
    for section in rank["sections"]:
        calls = []
        for call in section["collectives"]:
            kind = _KINDS[call["collective"]]
            calls.append([kind] if kind == "BARRIER" else
                         [kind, call["count"], _TYPES[call["type"]]])
        sections.append([section["name"], calls])
    return sections


def with_calls(sections):
    """Sections that have collectives: which empty ones are shown is a matter of taste."""
    return [section for section in sections if section[1]]


def first_difference(real, traced):
    for a, b in zip(real + [None], traced + [None]):
        if a != b:
            return "PyTorch %s\n    lockstep %s" % (a, b)
    return "PyTorch has %d sections, lockstep %d" % (len(real), len(traced))


def close(a, b, tolerance):
    if (a is None) != (b is None):
        return False
    return a is None or (len(a) == len(b) and
                         all(abs(x - y) <= tolerance * max(1, abs(x)) for x, y in zip(a, b)))


def differences(workload, real, traced):
    """What differs between the results of PyTorch and of lockstep, in words."""
    found = []
    # Sums of f16 are rounded after each addition, in an order that the transport chooses.
    tolerance = 2**-8 if workload.get("comm_hook") == "fp16" else 1e-5
    for rank, (a, b) in enumerate(zip(real, traced["ranks"])):
        ours = with_calls(traced_sections(b))
        theirs = with_calls(a["sections"])
        if ours != theirs:
            found.append("rank %d: %s" % (rank, first_difference(theirs, ours)))
        message = b["message"] if b["outcome"] == "failed" else None
        if (a["error"] or "")[:60] != (message or "")[:60] or b["outcome"] == "hung":
            found.append("rank %d ended in PyTorch with %r, in lockstep %s with %r" %
                         (rank, a["error"], b["outcome"], b["message"]))
        for i, tensor in enumerate(b["tensors"]):
            for name, key in (("gradients", "gradient"), ("weights", "values")):
                if not close(a[name][i], tensor[key], tolerance):
                    found.append("rank %d, %s of %s: PyTorch %s, lockstep %s" %
                                 (rank, name, tensor["name"], a[name][i], tensor[key]))
    return found


def trace(folder, cases, backend, torch):
    """What lockstep says of every case; one process for all."""
    paths = []
    for number, (ranks, workload) in enumerate(cases):
        paths.append(os.path.join(folder, "%03d.toml" % number))
        with open(paths[-1], "w", encoding="utf-8") as file:
            file.write(programs.to_toml("random/%d" % number, ranks, workload))
    done = subprocess.run([LOCKSTEP, "trace-ddp", "--torch=" + torch, "--format=jsonl",
                           "--backend=" + backend] + paths,
                          stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit("lockstep ended with %d" % done.returncode)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(cases, real, backend, torch):
    """The number of cases that differ; prints each of them."""
    with tempfile.TemporaryDirectory() as folder:
        traced = trace(folder, cases, backend, torch)
    if len(traced) != len(cases):
        sys.exit("lockstep traced %d of %d programs" % (len(traced), len(cases)))
    wrong = 0
    for number, (ranks, workload) in enumerate(cases):
        found = differences(workload, real[number], traced[number])
        if found:
            wrong += 1
            print("program %d on %s differs:\n%s" %
                  (number, backend, programs.to_toml("random/%d" % number, ranks, workload)))
            print("\n".join("  " + line for line in found[:4]))
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=120)
    parser.add_argument("--python", default=sys.executable, help="that imports the PyTorch to ask")
    parser.add_argument("--torch", default="1.13", help="its rules, as lockstep calls them")
    arguments = parser.parse_args()
    cases = [programs.draw(random.Random("%d/%d" % (arguments.seed, number)), arguments.torch)
             for number in range(arguments.programs)]
    torch = oracle.Ranks(max(ranks for ranks, _ in cases), arguments.python)
    try:
        real = [torch.run(ranks, programs.complete(workload, ranks)) for ranks, workload in cases]
    finally:
        torch.close()
    print("seed %d: %d programs in PyTorch %s" %
          (arguments.seed, len(cases), real[0][0]["torch"]))
    wrong = 0
    for backend in ("sim", "gloo"):
        differ = compare(cases, real, backend, arguments.torch)
        wrong += differ
        print("%d of %d agree on %s" % (len(cases) - differ, len(cases), backend))
    collectives = sum(len(calls) for ranks in real for rank in ranks
                      for _, calls in rank["sections"])
    print("%d collectives compared" % collectives)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
