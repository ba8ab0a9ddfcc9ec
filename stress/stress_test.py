#!/usr/bin/env python3
"""Scenarios on real ranks, over gloo. Arguments: the groups to run.

LOCKSTEP_TEST_SEED repeats a run.
"""
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "testing"))
import run_stress  # noqa: E402
from run_stress import started  # noqa: E402

SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(1, 10**6)))


def expect_pass(outcome, number):
    print(outcome.output)
    assert outcome.code == 0, f"exit code {outcome.code}: {outcome.errors}"
    assert outcome.output.startswith("PASS: "), "the first line is the verdict"
    assert len(outcome.cases) == number, f"{len(outcome.cases)} cases, expected {number}"
    assert all(case["verdict"] == "pass" for case in outcome.cases)


def detected(outcome):
    """Something was proved. How soon is a matter of scripts/scoreboard."""
    proved = [case["detected_after_seconds"] for case in outcome.cases
              if case["findings"] and case["findings"][0]["certainty"] == "proved"]
    assert proved and min(proved) >= 0, proved
    print(f"proved {len(proved)}, longest after {max(proved):.3f} s")


def six_cases():
    """DDP's uneven inputs: the outcomes that real PyTorch has on gloo."""
    # Who waited for the deadline would not be done in time.
    outcome = run_stress.run(2, "--scenario=uneven_inputs/case?", "-T", "600")
    expect_pass(outcome, 6)
    words = {1: "finished finished", 2: "finished failed", 3: "finished failed", 4: "hung hung",
             5: "hung hung", 6: "finished finished"}
    for number, expected in words.items():
        case = outcome.named(f"uneven_inputs/case{number}")[0]
        assert " ".join(rank["outcome"] for rank in case["outcomes"]) == expected
    ranks = outcome.named("uneven_inputs/case4")[0]["outcomes"]
    assert ranks[0]["waiting_in"]["collective"] == "all_reduce" and ranks[0]["where"] == "join_exit"
    assert ranks[1]["waiting_in"]["collective"] == "barrier"
    detected(outcome)
    expect_pass(run_stress.run(3, "--scenario=uneven_inputs/case[16]"), 2)


def kept():
    """A file that exists stays as it is; a disk that is full is left for another place."""
    words = ["--scenario=uneven_inputs/case1", "--backend=sim", "--ranks=2"]
    path = os.path.join(run_stress.DIRECTORY, "kept.h5")
    expect_pass(run_stress.run(0, *words, output=path), 1)
    with open(path, "rb") as file:
        before = file.read()
    again = run_stress.run(0, *words, output=path)
    assert again.code == 2 and f"{path} exists" in again.errors, again.errors
    with open(path, "rb") as file:
        assert file.read() == before

    disk, other = (tempfile.mkdtemp(dir=run_stress.DIRECTORY) for _ in range(2))
    os.environ["TMPDIR"] = other
    through = ["unshare", "-rm", "sh", "-c",
               f'mount -t tmpfs -o size=128k small "{disk}" && exec "$@"', "sh"]
    if subprocess.run([*through, "true"], check=False).returncode != 0:
        return print("SKIPPED: user namespaces are not permitted here")
    full = run_stress.run(0, *words, "--repeat=100", output=f"{disk}/run.h5", through=through)
    (found,) = glob.glob(os.path.join(other, "run-*.h5"))
    # A run of some seconds has said before where its results go.
    (said,) = [line for line in full.errors.splitlines() if ": note: " not in line]
    assert full.code == 4 and re.search(f"No space left.* run is in {found} instead", said), said
    assert f"result file: {found}" in full.output, full.output


def killed_at_once():
    """Cases that are over outlive the end of all processes without a word. Where, is said before
    the first one is over."""
    endless = run_stress.scenario("own/endless", LOOP.replace("10", "1000000000"))
    path = os.path.join(run_stress.DIRECTORY, "killed.h5")
    for scenario in (endless, "uneven_inputs/case1"):
        words = [*run_stress.launcher(2), run_stress.STRESS, f"--scenario={scenario}",
                 "--repeat=100000", f"--output={path}"]
        with started.Started(words, stderr=subprocess.PIPE, text=True) as mpirun:
            begun, line = mpirun.stderr.readline(), mpirun.stderr.readline()
            assert begun == "lockstep-stress: 100000 cases on 2 ranks, each at most 300 s\n", begun
            assert line == f"lockstep-stress: note: results go to {path}\n", line
            if scenario != endless:
                mpirun.until(lambda: os.path.exists(path) and os.path.getsize(path) > 512)
            mpirun.kill_all()
        assert scenario != endless or not os.path.exists(path), "no case was over"
    with open(path, "rb") as file:
        seal = file.read(512).decode()
    length = int(re.search(r"bytes=(\d+)", seal)[1])
    assert length == os.path.getsize(path) > 512, seal
    refused = run_stress.run(0, "--scenario=uneven_inputs/case1", "--backend=sim", "--ranks=2",
                             output=path)
    assert refused.code == 2 and f"{path} exists" in refused.errors, refused.errors


