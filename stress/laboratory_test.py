#!/usr/bin/env python3
"""Groups, streams, loading and races of streams: in simulation by all rule sets, and on real ranks
over gloo. Arguments: the groups to run. LOCKSTEP_TEST_SEED repeats a run.
"""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "testing"))
import run_stress  # noqa: E402

SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(1, 10**6)))
GLOBS = ["--scenario=groups/*", "--scenario=imbalance/*", "--scenario=custom_kernel/*",
         "--scenario=uneven_inputs/*", "--scenario=buffers/*", "--scenario=library/[dfs]*",
         "--scenario=mismatch/*_8b", "--scenario=mismatch/*_64k", "--scenario=mismatch/wrong_order"]


def expect(outcome, code, verdict):
    print(outcome.output)
    assert outcome.code == code, f"exit code {outcome.code}: {outcome.errors}"
    assert outcome.cases and all(case["verdict"] == verdict for case in outcome.cases), \
        [case["why"] for case in outcome.cases if case["verdict"] != verdict]


def rules():
    """Every scenario says what to expect of every rule set, and sim does it."""
    for name in ("nccl", "mpi", "gloo"):
        for ranks in (2, 3, 4):
            outcome = run_stress.run(0, *GLOBS, "--backend=sim", f"--sim-rules={name}",
                                     f"--ranks={ranks}", f"--seed={SEED}")
            expect(outcome, 0, "pass")
            assert len(outcome.cases) > 60


def races_of(outcome):
    return {(race["pattern"], race["guard"]): race for race in outcome.races}


def real():
    """On real ranks: groups and loading come out as they should; unguarded races are caught, and
    cured ones are clean."""
    outcome = run_stress.run(2, "--scenario=groups/*", "--scenario=imbalance/*",
                             "--scenario=custom_kernel/*_none", "--scenario=custom_kernel/*_event",
                             f"--seed={SEED}", "-T", "5")
    expect(outcome, 0, "pass")
    simulated = run_stress.run(0, "--scenario=groups/*", "--scenario=imbalance/*",
                               "--backend=sim", "--sim-rules=gloo", f"--seed={SEED}")
    for twin in (one for one in simulated.cases if one["ranks"] == 2):
        case = outcome.named(twin["name"])[0]
        assert [rank["outcome"] for rank in case["outcomes"]] == \
            [rank["outcome"] for rank in twin["outcomes"]], (case["name"], case["outcomes"])
    races = races_of(outcome)
    assert len(races) == 10
    for (_, guard), race in races.items():
        assert race["rounds"] == 40
        assert (race["corrupt_rounds"] > 0) == (guard == "none"), race
        assert (race["first_element"] is not None) == (guard == "none"), race
        assert (race["extra_us"] is None) == (guard == "none"), race
    figures = {rank["rank"]: rank["figures"]
               for rank in outcome.named("imbalance/skewed_decode")[0]["outcomes"]}
    # How much longer rank 1 takes is a matter of scripts/benchmarks.
    assert all(figures[rank]["samples"] == figures[0]["samples"] > 0 for rank in figures), figures
    assert all(figures[rank]["load_seconds"] > 0 for rank in figures), figures


RACE = """ranks = 2
[workload]
kind = "stream_race"
pattern = "{pattern}"
guard = "{guard}"
rounds = 10
[expect.any]
ranks = "{ranks}"
"""


def controls():
    """What must not pass does not: a race that is expected to be clean, a clean one that is
    expected to be corrupt, figures that are others."""
    for pattern in ("missing_wait_before", "missing_wait_after", "buffer_reuse",
                    "free_while_in_use", "event_before_work"):
        for guard, ranks in (("none", "finished"), ("stream_sync", "corrupt")):
            text = RACE.format(pattern=pattern, guard=guard, ranks=ranks)
            path = run_stress.scenario(f"own/{pattern}_{guard}", text)
            outcome = run_stress.run(0, f"--scenario={path}", "--backend=sim", f"--seed={SEED}")
            expect(outcome, 1, "fail")
            found = [finding["cause"] for finding in outcome.cases[0]["findings"]]
            assert found == (["stream_race", "data_corruption"] if guard == "none" else []), found
    path = run_stress.scenario("own/figures", """ranks = 2
[workload]
kind = "sharded_loading"
epochs = 2
set_epoch = false
[expect.any]
figures = { repeated_epochs = 0 }
""")
    outcome = run_stress.run(0, f"--scenario={path}", "--backend=sim")
    expect(outcome, 1, "fail")
    assert "repeated_epochs of rank 0 is 1, expected 0 to 0" in outcome.cases[0]["why"]


