#!/usr/bin/env python3
"""Scenarios with --backend=nccl, over a stand-in library on the host: what differs from gloo, and a
machine that lacks what it takes. The stand-in pairs operations as core/verdict expects of NCCL."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "testing"))
import run_stress  # noqa: E402

FAKE = "core/comm/nccl/testing/libfake_nccl_22809.so"
# A barrier is an all-reduce of one element to NCCL, so case 4 goes on with wrong data where gloo
# stops; a broadcast and an all-reduce do not pair.
SCENARIOS = ["uneven_inputs/case1", "uneven_inputs/case3", "uneven_inputs/case4",
             "buffers/rank0_no_grad_then_barrier", "buffers/second_epoch_hangs",
             "groups/opposite_order"]

SHOWN = ["nccl/connect_kill", "nccl/connect_stop", "nccl/group_left_open",
         "nccl/host_sync_between", "nccl/order_inversion",
         "nccl/order_inversion_implicit", "nccl/order_inversion_streams",
         "nccl/order_inversion_streams_implicit", "nccl/same_order", "nccl/same_order_implicit"]


def world_of_nccl():
    """What only NCCL has, as far as a stand-in on the host can show it; the rest says why not."""
    outcome = run_stress.run(2, "--backend=nccl", f"--nccl-library={os.path.abspath(FAKE)}",
                             "-T", "3", "--scenario=nccl/*")
    print(outcome.output)
    assert outcome.code == 0, f"exit code {outcome.code}: {outcome.errors}"
    names = {case["name"]: case["verdict"] for case in outcome.cases}
    assert names == dict.fromkeys(SHOWN, "pass"), names
    unmet = " ".join(outcome.output.partition("\nnot run: ")[2].partition("\n\n")[0].split())
    assert "nccl/net_drop, " in unmet, unmet
    assert unmet.endswith(": needs a GPU, and the device is 'host'"), unmet
    elsewhere = run_stress.run(2, "--backend=gloo", "--scenario=nccl/group_left_open")
    assert elsewhere.code == 2 and "needs --backend=nccl" in elsewhere.errors, elsewhere.errors


def environment():
    """Machines that lack something, each with what NCCL does about it by its source."""
    outcome = run_stress.run(2, "--backend=nccl", f"--nccl-library={os.path.abspath(FAKE)}",
                             "-T", "3", "--scenario=environment/*")
    print(outcome.output)
    assert outcome.code == 0, f"exit code {outcome.code}: {outcome.errors}"
    assert len(outcome.cases) == 13, outcome.cases
    for name in ("few_descriptors", "little_memory_at_start", "wrong_interface",
                 "unknown_component", "descriptors_then_new_communicator"):
        case = outcome.named(f"environment/{name}")[0]
        assert case["outcomes"][1]["outcome"] == "failed", case
        assert case["findings"][0]["culprits"] == [1], case


def lost_ranks():
    """Abort, another communicator, on: over NCCL as over gloo; also of ranks that wait for one that
    is lost while they connect anew."""
    outcome = run_stress.run(3, "--backend=nccl", f"--nccl-library={os.path.abspath(FAKE)}",
                             "-T", "4", "--scenario=recovery/*")
    print(outcome.output)
    assert outcome.code == 0, f"exit code {outcome.code}: {outcome.errors}"
    names = {case["name"]: case["verdict"] for case in outcome.cases}
    assert len(names) == 18 and set(names.values()) == {"pass"}, names


# The time is longer than ours for ncclCommAbort (10 s), so Abort() returns first, with an error.
STUCK_ABORT = """ranks = 3
[workload]
kind = "all_reduce_loop"

[recovery]
mode = "shrink"
abort_deadline = "11s"

[[fault]]
kind = "kill"
rank = 1
at = "iteration:3"
"""


def stuck_abort():
    """A library that does not come back from ncclCommAbort is told, and its process is ended."""
    os.environ["LOCKSTEP_FAKE_NCCL"] = "ncclCommAbort:freeze:rank=0"
    path = run_stress.scenario("own/stuck_abort", STUCK_ABORT)
    outcome = run_stress.run(3, "--backend=nccl", f"--nccl-library={os.path.abspath(FAKE)}",
                             "-T", "4", f"--scenario={path}")
    del os.environ["LOCKSTEP_FAKE_NCCL"]
    print(outcome.output)
    assert outcome.code == 1, f"exit code {outcome.code}: {outcome.errors}"
    first = outcome.cases[0]["findings"][0]
    assert first["cause"] == "abort_hung" and 0 in first["culprits"], first


def main():
    lacking = run_stress.run(2, "--backend=nccl", "--nccl-library=/nonexistent/libnccl.so.2",
                             "--scenario=uneven_inputs/case1")
    assert lacking.code == 4, f"exit code {lacking.code}: {lacking.output}{lacking.errors}"
    lines = [line for line in lacking.errors.splitlines() if line.startswith("lockstep-stress: ")]
    plan, error = lines
    assert plan.startswith("lockstep-stress: 1 case on 2 ranks, "), lacking.errors
    assert "--nccl-library" in error, lacking.errors
    os.environ["TMPDIR"] = run_stress.DIRECTORY
    outcome = run_stress.run(2, "--backend=nccl", f"--nccl-library={os.path.abspath(FAKE)}",
                             *[f"--scenario={name}" for name in SCENARIOS])
    print(outcome.output)
    assert outcome.code == 0, f"exit code {outcome.code}: {outcome.errors}"
    for name in SCENARIOS:
        assert outcome.named(name)[0]["verdict"] == "pass"
    world_of_nccl()
    environment()
    lost_ranks()
    stuck_abort()
    os.environ["LOCKSTEP_FAKE_NCCL"] = "ncclAllReduce:async=6:rank=1:nth=5"
    failing = run_stress.run(2, "--backend=nccl", f"--nccl-library={os.path.abspath(FAKE)}",
                             "--scenario=uneven_inputs/case1")
    print(failing.output)
    assert failing.code == 1, f"exit code {failing.code}: {failing.errors}"
    assert "remote process exited or there was a network error (6)" in failing.output


main()
