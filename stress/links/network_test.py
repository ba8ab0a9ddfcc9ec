#!/usr/bin/env python3
"""The network between hosts is bad: ranks on hosts of our own (scripts/test_hosts), over gloo and
MPI. Arguments: the groups to run. Without namespaces it is said why, and nothing is tested.

LOCKSTEP_TEST_SEED repeats a run; NETWORK_TEST_TRIALS=50 is the long version of `random`, and of
`catalogue`, which then also runs on two hosts of two ranks.
"""
import os
import random
import subprocess
import sys
from functools import partial

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testing"))
import run_stress  # noqa: E402

HOSTS = os.path.abspath("scripts/test_hosts")
run_stress.STRESS = os.path.abspath(run_stress.STRESS)  # no other host starts here
LAUNCHES = run_stress.LAUNCHES
TRIALS = int(os.environ.get("NETWORK_TEST_TRIALS", "4"))
SEED = int(os.environ.get("LOCKSTEP_TEST_SEED", random.randrange(1, 10**6)))
PAIRS = """ranks = 4
[workload]
kind = "script"
rounds = {rounds}
default = ["all_reduce world f32 1024", "barrier world", "broadcast world f32 256 root=0"]
"""
# Much goes from the root to the next rank and the one after that, in a binomial tree.
TREE = """ranks = 4
[workload]
kind = "script"
rounds = 10
default = ["all_reduce world f32 1024", "broadcast world f32 65536 root={root}", "barrier world"]
"""