def outcomes_of(case):
    return [rank["outcome"] for rank in case["outcomes"]]


def catalogue():
    """Evaluation on one rank, lost ranks at every phase, mismatched calls; and a simulation of
    gloo's rules comes to the same ends as gloo."""
    groups = ["--scenario=buffers/*", "--scenario=isolation/*",
              "--scenario=mismatch/*", "--scenario=uneven_inputs/*", "--scenario=library/*",
              "--scenario=models/[!bg]*"]
    outcome = run_stress.run(2, *groups, "-T", "5")
    expect_pass(outcome, len(outcome.cases))
    simulated = run_stress.run(0, *groups, "--backend=sim", "--sim-rules=gloo", "--ranks=2")
    expect_pass(simulated, len(outcome.cases))
    for case in outcome.cases:
        if case["name"] in ("uneven_inputs/case4_all_reduce", "uneven_inputs/case5_all_reduce"):
            continue  # how gloo's segments of different lengths meet is a race
        if case["name"].endswith(("_at_time", "_mid_bucket")):
            continue  # how far into a call a rank is after 300 ms, or as it computes, nobody knows
        twin = simulated.named(case["name"])[0]
        assert outcomes_of(case) == outcomes_of(twin), (case["name"], case["outcomes"])
    assert len(outcome.cases) > 35
    assert all(case["faults_fired"] == len(case["faults"]) for case in outcome.cases
               if case["name"].startswith("isolation/"))
    detected(outcome)


def simulation():
    """The catalogue by gloo's rules, many seeds, the same twice; what needs no mpirun."""
    arguments = ["--scenario=uneven_inputs/*", "--scenario=buffers/*", "--scenario=isolation/*",
                 "--scenario=stragglers/*", "--scenario=groups/*", "--backend=sim",
                 "--sim-rules=gloo", f"--seed={SEED}", "--repeat=5"]
    first = run_stress.run(0, *arguments)
    second = run_stress.run(0, *arguments)
    expect_pass(first, len(first.cases))
    assert len(first.cases) >= 5 * 55
    assert [outcomes_of(case) for case in first.cases] == \
        [outcomes_of(case) for case in second.cases]
    mismatches = run_stress.run(0, "--scenario=mismatch/*k", "--scenario=mismatch/*8b",
                                "--backend=sim", "--sim-rules=gloo")
    expect_pass(mismatches, len(mismatches.cases))
    # Other rules.
    nccl = run_stress.run(0, "--scenario=uneven_inputs/case6", "--backend=sim", "--sim-rules=nccl")
    expect_pass(nccl, 1)
    silence_is_of_all_ranks()
    if started.SANITIZED:
        return print("SKIPPED: a sanitizer reserves more addresses than the limits of memory")
    too_little_memory()
    too_many_ranks()
    too_many_cases()


SLOW = """ranks = 2
[workload]
kind = "script"
rounds = 6
default = ["compute 1s", "barrier world"]
[expect.any]
ranks = "finished"
"""


def silence_is_of_all_ranks():
    """-T bounds no run: six seconds of which none is silent pass with -T 2; a silence of a second
    is one of half a second."""
    path = run_stress.scenario("test/slow", SLOW)
    expect_pass(run_stress.run(0, path, "--backend=sim", "-T", "2"), 1)
    outcome = run_stress.run(0, path, "--backend=sim", "-T", "0.5")
    assert outcome.code == 1, outcome.output
    case = outcome.cases[0]
    assert outcomes_of(case) == ["hung", "hung"], case
    assert case["findings"][0]["certainty"] == "suspected", case
    assert "ranks 0 and 1 are silent for 0.5 s" in case["findings"][0]["message"], case


LIMITED = ["bash", "-c", 'ulimit -v 2097152; exec "$@"', "limited"]


def too_little_memory():
    """What does not fit into this process is nobody's fault."""
    outcome = run_stress.run(0, "--scenario=models/bert_base", "--backend=sim", "--ranks=2", "-T1",
                             through=LIMITED)
    assert outcome.code == 3, f"{outcome.code}: {outcome.output}{outcome.errors}"
    assert "could not run it: " in outcome.output, outcome.output


BARRIERS = """ranks = "any"
[workload]
kind = "script"
rounds = 2
default = ["barrier world"]
[expect.any]
ranks = "finished"
"""


