#!/usr/bin/env python3
"""A CUDA graph that hangs while it is captured or replayed is told with its rank and its call, and
one that does not is left alone. Over a stand-in library on the host, whose graph is the host's."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "testing"))
import run_stress  # noqa: E402

FAKE = os.path.abspath("core/comm/nccl/testing/libfake_nccl_22809.so")
# The case, who is to blame by the first line, and what it says the culprit was in.
TOLD = {
    "graphs/capture_stop": ("rank 1 is stopped by SIGSTOP in all_reduce 4", "graph capture: call"),
    "graphs/capture_kill": ("rank 1 was killed by SIGKILL in all_reduce 4", "graph capture: call"),
    "graphs/capture_skip": ("rank 1 went through all_reduce 5", "graph capture: call 1"),
    "graphs/replay_stop": ("rank 1 is stopped by SIGSTOP in all_reduce 25", "graph replay: call"),
    "graphs/replay_kill": ("rank 1 was killed by SIGKILL in all_reduce 25", "graph replay: call"),
    "graphs/replay_skip": ("rank 1 exited with code 0", "graph replay: call 0 of iteration 18"),
}


def catalogue():
    outcome = run_stress.run(2, "--backend=nccl", f"--nccl-library={FAKE}", "-T", "4",
                             "--scenario=graphs/*")
    print(outcome.output)
    assert outcome.code == 0, f"exit code {outcome.code}: {outcome.errors}"
    assert len(outcome.cases) == len(TOLD) + 2, outcome.cases
    for name, words in TOLD.items():
        first = outcome.named(name)[0]["findings"][0]
        assert first["certainty"] == "proved" and 1 in first["culprits"], first
        assert all(word in first["message"] for word in words), first
    for name in ("graphs/healthy", "graphs/healthy_slow"):
        assert not outcome.named(name)[0]["findings"], outcome.named(name)


def library_hangs():
    """All ranks are in the same replay and none of them is to blame: silence, and called so."""
    os.environ["LOCKSTEP_FAKE_NCCL"] = "ncclAllReduce:stuck:rank=1:nth=20"
    outcome = run_stress.run(2, "--backend=nccl", f"--nccl-library={FAKE}", "-T", "2",
                             "--scenario=graphs/healthy")
    del os.environ["LOCKSTEP_FAKE_NCCL"]
    print(outcome.output)
    assert outcome.code == 1, f"exit code {outcome.code}: {outcome.errors}"
    first = outcome.cases[0]["findings"][0]
    assert first["certainty"] == "suspected", first
    assert "graph replay: call" in first["message"], first


def elsewhere():
    outcome = run_stress.run(2, "--backend=gloo", "--scenario=graphs/healthy")
    assert outcome.code == 2 and "needs --backend=nccl" in outcome.errors, outcome.errors


catalogue()
library_hangs()
elsewhere()
