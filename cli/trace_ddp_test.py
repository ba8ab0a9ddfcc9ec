#!/usr/bin/env python3
"""`lockstep trace-ddp`: what PyTorch was recorded to do, programs that hang, and bad input."""

import csv
import json
import os
import random
import re
import resource
import subprocess
import tempfile
import unittest

LOCKSTEP = "cli/lockstep"
GOLDEN = "core/ddp/testdata/collective_traces.txt"
# In the order of the recording.
PROGRAMS = ["linear", "batch_norm", "without_buffers", "no_sync", "evaluation",
            "unused_parameters", "static_graph", "join"]
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")

UNEVEN = """name = "test/uneven"
ranks = 2
[workload]
kind = "ddp_training"
model = "linear_1_1"
extra_inputs_per_rank = 1
"""


def random_programs(seed, count):
    """Programs whose ranks may do different things, the same ones for a seed."""
    draw = random.Random(seed)
    for _ in range(count):
        ranks = draw.choice([2, 2, 3])
        model = draw.choice(["linear_1_1", "bn_4_4_2", "two_branch"])
        lines = ['name = "test/random"', "ranks = %d" % ranks, "[workload]",
                 'kind = "ddp_training"', 'model = "%s"' % model,
                 "inputs = %d" % draw.randint(1, 5),
                 "extra_inputs_per_rank = %d" % draw.choice([0, 1, 1, 2])]
        if draw.random() < 0.6:
            lines.append("join = true")
            lines += ["join_throw = true"] * (draw.random() < 0.2)
        if draw.random() < 0.6:
            lines.append('barrier = "%s"' % draw.choice(["in_loop", "after_loop"]))
            lines += ['barrier_kind = "all_reduce"'] * (draw.random() < 0.7)
        if draw.random() < 0.3:
            lines.append("eval = { after_iteration = 0, ranks = [0], inputs = 2, grad = %s }"
                         % draw.choice(["true", "false"]))
        lines += ["broadcast_buffers = false"] * (draw.random() < 0.3)
        lines += ["find_unused_parameters = true"] * (draw.random() < 0.3)
        if model == "two_branch":
            lines.append('branch = ["%s"]' % '", "'.join(draw.choice("bc") for _ in range(ranks)))
        if model == "bn_4_4_2":
            lines += ["sync_batch_norm = true"] * (draw.random() < 0.4)
        yield "\n".join(lines) + "\n"


def path_of(name):
    return "datasets/testdata/programs/%s.toml" % name


