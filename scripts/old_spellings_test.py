#!/usr/bin/python3
"""Spellings of earlier versions are refused in one line that has today's name; options that would
do nothing are refused with the reason."""
import subprocess
import unittest

LOCKSTEP = "cli/lockstep"
# (command, old spelling, what its refusal says)
RENAMED = [
    (f"{LOCKSTEP} {command}", old, f"is called {now} now") for command, old, now in (
        ("nightly", "--output=x", "--output-folder"), ("nightly", "-o x", "--output-folder"),
        ("nightly", "--budget=5min", "--time-budget"),
        ("matrix", "--output=x", "--output-folder"), ("matrix", "-o x", "--output-folder"),
        ("scoreboard", "--output=x", "--output-folder"), ("scoreboard", "--seeds=2", "--repeat"),
        ("scoreboard", "--first-seed=2", "--seed"), ("scoreboard", "--time=9", "--time-budget"),
        ("scoreboard", "--deadline=2", "--timeout"),
        ("testbed", "--ranks=2", "--ranks-per-host"),
        ("run", "--output=x", "--output-folder"), ("run", "--limit=9", "--launch-limit"),
        ("export", "-o x", "--output"), ("report", "-o x", "--output"),
        ("diagnose", "--deadline=9", "--timeout"),
        ("diagnose", "--ras-seconds=9", "--ras-interval"),
        ("doctor", "--rules=x", "--rules-file"),
        ("sampler", "--n=9", "--samples"), ("sampler", "--world=2", "--ranks"),
        ("make-dataset", "--min-bytes=1", "--min-sample"),
        ("make-dataset", "--max-bytes=1", "--max-sample"),
        ("compare", "--drift=3%", "--launch-drift"),
        ("stress", "-n 2", "--ranks"), ("stress", "--np=2", "--ranks"),
        ("stress --ranks=2", "--json=x", "--verdicts"), ("status", "--json", "--format=json"))
] + [
    (f"{LOCKSTEP} watch", "--silence=9 -- true", "is called --timeout now"),
    (f"{LOCKSTEP} watch", "--report=x.h5 -- true", "takes no value now; write --output=x.h5"),
    ("stress/stress", "--json=x", "is called --verdicts now"),
    ("cli/fuzz/fuzz", "--seconds=9", "is called --time-budget now"),
    ("cli/fuzz/fuzz", "--rules=nccl", "is called --sim-rules now"),
] + [
    (f"{LOCKSTEP} {command} x", "--format=" + old, f"'{old}' is called '{now}' now")
    for command, old, now in (
        ("show", "table", "text"), ("compare", "table", "text"), ("trend", "table", "text"),
        ("score", "table", "text"), ("diagnose", "json", "jsonl"),
        ("trace-ddp", "json", "jsonl"))
] + [
    (f"{LOCKSTEP} buckets --model=resnet50", "--format=json", "'json' is called 'jsonl' now"),
    ("bench/bench_allreduce", "--format=table", "'table' is called 'text' now"),
    ("bench/bench_allreduce", "--no-device-marks", "is called --device-marks=off now"),
    ("bench/bench_allreduce", "-r 1", "bench_allreduce has no root"),
    ("bench/bench_broadcast", "-o sum", "bench_broadcast reduces nothing"),
    ("bench/bench_barrier", "-b 8", "a barrier has no data"),
    ("bench/bench_barrier", "-d f32", "a barrier has no data"),
    ("bench/bench_barrier", "-o sum", "a barrier has no data"),
    ("bench/bench_barrier", "-c 1", "moves no data"),
    ("bench/bench_sharding", "--check=full", "moves no data"),
    ("bench/bench_sharding", "--cuda-graph", "needs the host between"),
    ("bench/bench_links", "--cuda-graph", "needs the host between"),
]


class OldSpellingsTest(unittest.TestCase):

    def test_each_is_one_line_with_the_new_name(self):
        for command, old, said in RENAMED:
            words = command.split() + old.split()
            with self.subTest(" ".join(words)):
                done = subprocess.run(words, capture_output=True, text=True, check=False)
                self.assertEqual((2, ""), (done.returncode, done.stdout), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertEqual(1, done.stderr.count("\n"), done.stderr)

    def test_programs_speak_under_their_names(self):
        for words, name in ((["stress/stress"], "lockstep-stress: "),
                            (["cli/fuzz/fuzz", "--trials=x"], "lockstep-fuzz: "),
                            ([LOCKSTEP, "matrix"], "lockstep matrix: "),
                            (["bench/bench_links", "--per=x"], "bench_links: ")):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            self.assertEqual(2, done.returncode)
            self.assertTrue(done.stderr.startswith(name), done.stderr)


if __name__ == "__main__":
    unittest.main()