def too_many_ranks():
    """Ranks that do not fit are refused before anything starts; those that fit run."""
    words = [run_stress.scenario("test/barriers", BARRIERS), "--backend=sim", "-T", "1"]
    refused = run_stress.run(0, *words, "--ranks=65536", through=LIMITED)
    assert refused.code == 2, f"{refused.code}: {refused.output}{refused.errors}"
    most = re.search(r"simulate at most (\d+) ranks, or raise the limit \(ulimit -v\)",
                     refused.errors)
    assert most and not refused.output and refused.errors.count("\n") == 1, refused
    for ranks in (1000, most[1]):
        passed = run_stress.run(0, *words, f"--ranks={ranks}", through=LIMITED)
        assert passed.code == 0, f"{ranks}: {passed.output}{passed.errors}"


def too_many_cases():
    """Where earlier cases leave no room for the next one, or for a newer file, they are kept."""
    words = [run_stress.scenario("test/barriers", BARRIERS), "--backend=sim", "--ranks=3000"]
    ended = run_stress.run(0, *words, "--repeat=50", through=LIMITED)
    kept = re.search(r"more memory than .*\.h5 holds [1-9]\d* of 50 cases\n$", ended.errors)
    assert ended.code in (3, 4) and kept, f"{ended.code}: {ended.output}{ended.errors}"


RANDOM = """ranks = 2
[workload]
kind = "ddp_training"
model = "bn_4_4_2"
join = true
[[fault]]
kind = "{kind}"
rank = {rank}
at = "random"
[expect.any]
ranks = [{ranks}]
cause = "{cause}"
culprits = [{rank}]
"""


def random_faults():
    """A rank is lost at a moment drawn from the seed; who it was is always told."""
    paths = []
    # kind: (outcome, cause, what can become of the peer)
    kinds = {"kill": ("killed", "rank_killed", ["failed", "hung", "finished"]),
             "stop": ("stopped", "rank_stopped", ["hung", "finished"]),
             "exit": ("failed", "rank_exited", ["failed", "hung", "finished"])}
    for kind, (lost, cause, peer) in kinds.items():
        for rank in range(2):
            outcomes = [f'["{lost}"]', str(peer).replace("'", '"')]
            if rank == 1:
                outcomes.reverse()
            text = RANDOM.format(kind=kind, rank=rank, ranks=", ".join(outcomes), cause=cause)
            paths.append(f"--scenario={run_stress.scenario(f'random/{kind}{rank}', text)}")
    outcome = run_stress.run(2, *paths, f"--seed={SEED}", "--repeat=4", "-T", "20")
    expect_pass(outcome, 24)
    detected(outcome)


def stragglers():
    """Slow is not hung, and what is said at the deadline is said as a suspicion."""
    outcome = run_stress.run(2, "--scenario=stragglers/*", "-T", "6", f"--seed={SEED}")
    expect_pass(outcome, 13)
    for case in outcome.cases:
        if "longer_than_deadline" not in case["name"]:
            assert not case["findings"], f"a false alarm in {case['name']}: {case['findings']}"
    case = outcome.named("stragglers/sleep_longer_than_deadline")[0]
    assert case["findings"][0]["certainty"] == "suspected"
    assert case["detected_after_seconds"] >= 5.9


LOOP = """ranks = 2
[workload]
kind = "all_reduce_loop"
rounds = 10
"""


def verdicts():
    """What must not pass does not pass."""
    healthy = run_stress.scenario("own/healthy", LOOP)
    wrong = run_stress.scenario("own/wrong", LOOP + '[expect.gloo]\nranks = ["hung", "hung"]\n')
    silent = run_stress.scenario(
        "own/silent", LOOP + '[[fault]]\nkind = "kill"\nrank = 0\nat = "iteration:99"\n')
    other = run_stress.scenario("own/other", LOOP + '[expect.mpi]\nranks = "finished"\n')
    corrupt = run_stress.scenario(
        "own/corrupt",
        LOOP + '[[fault]]\nkind = "corrupt_result"\nrank = 1\nat = "collective:3"\n')
    cases = {healthy: (0, "pass"), wrong: (1, "fail"), silent: (3, "unknown"),
             other: (3, "unknown"), corrupt: (1, "fail")}
    for path, (code, verdict) in cases.items():
        outcome = run_stress.run(2, f"--scenario={path}", "-T", "5")
        print(outcome.output)
        assert outcome.code == code, f"{path}: exit code {outcome.code}: {outcome.errors}"
        assert [case["verdict"] for case in outcome.cases] == [verdict]
    corrupted = outcome.cases[0]
    assert [rank["outcome"] for rank in corrupted["outcomes"]] == ["finished", "corrupt"]
    assert corrupted["findings"][0]["cause"] == "data_corruption"
    assert corrupted["findings"][0]["culprits"] == [1]