def run(*arguments, **options):
    return subprocess.run([LOCKSTEP, "trace-ddp", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, **options)


def run_text(text, *arguments, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return run(path, *arguments, **options)


def recording():
    with open(GOLDEN, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if not line.startswith("# ")]


class TraceDdpTest(unittest.TestCase):
    maxDiff = None

    def assert_same_line(self, line, golden):
        """Equal; the numbers of final lines to 2e-6, since sums of f32 that cancel leave noise."""
        if not golden.startswith("FINAL"):
            self.assertEqual(line, golden)
            return
        self.assertEqual(NUMBER.sub("#", line), NUMBER.sub("#", golden))
        for ours, theirs in zip(NUMBER.findall(line), NUMBER.findall(golden)):
            self.assertAlmostEqual(float(ours), float(theirs), delta=2e-6, msg=line)

    def test_every_line_of_the_recording(self):
        golden = recording()
        self.assertEqual(sum(line.startswith("#####") for line in golden), len(PROGRAMS))
        for backend in ("sim", "null", "gloo"):
            done = run(*map(path_of, PROGRAMS), "--format=golden", "--backend=" + backend)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = done.stdout.splitlines()
            self.assertEqual(len(lines), len(golden))
            for line, theirs in zip(lines, golden):
                self.assert_same_line(line, theirs)

    def test_another_torch_and_another_program_differ(self):
        older = run(path_of("without_buffers"), "--format=golden", "--torch=1.13").stdout
        self.assertIn("2:BROADCAST[46].Float 3:BROADCAST[1].Long\n", older)
        newer = run(path_of("without_buffers"), "--format=golden").stdout
        self.assertNotIn("2:BROADCAST[46]", newer)
        more = run(path_of("linear"), "--ranks=3", "--format=golden").stdout
        self.assertIn("##### W=3 model=lin,n=3,extra=0\n", more)
        self.assertIn("  rank2 ITER2     7:ALLREDUCE[2].Float\n", more)

    def test_a_hang_is_stated_with_the_traces_so_far(self):
        text = UNEVEN + 'after_finish = "linger"\n'
        for arguments in (["--sim-rules=nccl"], ["--sim-rules=mpi"], ["--sim-rules=gloo"],
                          ["--backend=gloo", "--timeout=10"]):
            says = "suspected hang" if len(arguments) == 2 else "would wait for ever"
            with self.subTest(arguments=arguments):
                done = run_text(text, *arguments)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("rank 0 finished\n", done.stdout)
                last = done.stdout.splitlines()[-1]
                self.assertTrue(last.startswith("rank 1 %s: " % says), last)
                self.assertIn("collective 10, all_reduce f32 x 2 sum", last)
                self.assertIn(">   10", done.stdout)

    def test_a_rank_that_loads_for_long_is_no_hang(self):
        """gloo's time-out proves nothing: the rank that is busy is named, and nobody accused."""
        text = UNEVEN.replace("extra_inputs_per_rank = 1", "inputs = 1") + "load_us = [0, %d]\n"
        for seconds in (5, 10, 20):  # the constructor's calls are slow beside others
            done = run_text(text % (seconds * 2_400_000), "--backend=gloo",
                            "--timeout=%d" % seconds)
            self.assertIn(done.returncode, (0, 3), done.stdout)
            if "still busy (load)" in done.stdout:
                break
        self.assertEqual((done.returncode, done.stderr), (3, ""), done.stdout)
        rank0, rank1 = done.stdout.splitlines()[-2:]
        says = "rank 0 timed out: it waited more than %d s: " % seconds
        self.assertTrue(rank0.startswith(says), rank0)
        self.assertTrue(rank0.endswith("rank 1 was still busy (load) after collective 2"), rank0)
        self.assertTrue(rank1.startswith("rank 1 lost its peers: "), rank1)
        # In virtual time it ends, however long it takes.
        done = run_text(text % 7_200_000_000)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_a_barrier_inside_join_hangs_both_ranks(self):
        text = UNEVEN + 'join = true\nbarrier = "in_loop"\n'
        ranks = json.loads(run_text(text, "--format=jsonl").stdout)["ranks"]
        self.assertEqual([rank["outcome"] for rank in ranks], ["hung", "hung"])
        self.assertIn("all_reduce f32 x 1", ranks[0]["message"])
        self.assertIn("barrier", ranks[1]["message"])

    def test_a_process_that_gloo_ends_is_its_ranks_end(self):
        """A message longer than what waits for it: gloo aborts that rank, and nobody else."""
        text = UNEVEN + 'join = true\nbarrier = "in_loop"\nbarrier_kind = "all_reduce"\n'
        done = run_text(text, "--backend=gloo", "--timeout=20")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        rank0, rank1 = done.stdout.splitlines()[-2:]
        self.assertRegex(rank0, "^rank 0 failed: ")  # by the closed connection, or what came before
        self.assertRegex(rank1, "^rank 1 failed: crashed: SIGABRT in or after collective 2[0-9], ")
        self.assertRegex(rank1, "op.preamble.length <= op.nbytes. 8 vs 4")
        self.assertIn("join: final rank", done.stdout)  # what it had called is there

    def test_random_programs_end_no_command(self):
        """Whatever comes of a program, the command says it of every rank, and no signal ends it."""
        for torn in random_programs(seed=13, count=24):
            done = run_text(torn, "--backend=gloo", "--timeout=0.5", "--format=jsonl")
            self.assertIn(done.returncode, (0, 1, 3), torn + done.stderr)
            self.assertEqual(done.stderr, "", torn)
            ranks = json.loads(done.stdout)["ranks"]
            outcomes = [rank["outcome"] for rank in ranks]
            self.assertLessEqual(set(outcomes), {"finished", "failed", "suspected_hang",
                                                 "timed_out", "lost_peers"}, torn)
            self.assertEqual(done.returncode == 0, set(outcomes) == {"finished"}, torn)
            self.assertTrue(all(rank["sections"] for rank in ranks), torn)

    def test_ranks_may_connect_later_than_silence_counts(self):
        # 16 processes start in more than 0.1 s, mostly. What they do then may last longer, too.
        done = run_text(UNEVEN, "--backend=gloo", "--timeout=0.1", "--ranks=16", "--format=jsonl")
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        self.assertEqual((done.stderr, len(json.loads(done.stdout)["ranks"])), ("", 16))

    def test_join_cures_uneven_inputs(self):
        done = run_text(UNEVEN + "join = true\n", "--format=golden")
        self.assertEqual(done.returncode, 0, done.stdout)
        # Two rows of ones an input: 5 inputs, and 5 with all ranks and half of the sixth.
        self.assertIn("FINAL rank 1 w0 [-0.007487, 0.536444] grad [", done.stdout)
        # Notices, verification and 3 collectives an iteration: 26 in all (ddp: seq 0 to 25).
        self.assertIn(" 25:", done.stdout)
        self.assertNotIn(" 26:", done.stdout)

    def test_gradients_of_uneven_inputs(self):
        """As PyTorch gives them: rank 0 has five inputs, rank 1 six, each of one row."""
        text = UNEVEN + "linear_rows = 1\njoin = true\n"
        for backend in ("sim", "gloo"):
            done = run_text(text, "--format=golden", "--backend=" + backend)
            self.assertEqual(done.returncode, 0, done.stderr)
            for rank, grad in enumerate(("5.0", "3.0")):
                line = "FINAL rank %d .* grad \\[%s, %s\\]" % (rank, grad, grad)
                self.assertRegex(done.stdout, line)

    def test_an_exception_is_the_ranks_end(self):
        done = run_text(UNEVEN + "join = true\njoin_throw = true\n", "--format=jsonl")
        self.assertEqual(done.returncode, 1)
        ranks = json.loads(done.stdout)["ranks"]
        self.assertEqual([rank["outcome"] for rank in ranks], ["failed", "failed"])
        self.assertEqual(ranks[0]["message"], "Rank 0 exhausted all inputs.")

    def test_computing_takes_virtual_time(self):
        text = UNEVEN + "join = true\ncompute_us = 60_000_000\n"
        done = run_text(text, "--format=golden")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, run_text(UNEVEN + "join = true\n", "--format=golden").stdout)

    def test_csv_has_a_row_a_call(self):
        done = run(path_of("linear"), path_of("join"), "--format=csv")
        rows = list(csv.DictReader(done.stdout.splitlines()))
        told = json.loads(run(path_of("linear"), "--format=jsonl").stdout)
        calls = [str(call["count"]) for rank in told["ranks"] for section in rank["sections"]
                 for call in section["collectives"]]
        first = [row for row in rows if row["program"] == told["program"]]
        self.assertEqual([row["count"] for row in first], calls)
        self.assertEqual({row["end"] for row in rows}, {"finished"})
        self.assertGreater(len(rows), len(first))
        self.assertEqual(done.stdout.count("program,rank,end,"), 1)

    def test_models_of_datasets(self):
        text = 'name = "t/m"\nranks = 1\n[workload]\nkind = "ddp_training"\nmodel = "resnet50"\n'
        done = run_text(text + "inputs = 2\n", "--format=jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        sections = json.loads(done.stdout)["ranks"][0]["sections"]
        counts = [call["count"] for call in sections[2]["collectives"]
                  if call["purpose"] == "bucket"]
        self.assertEqual(counts, [2049000, 7875584, 6563840, 6637568, 2431040])

    def test_lack_of_memory_is_the_environments(self):
        """Whatever the limit, no rank is accused: all is well, or exit code 4 and one line."""
        text = 'name = "t/m"\nranks = 2\n[workload]\nkind = "ddp_training"\ninputs = 1\n'
        stacks, copies = text + 'model = "linear_1_1"\n', text + 'model = "resnet50"\n'
        for program, arguments in [(stacks, ["--ranks=400"]), (copies, ["--ranks=2"]),
                                   (copies, ["--ranks=2", "--backend=gloo", "--timeout=600"])]:
            codes = []
            for mebibytes in (80, 150, 300, 390, 440, 500, 600, 700):
                def lessen(limit=mebibytes << 20):
                    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
                if run("--help", preexec_fn=lessen).returncode != 0:
                    self.skipTest("a sanitizer needs more address space to start")
                done = run_text(program, *arguments, preexec_fn=lessen)
                codes.append(done.returncode)
                self.assertIn(done.returncode, (0, 4), done.stdout[-500:] + done.stderr)
                self.assertEqual(done.stderr.count("\n"), done.returncode // 4, done.stderr)
            self.assertEqual(codes[0], 4, arguments)

    def test_bad_input_is_one_line_and_exit_code_2(self):
        good = path_of("linear")
        for arguments, says in [
                ([], "PROGRAM is required"),
                (["no/such.toml"], "'no/such.toml' does not exist"),
                ([good, "--format=xml"], "--format: 'xml' is none of text, golden, jsonl"),
                ([good, "--backend=mpi"], "'mpi' is unknown; choose from sim, null, gloo"),
                ([good, "--sim-rules=tcp"], "--sim-rules: there are no rules 'tcp'"),
                ([good, "--torch=3"], "--torch: '3'"),
                ([good, "--ranks=0"], "--ranks"),
                ([good, "--timeout=0"], "--timeout")]:
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(says, done.stderr)
        done = run_text(UNEVEN + "modle = 3\n")
        self.assertEqual(done.returncode, 2)
        self.assertIn("program.toml:7: key workload.modle: unknown; did you mean 'model'?",
                      done.stderr)
        done = run_text(UNEVEN.replace("linear_1_1", "linear_1"))
        self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