def sound():
    """Healthy training that the catalogue does not have. A second epoch has the same inputs again,
    and where no input is, no gradient is. A fault by the clock finds its rank among those that are
    left, and evaluation goes on with them."""
    resnet50 = 'ranks = 2\n[workload]\nkind = "ddp_training"\nmodel = "resnet50"\n'
    for name, text in {
            "epochs": resnet50 + "epochs = 2\ninputs = 2\n",
            "zeroed": resnet50 + "epochs = 2\ninputs = 2\nzero_grad = true\n",
            "no_input": resnet50 + "inputs = 0\n",
            "nothing_left": resnet50.replace("2", "3", 1)
                            + "sampler = { samples = 2, drop_last = true }\n"}.items():
        path = run_stress.scenario(f"own/{name}", text)
        expect(run_stress.run(0, f"--scenario={path}", "--backend=sim"), 0, "pass")
    path = run_stress.scenario("own/left", """ranks = 3
[workload]
kind = "all_reduce_loop"
rounds = 100
compute_us = 100000
[recovery]
mode = "shrink"
[[fault]]
kind = "kill"
rank = 0
at = "iteration:2"
[[fault]]
kind = "kill"
rank = 2
at = "time:5s"
""")
    outcome = run_stress.run(0, f"--scenario={path}", "--backend=sim", "--sim-rules=gloo")
    expect(outcome, 1, "fail")
    evaluates = run_stress.scenario("own/evaluates", """ranks = 3
[workload]
kind = "ddp_training"
model = "linear_1_1"
inputs = 5
eval = { after_iteration = 3, inputs = [1, 1, 1] }
[recovery]
mode = "shrink"
[[fault]]
kind = "kill"
rank = 1
at = "iteration:2"
[expect.any]
recovery = "resumed"
""")
    expect(run_stress.run(0, f"--scenario={evaluates}", "--backend=sim", "--sim-rules=gloo"),
           0, "pass")
    named = [finding["culprits"] for finding in outcome.cases[0]["findings"]]
    assert named == [[0], [2]], named


def mistakes():
    """One line that names the input, the reason and the remedy; exit code 2."""
    script = 'ranks = 2\n[workload]\nkind = "script"\ncommunicators = { a = [0, 1] }\n'
    wrong = {
        script + 'default = ["barrier a stream=s", "barrier a"]\n': "on two streams",
        script + 'default = ["barrier a wait=t"]\n': "waits for stream 't'",
        script + 'default = ["barrier a stream="]\n': "names no stream",
        script + 'create.1 = []\ndefault = ["barrier a"]\n': "which it does not create",
        script + 'defualt = ["barrier a"]\ndefault = []\n': "did you mean 'default'",
        'ranks = 2\n[workload]\nkind = "groups"\norder = ["b"]\n': "'b' is unknown",
        'ranks = 2\n[workload]\nkind = "stream_race"\n': "key workload.pattern: missing",
        'ranks = 2\n[workload]\nkind = "sharded_loading"\nweighted = true\ndrop_last = true\n':
            "remove it",
    }
    for number, (text, part) in enumerate(wrong.items()):
        path = run_stress.scenario(f"own/mistake{number}", text)
        outcome = run_stress.run(0, f"--scenario={path}", "--backend=sim")
        lines = [line for line in outcome.errors.splitlines()
                 if line.startswith("lockstep-stress: ")]
        print(outcome.code, lines)
        assert outcome.code == 2 and len(lines) == 1 and part in lines[0], (text, outcome.errors)


GROUPS = {"controls": controls, "mistakes": mistakes, "real": real, "rules": rules,
          "sound": sound}


def main():
    print(f"LOCKSTEP_TEST_SEED={SEED}")
    for group in sys.argv[1:]:
        GROUPS[group]()


main()
