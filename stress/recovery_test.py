#!/usr/bin/python3
"""Ranks that lost one of theirs rebuild and go on: real processes, real kills, over gloo.

LOCKSTEP_TEST_SEED repeats a run.
"""
import glob
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "testing"))
import run_stress  # noqa: E402

SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(1, 10**6)))
LOOP = """ranks = {ranks}
[workload]
kind = "all_reduce_loop"
sizes = [8, "64K"]
rounds = 30
compute_us = 500
[recovery]
mode = "{mode}"
"""


def parts(recovery):
    names = ("detect_seconds", "abort_seconds", "rebuild_seconds", "resume_seconds")
    return [recovery[name] for name in names]


def stored_rows():
    """The rows of /recovery of the newest result file."""
    import h5py
    newest = max(glob.glob(os.path.join(run_stress.DIRECTORY, "*.h5")), key=os.path.getmtime)
    with h5py.File(newest) as file:
        return [dict(zip(row.dtype.names, row)) for row in file["recovery"][:]]


def catalogue():
    """Every kind of loss, both modes; what was measured is in the table, in JSON, in the file."""
    outcome = run_stress.run(3, "--scenario=recovery/*", "-T", "10")
    print(outcome.output)
    assert outcome.code == 0, outcome.errors
    assert len(outcome.cases) >= 16
    healthy = outcome.named("recovery/healthy")[0]
    assert healthy["recoveries"] == [] and healthy["findings"] == []
    made = [recovery for case in outcome.cases for recovery in case["recoveries"]]
    resumed = [recovery for recovery in made if recovery["outcome"] == "resumed"]
    assert all(None not in parts(recovery) for recovery in resumed), resumed
    assert all(0 < recovery["first_iteration"] <= 12 for recovery in resumed)
    assert all(recovery["members"] == [0, 1, 2] for recovery in resumed
               if recovery["mode"] == "restart")
    assert outcome.named("recovery/kill_shrink")[0]["recoveries"][0]["members"] == [0, 2]
    assert len(outcome.named("recovery/twice_shrink")[0]["recoveries"]) == 2
    assert "recovery/kill_shrink: recovered (shrink) from rank_killed: detect " in outcome.output
    assert [row["outcome"].decode() for row in stored_rows()] == [each["outcome"] for each in made]


def simulated():
    """By gloo's rules a simulation recovers from the same losses to the same ends."""
    outcome = run_stress.run(0, "--scenario=recovery/*", "--backend=sim", "--sim-rules=gloo",
                             "--ranks=3")
    print(outcome.output)
    assert outcome.code == 0, outcome.errors
    assert len(outcome.cases) >= 16
    assert outcome.named("recovery/kill_shrink")[0]["recoveries"][0]["members"] == [0, 2]
    assert outcome.named("recovery/kill_restart")[0]["recoveries"][0]["members"] == [0, 1, 2]
    assert len(outcome.named("recovery/twice_shrink")[0]["recoveries"]) == 2


def at_random():
    """A rank and a moment of the seed's choice; the survivors have right data afterwards."""
    chosen = random.Random(SEED)
    for mode, ranks in (("shrink", 2), ("restart", 4)):
        lost = chosen.randrange(ranks)
        end = ['"finished"'] * ranks
        if mode == "shrink":
            end[lost] = '"killed"'
        path = run_stress.scenario(f"own/{mode}", LOOP.format(mode=mode, ranks=ranks) + f"""
[[fault]]
kind = "kill"
rank = {lost}
at = "collective:{chosen.randrange(2, 55)}"
[expect.any]
ranks = [{", ".join(end)}]
cause = "rank_killed"
culprits = [{lost}]
recovery = "resumed"
""")
        outcome = run_stress.run(ranks, f"--scenario={path}", "-T", "10")
        print(outcome.output)
        assert outcome.code == 0, outcome.errors


def not_believed():
    """A recovery that did not come about is none, whatever was hoped for."""
    path = run_stress.scenario("own/hopeful", LOOP.format(mode="shrink", ranks=3) + """
[[fault]]
kind = "wrong_membership"
rank = 0
at = "rebuild"
[[fault]]
kind = "kill"
rank = 1
at = "iteration:3"
[expect.any]
recovery = "resumed"
""")
    outcome = run_stress.run(3, f"--scenario={path}", "-T", "5")
    assert outcome.code == 1, outcome.output
    assert "the recovery is 'rebuild_failed', expected 'resumed'" in outcome.output
    for backend, ranks in (("sim", 0), ("mpi", 2)):
        path = run_stress.scenario("own/refused", LOOP.format(mode="shrink", ranks=2))
        refused = run_stress.run(ranks, f"--scenario={path}", f"--backend={backend}")
        own = [line for line in refused.errors.splitlines() if line.startswith("lockstep-stress: ")]
        assert refused.code != 0 and len(own) == 1, refused.errors
        assert "cannot abort and rebuild a communicator" in own[0]


def outside_at_abort():
    """Ranks that gave up already wait for their new place; the agents apply faults when they are
    told to abort. Neither message is taken for the other."""
    faults = "".join(f"""
[[fault]]
kind = "low_memlock"
bytes = "64K"
rank = {rank}
at = "abort"
""" for rank in (0, 2, 3))
    names = [run_stress.scenario(f"own/outside{number}", LOOP.format(mode="shrink", ranks=4) +
                                 faults + """
[[fault]]
kind = "kill"
rank = 1
at = "iteration:3"
[expect.any]
recovery = "resumed"
""") for number in range(4)]
    outcome = run_stress.run(4, *(f"--scenario={name}" for name in names), "-T", "20")
    assert outcome.code == 0, outcome.output + outcome.errors


if __name__ == "__main__":
    print(f"LOCKSTEP_TEST_SEED={SEED}")
    for group in sys.argv[1:]:
        globals()[group]()