def bad_input():
    """One line that names the input, the reason and the remedy; exit code 2."""
    misspelt = run_stress.scenario("own/misspelt", 'ranks = 2\n[workload]\nkind = "scrpt"\n')
    step = run_stress.scenario(
        "own/step",
        'ranks = 2\n[workload]\nkind = "script"\ndefault = ["all_reduse world f32 8"]\n')
    fault = run_stress.scenario(
        "own/fault", LOOP + '[[fault]]\nkind = "leave_group_opened"\nrank = 1\nat = "init"\n')
    wrong = {
        "--scenario=uneven_inputs/case9": "names nothing",
        "--scenario=/nonexistent.toml": "does not exist",
        f"--scenario={misspelt}": "did you mean 'script'",
        f"--scenario={step}": "did you mean 'all_reduce'",
        f"--scenario={fault}": "did you mean 'leave_group_open'",
        "--backend=glo": "--backend",
        "-T0": "-T",
        "--repeat=0": "--repeat",
        "--nonsense": "--help",
    }
    for argument, part in wrong.items():
        given = [argument] if "scenario" in argument else [argument, "--scenario=*"]
        outcome = run_stress.run(2, *given)
        lines = [line for line in outcome.errors.splitlines()
                 if line.startswith("lockstep-stress: ")]
        print(argument, outcome.code, lines)
        assert outcome.code == 2 and len(lines) == 1 and part in lines[0], outcome.errors
    outcome = run_stress.run(3, "--scenario=uneven_inputs/case4")
    assert outcome.code == 2 and "is not for 3 ranks" in outcome.errors, outcome.errors


def own_mistake():
    """What one rank alone cannot do it says itself, at once; all ranks know what they do."""
    good = run_stress.scenario("own/good", LOOP)
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    mine = [run_stress.STRESS, f"--output={run_stress.DIRECTORY}/own.h5"]
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "1", *mine,
              f"--scenario={good}", ":", "-np", "1", *mine, "--scenario=/nonexistent.toml"]
    done = subprocess.run(launch, capture_output=True, text=True, env=environment, check=False)
    print(done.returncode, done.stderr)
    assert done.returncode == 2, done.returncode
    assert "lockstep-stress: rank 1 (host " in done.stderr, "who and where"
    assert "/nonexistent.toml" in done.stderr and "did not join in time" not in done.stderr


def interrupted():
    """A simulated case ends at its limit, or by a signal; verdicts of others stand."""
    good = run_stress.scenario("own/good", LOOP)
    endless = run_stress.scenario("own/endless", LOOP.replace("10", "1000000000"))
    simulated = [f"--scenario={endless}", "--backend=sim", "--ranks=2"]
    outcome = run_stress.run(0, *simulated, "--limit=0.1")
    print(outcome.output)
    assert outcome.code == 3, outcome.errors
    assert [case["verdict"] for case in outcome.cases] == ["unknown"]
    assert "not over after 0.1 s (--limit)" in outcome.output
    alone = run_stress.scenario("own/alone", LOOP.replace("10", "1000000000").replace("2", '"any"'))
    outcome = run_stress.run(0, f"--scenario={alone}", "--backend=sim", "--ranks=1", "--limit=0.1")
    assert outcome.code == 3 and "not over after 0.1 s" in outcome.output, "it never waits"
    # A terminal on its stderr shows which case runs.
    ours, its = os.openpty()
    path, verdicts = (os.path.join(run_stress.DIRECTORY, f"own.{end}") for end in ("h5", "json"))
    words = [f"--scenario={good}", *simulated, f"--output={path}", f"--verdicts={verdicts}"]
    with subprocess.Popen([run_stress.STRESS, *words], stderr=its, stdout=subprocess.PIPE,
                          text=True) as process:
        os.close(its)
        shown = b""
        while b"own/endless" not in shown:
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        output = process.stdout.read()
    os.close(ours)
    print(output)
    assert process.returncode == 3, process.returncode
    assert "ended by a signal" in output and os.path.exists(path), "what is over is kept"
    with open(verdicts, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    assert [case["verdict"] for case in cases] == ["pass", "unknown"], cases


GROUPS = {
    "bad_input": bad_input,
    "catalogue": catalogue,
    "random_faults": random_faults,
    "simulation": simulation,
    "interrupted": interrupted,
    "kept": kept,
    "killed_at_once": killed_at_once,
    "own_mistake": own_mistake,
    "six_cases": six_cases,
    "stragglers": stragglers,
    "verdicts": verdicts,
}


def main():
    print(f"LOCKSTEP_TEST_SEED={SEED}")
    for group in sys.argv[1:]:
        GROUPS[group]()


main()