def across(ranks, *arguments):
    """Four ranks, so many a host."""
    through = [HOSTS, str(4 // ranks), f"--ranks-per-host={ranks}", "--"]
    return run_stress.run(0, *arguments, f"--seed={SEED}", through=through)


def why_not():
    done = subprocess.run([HOSTS, "1", "--shell", "--", "sh", "-c", "exec 3<>/dev/net/tun"],
                          capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def says(case):
    """The cause, and the culprits of the first finding."""
    if not case["findings"]:
        return None, []
    return case["findings"][0]["cause"], case["findings"][0]["culprits"]


def show(case):
    message = case["findings"][0]["message"] if case["findings"] else case["why"]
    print(case["name"], case["backend"], case["verdict"], case["why"], "|", message[-300:])


def catalogue():
    """Scenarios of the network come out as they should: some at random, or all of them, twice."""
    names = sorted(name[:-5] for name in os.listdir("stress/scenarios/network")
                   if name.endswith(".toml"))
    assert len(names) >= 14, names
    if TRIALS <= 4:
        names = sorted(random.Random(SEED).sample(names, 6) + ["delay"])
    for ranks in (1, 2) if TRIALS > 4 else (1,):
        cases = run_stress.until_fired(partial(across, ranks),
                                       [f"network/{name}" for name in dict.fromkeys(names)], 2)
        for name, case in cases.items():
            show(case)
            assert case["verdict"] == "pass", (ranks, case)
            if name.startswith("network/delay"):
                assert "TUN device" in case["faults"][0]["note"], "the mechanism is told"


def fault_text(kind, link, at, more=""):
    to = f"to = {link[1]}\n" if link[1] is not None else ""
    return (f'[[fault]]\nkind = "network_{kind}"\nfrom = {link[0]}\n{to}at = "{at}"\n{more}\n')


def drawn_text(kind, source, link, at, one_way):
    """Of a fault, with what is drawn for its kind."""
    return {
        "delay": lambda: fault_text("delay", link, at,
                                    f'delay = "{source.randrange(25, 60)}ms"'),
        "jitter": lambda: fault_text("delay", link, at, 'delay = "10ms"\n'
                                     f'jitter = "{source.randrange(40, 80)}ms"'),
        "loss": lambda: fault_text("loss", link, "iteration:2",
                                   f"loss = {source.uniform(0.1, 0.2):.3f}"),
        "rate": lambda: fault_text("rate", link, "iteration:1",
                                   f'rate = "{source.randrange(256, 512)}KiB"'),
        "reorder": lambda: fault_text("reorder", link, "iteration:2",
                                      'share = 0.5\ndelay = "60ms"'),
        "reset": lambda: fault_text("reset", link, at),
        "down": lambda: fault_text("down", link, at, one_way),
        "host": lambda: fault_text("down", link, at),
    }[kind]()


def causes_of(kind, backend):
    return {  # what is lost again and again waits for longer than -T: a stall of this link, too
        "loss": ["slow_link", "transport_stall"],
        "reset": ["transport_stall" if backend == "mpi" else "rank_failed"],
        "down": ["transport_stall"],
        "host": ["transport_stall"],
    }.get(kind, ["slow_link"])


def draw(source, number, ranks, backend, kind=None):
    """A fault, the program that meets it, the causes that are right, and the hosts to be named."""
    # Open MPI's trees and exchanges use the edges of a cube only.
    links = [(a, b) for a in range(4) for b in range(4)
             if a // ranks != b // ranks and (backend != "mpi" or a ^ b in (1, 2))]
    first, second = source.choice(links)
    hosts = {first // ranks, second // ranks}
    program = PAIRS.format(rounds=30 if number % 9 == 2 else 15)  # a loss needs its chance
    at = f"iteration:{source.randrange(2, 6)}"
    one_way = source.choice(['direction = "one_way"\n', ""])
    kinds = ["delay", "jitter", "loss", "rate", "reorder", "down", "down", "host", "reset"]
    kind = kind or kinds[number % len(kinds)]
    if kind == "rate":
        program = TREE.format(root=first if (second - first) % 4 in (1, 2) else second)
    if kind == "host":
        second = None
        hosts = {first // ranks} if ranks == 1 else {0, 1}
    text = drawn_text(kind, source, (first, second), at, one_way)
    return {"kind": kind, "link": (first, second), "causes": causes_of(kind, backend),
            "hosts": hosts,
            "path": run_stress.scenario(f"own/{backend}{ranks}_{number}_{kind}", program + text)}


def is_named(trial, ranks, case):
    """Whoever looks too rarely to see a slow link says nothing; a wrong name is never right."""
    show(case)
    cause, culprits = says(case)
    if cause is None and "slow_link" in trial["causes"]:
        return False
    named = {rank // ranks for rank in culprits}
    assert cause in trial["causes"] and named == trial["hosts"], (trial, cause, culprits)
    return True


def launch_until_named(trials, ranks, backend):
    left = {trial["path"]: trial for trial in trials}
    for _ in range(LAUNCHES):
        cases = run_stress.until_fired(partial(across, ranks, f"--backend={backend}"), left, 3)
        for path, case in cases.items():
            if is_named(left[path], ranks, case):
                del left[path]
        if not left:
            return
    raise AssertionError(f"not named in {LAUNCHES} launches: {left}")


def at_random():
    """Faults at random: the hosts between which they are are named, and never others."""
    source = random.Random(SEED)
    share = (TRIALS - TRIALS * 3 // 10) // 2
    for ranks in (1, 2):
        trials = [draw(source, number * 2 + ranks, ranks, "gloo") for number in range(share)]
        launch_until_named(trials, ranks, "gloo")
        print(f"gloo, {4 // ranks} x {ranks}: {share} trials")
    for number in range(TRIALS - 2 * share):
        ranks = 1 + number % 2
        kinds = ("delay", "down", "rate", "jitter", "host", "reset", "loss")
        kind = kinds[number // 2 % 7] if TRIALS > 4 else ("delay", "host")[number % 2]
        launch_until_named([draw(source, number, ranks, "mpi", kind)], ranks, "mpi")


def silent():
    """Nothing is said of a network that is well, wire or not; a wrong place is refused."""
    never = fault_text("delay", (0, 3), "iteration:99999", 'delay = "30ms"')
    well = run_stress.scenario("own/well", PAIRS.format(rounds=40))
    none = run_stress.scenario("own/never", PAIRS.format(rounds=40) + never)
    for ranks in (1, 2):
        outcome = across(ranks, f"--scenario={well}", f"--scenario={none}", "-T", "5")
        assert [case["verdict"] for case in outcome.cases] == ["pass", "unknown"], \
            outcome.output + outcome.errors
        for case in outcome.cases:
            assert not case["findings"], case
            assert all(rank["outcome"] == "finished" for rank in case["outcomes"])
    one = run_stress.run(4, f"--scenario={none}")
    assert one.code == 2 and "several hosts" in one.errors, one.errors
    together = run_stress.scenario("own/same", PAIRS.format(rounds=4) + fault_text(
        "down", (0, 1), "iteration:1"))
    outcome = across(2, f"--scenario={together}")
    assert outcome.cases[0]["verdict"] == "unknown", outcome.output
    assert "all on node1" in outcome.cases[0]["why"], outcome.cases[0]["why"]


GROUPS = {"catalogue": catalogue, "random": at_random, "silent": silent}


def main():
    print(f"LOCKSTEP_TEST_SEED={SEED}")
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        return
    for group in sys.argv[1:]:
        GROUPS[group]()


main()
