#!/usr/bin/python3
"""Training steps under DDP and broadcasts of a model's state: where the file says time goes."""
import json
import os
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch, text, with_enough_time

STEP = "bench/bench_ddp_step"
BROADCAST = "bench/bench_broadcast"
ADDING_UP = ("buffer_broadcast_ns", "forward_ns", "backward_ns", "exposed_communication_ns",
             "copy_back_ns")


def write_model():
    """Eight layers of 1 MiB in all and a batch norm: quick, and enough buckets to overlap."""
    params, order = [], []
    for layer in range(8):
        params.append({"name": f"layer{layer}.weight", "shape": [256, 128], "dtype": "f32"})
        params.append({"name": f"layer{layer}.bias", "shape": [256], "dtype": "f32"})
    for layer in reversed(range(8)):
        order += [2 * layer + 1, 2 * layer]
    buffers = [{"name": "norm.running_mean", "shape": [256], "dtype": "f32"},
               {"name": "norm.num_batches_tracked", "shape": [], "dtype": "i64"}]
    path = os.path.join(os.environ["TEST_TMPDIR"], "eight_layers.json")
    with open(path, "w") as file:
        json.dump({"name": "eight_layers", "params": params, "ready_order": order,
                   "buffers": buffers}, file)
    return path


MODEL = write_model()


def measure(*arguments, binary=STEP, backend="gloo", ranks=2, environment=None):
    launch = Launch(binary, [f"--model={MODEL}", f"--backend={backend}", *arguments], ranks=ranks,
                    environment=environment).finish()
    return launch


def rounds_of(file, index):
    return set(file[f"cases/{index}/samples/round"][:])


def compares_nothing(launch):
    """Whether a case has no round but the one that calibrates, and nothing worse happened."""
    if launch.code not in (0, 3):
        return False
    with h5py.File(launch.path) as file:
        return any(len(rounds_of(file, index)) < 2 for index in file["cases"])


def column(case, name):
    return case["parts/" + name][:]


class StepTest(unittest.TestCase):
    def check(self, launch):
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertEqual(launch.leftovers(), [])
        return h5py.File(launch.path)

    def test_parts_add_up_to_the_step(self):
        for backend in ("gloo", "mpi"):
            launch = measure("-n", "12", "--broadcast-buffers=0,1", "--accumulate=1,3",
                             "--compute-ms=4", backend=backend)
            with self.check(launch) as file:
                self.assertEqual(len(file["cases"]), 4)
                for case in file["cases"].values():
                    step = case["samples/exit_ns"][:] - case["samples/entry_ns"][:]
                    parts = sum(column(case, name) for name in ADDING_UP)
                    self.assertEqual(step.shape, (12, 2))
                    # Between two parts a thread may lose its processor. For that to happen in half
                    # of the 24 steps, each time in a gap of microseconds (a chance of 1 in 100 at
                    # the very most), the chance is below 1e-6: 24 over 12 times 1e-24.
                    share = float(numpy.median(parts / step))
                    self.assertGreater(share, 0.95, case.attrs["name"])
                    self.assertLess(float((parts / step).max()), 1.001)
                    with_buffers = case["settings"].attrs["broadcast_buffers"] == "true"
                    self.assertEqual(bool((column(case, "buffer_broadcast_ns") > 0).all()),
                                     with_buffers)
                rows = file["parts"][:]
                self.assertEqual(len(rows), 4 * 7)

    def test_gradients_stay_right_beside_products(self):
        """How long products take is a matter of scripts/benchmarks."""
        launch = measure("-n", "6", "--compute-ms=30", "--compute=matmul", "--check=full")
        with self.check(launch) as file:
            case = file["cases/0"]
            self.assertEqual(case["settings"].attrs["compute"], "matmul")
            self.assertTrue(case.attrs["name"].endswith("/compute:matmul"))
            computed_ms = (column(case, "forward_ns") + column(case, "backward_ns")) / 1e6
            self.assertTrue((computed_ms > 0).all(), computed_ms)
            self.assertEqual(int(file["summary"][0]["wrong_elements"]), 0)

    def test_one_bucket_and_rebuilt_buckets(self):
        """Both forms of one bucket: the first iteration, and a cap above the model's size. How much
        they overlap is a matter of scripts/benchmarks."""
        overlap, buckets = {}, {}
        # How long is computed matters to one case.
        for launch in (measure("-n", "15", "--bucket-cap-mb=0.1,100", "--first-iteration"),
                       measure("-n", "15", "-w", "1", "--bucket-cap-mb=0.1", "--compute-ms=30",
                               "--benchmark_filter=cap:0.1$")):
            with self.check(launch) as file:
                for row in file["summary"][:]:
                    buckets[text(row["name"])] = row["operations"]
                for case in file["cases"].values():
                    overlap[case.attrs["name"]] = column(case, "overlap")
                    self.assertTrue(((0 <= column(case, "overlap"))
                                     & (column(case, "overlap") <= 1)).all(), overlap)
        prefix = "ddp_step/eight_layers/cap:"
        self.assertEqual(buckets[prefix + "0.1"], 8)
        for one in ("100", "0.1/first_iteration", "default/first_iteration"):
            self.assertEqual(buckets[prefix + one], 1)
        # In one of 30 steps at least a thread is let run within the 26 ms that are computed yet: if
        # it is so in half of them, the chance of a failure is below 1e-6.
        self.assertGreater(float(overlap[prefix + "0.1"].max()), 0, overlap)

    def test_gradients_are_compared_in_every_configuration(self):
        launch = measure("-n", "2", "--comm-hook=none,fp16,bf16,powersgd", "--find-unused=0,1",
                         "--check=full")
        with self.check(launch) as file:
            self.assertEqual(len(file["summary"]), 8)
            for row in file["summary"][:]:
                self.assertGreaterEqual(row["checked_elements"], 2 * 2 * 264192, row["name"])
                self.assertEqual(row["wrong_elements"], 0)

    def test_static_graph_on_three_ranks(self):
        launch = measure("-n", "3", "--static-graph", "--accumulate=1,2", ranks=3)
        with self.check(launch) as file:
            self.assertEqual(len(file["summary"]), 2)
            for row in file["summary"][:]:
                self.assertEqual(text(row["verdict"]), "pass")
                self.assertGreater(row["checked_elements"], 0)

    def test_a_wrong_gradient_is_found_and_located(self):
        shim = os.path.abspath("bench/peers/libfaulty_allreduce.so")
        launch = measure("-n", "8", "--check=full", backend="mpi", environment={
            "LD_PRELOAD": shim, "FAULTY_KIND": "add", "FAULTY_CALL": "10", "FAULTY_RANK": "1"})
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        first = launch.out.splitlines()[0]
        for word in ("rank 1 received wrong data", "expected", "layer", ".grad"):
            self.assertIn(word, first)
        self.assertEqual(launch.outcomes(), {0: "finished", 1: "corrupt"})

    def test_a_hang_in_a_step_is_found_and_the_samples_stay(self):
        shim = os.path.abspath("bench/peers/libfaulty_allreduce.so")
        launch = measure("-n", "100", "-T", "3", backend="mpi", environment={
            "LD_PRELOAD": shim, "FAULTY_KIND": "hang", "FAULTY_CALL": "60", "FAULTY_RANK": "1"})
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn("all_reduce", launch.out.splitlines()[0])
        self.assertEqual(launch.outcomes(), {0: "hung", 1: "hung"})
        with h5py.File(launch.path) as file:
            self.assertGreater(file["cases/0/samples/round"].shape[0], 5)
            self.assertEqual(file["cases/0/parts/forward_ns"].shape,
                             file["cases/0/samples/entry_ns"].shape)
        self.assertEqual(launch.leftovers(), [])

    def test_the_recommendation_follows_from_paired_rounds(self):
        launch = with_enough_time(
            lambda budget_s: measure("--bucket-cap-mb=0.1", "--broadcast-buffers=0,1",
                                     f"--time-budget={budget_s}s"), compares_nothing, budget_s=5)
        with self.check(launch) as file:
            effects = {(text(row["option"]), text(row["value"])): row
                       for row in file["effects"][:] if row["baseline"] == 0}
            self.assertEqual(set(effects), {("bucket_cap_mb", "0.1"),
                                            ("broadcast_buffers", "false")})
            for row in effects.values():
                case, baseline = (rounds_of(file, row[name]) for name in ("case", "baseline"))
                # The round that calibrates does not count.
                self.assertEqual(row["rounds"], len(case & baseline - {0}))
                self.assertLessEqual(row["interval_low"], row["ratio"])
                self.assertLessEqual(row["ratio"], row["interval_high"])
            advice = text(file.attrs["recommendation"])
            self.assertTrue(advice.startswith("eight_layers: "), advice)
            # How many rounds there are depends on the machine, and so does what they tell.
            if any(row["interval_low"] > 1 and row["ratio"] >= 1.01 for row in effects.values()):
                words = "times faster than"
            elif all(row["interval_high"] < max(1, 1.5 * row["interval_low"])
                     for row in effects.values()):
                words = "keep the defaults: "
            else:
                words = "undecided after "
            self.assertIn(words, advice)
        self.assertIn("Recommendation: " + advice, launch.out)


class StateBroadcastTest(unittest.TestCase):
    def test_the_state_of_a_model_is_broadcast_and_compared(self):
        for backend in ("gloo", "mpi"):
            launch = measure("-n", "5", binary=BROADCAST, backend=backend)
            self.assertEqual(launch.code, 0, launch.out + launch.err)
            with h5py.File(launch.path) as file:
                rows = {text(row["name"]): row for row in file["summary"][:]}
                constructor = rows["state_broadcast/eight_layers/constructor"]
                forward = rows["state_broadcast/eight_layers/forward"]
                self.assertEqual(constructor["operations"], 2)  # f32 and i64
                self.assertEqual(constructor["bytes"], 4 * (264192 + 256) + 8)
                self.assertEqual(forward["bytes"], 4 * 256 + 8)
                # Five timed and five warm-up iterations on both ranks.
                self.assertEqual(forward["checked_elements"], 2 * 10 * 257)
                self.assertEqual(constructor["wrong_elements"], 0)
                case = file["cases/0"]
                step = case["samples/exit_ns"][:] - case["samples/entry_ns"][:]
                parts = column(case, "communication_ns") + column(case, "copies_ns")
                self.assertTrue(numpy.allclose(parts, step, rtol=0.01))


if __name__ == "__main__":
    unittest.main()
