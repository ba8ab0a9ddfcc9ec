#!/usr/bin/python3
"""--backend=nccl: what is missing is said in one line; over a stand-in library, what goes wrong in
NCCL is found, told with NCCL's own words, and leaves nothing behind."""
import contextlib
import glob
import json
import os
import signal
import sys
import tempfile
import unittest

import h5py

sys.path.insert(0, os.getcwd())
from bench.testing.launch import Launch, text

BENCH = "bench/bench_allreduce"
STEP = "bench/bench_ddp_step"
FAKE = os.path.abspath("core/comm/nccl/testing/libfake_nccl_22809.so")
NVML = os.path.abspath("core/environment/libfake_nvml.so")
SMALL = ["-b", "8", "-e", "8", "-n", "40", "-w", "2"]


def run(arguments, faults="", binary=BENCH, library=FAKE, nvml=""):
    words = ["--backend=nccl"] + arguments
    if library:
        words.append("--nccl-library=" + library)
    environment = {"TMPDIR": os.environ["TEST_TMPDIR"]}
    if nvml:
        environment["LOCKSTEP_NVML_LIBRARY"] = nvml
    if faults:
        environment["LOCKSTEP_FAKE_NCCL"] = faults
    return Launch(binary, words, environment=environment).finish()


def line_of(launch):
    lines = [line for line in launch.err.splitlines() if line.startswith("bench_allreduce: ")]
    return lines[0] if len(lines) == 1 else f"{len(lines)} lines: {launch.err}"


def small_model():
    """Six parameters of 47,500 elements, for buckets of 50 kB, and buffers."""
    shapes = [("a.weight", [100, 125]), ("a.bias", [2500]), ("b.weight", [100, 150]),
              ("b.bias", [2500]), ("c.weight", [100, 125]), ("c.bias", [2500])]
    params = [{"name": name, "shape": shape, "dtype": "f32"} for name, shape in shapes]
    buffers = [{"name": "a.mean", "shape": [100], "dtype": "f32"},
               {"name": "a.num_batches_tracked", "shape": [], "dtype": "i64"}]
    path = os.path.join(os.environ["TEST_TMPDIR"], "small.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"name": "small", "params": params, "ready_order": [5, 4, 3, 2, 1, 0],
                   "buffers": buffers}, file)
    return path


class Nccl(unittest.TestCase):
    REPLAYED = 40

    def test_a_library_that_is_not_there(self):
        launch = run(SMALL, library="/nonexistent/libnccl.so.2")
        self.assertEqual(launch.code, 4, launch.err)
        self.assertIn("--nccl-library", line_of(launch))
        self.assertIn("/nonexistent/libnccl.so.2", line_of(launch))
        self.assertEqual(launch.leftovers(), [])

    def test_ranks_per_gpu_out_of_range(self):
        launch = run(SMALL + ["--ranks-per-gpu=0"])
        self.assertEqual(launch.code, 2, launch.err)
        self.assertIn("--ranks-per-gpu=0", line_of(launch))

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has an NVIDIA driver")
    def test_a_machine_without_a_gpu(self):
        launch = run(SMALL, library="")
        self.assertEqual(launch.code, 4, launch.err)
        self.assertRegex(line_of(launch),
                         "no CUDA device: |NCCL can't be loaded|built without CUDA")
        self.assertEqual(launch.leftovers(), [])

    def test_figures_of_a_stand_in_say_so(self):
        launch = run(["-b", "8", "-e", "64K", "-f", "64", "-d", "f32,bf16", "-n", "5"])
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertIn("not figures of NCCL", line_of(launch))
        with h5py.File(launch.path) as file:
            software = file["environment"]["software"].attrs
            self.assertIn("stand-in", text(software["backend_remark"]))
            self.assertIn("2.28.9", text(software["backend_version"]))
        self.assertEqual(launch.leftovers(), [])

    def test_floats_of_8_bits_where_the_library_has_them(self):
        types = ["-d", "f8e4m3,f8e5m2", "-o", "all"]
        launch = run(SMALL + types)
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        with h5py.File(launch.path) as file:
            self.assertEqual({b"f8e4m3", b"f8e5m2"}, set(file["summary"]["type"]))
        launch = run(SMALL + types, "ncclAllReduce:corrupt:rank=1:nth=20")
        self.assertEqual(launch.code, 1, launch.err)
        self.assertIn("FAIL: rank 1 received wrong data", launch.out)
        launch = run(SMALL + types, library=FAKE.replace("22809", "22203"))
        self.assertEqual(launch.code, 2, launch.err)
        self.assertIn("f8e4m3 came with NCCL 2.24.3", line_of(launch))
        self.assertIn("is 2.22.3; leave it out of -d", line_of(launch))
        self.assertEqual(launch.leftovers(), [])

    def test_ranks_that_share_a_gpu_are_marked(self):
        launch = run(SMALL + ["--ranks-per-gpu=2"])
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertIn("2 ranks share a GPU", line_of(launch))
        with h5py.File(launch.path) as file:
            remark = text(file["environment/software"].attrs["backend_remark"])
        self.assertIn("not a bandwidth figure", remark)

    def test_training_steps(self):
        launch = run(["--model=resnet50", "-n", "1", "-w", "0"], binary=STEP)
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertIn("PASS", launch.out)

    def test_a_corrupt_result(self):
        launch = run(SMALL, "ncclAllReduce:corrupt:rank=1:nth=20")
        self.assertEqual(launch.code, 1, launch.err)
        self.assertIn("FAIL: rank 1 received wrong data", launch.out)

    def test_an_asynchronous_error_is_told_with_nccls_log(self):
        launch = run(SMALL, "ncclAllReduce:async=6:rank=1:nth=20")
        self.assertEqual(launch.code, 1, launch.err)
        self.assertIn("rank 1 reported an error in all_reduce", launch.out)
        self.assertIn("remote process exited or there was a network error (6)", launch.out)
        self.assertRegex(launch.out, "NCCL's log ends: ")
        self.assertEqual(launch.leftovers(), [])

    def test_an_operation_that_never_ends(self):
        launch = run(SMALL + ["-T", "2"], "ncclAllReduce:stuck:rank=1:nth=20")
        self.assertEqual(launch.code, 1, launch.err)
        self.assertIn("entered all_reduce", launch.out)
        self.assertEqual(launch.leftovers(), [])

    def test_a_hang_has_what_the_driver_and_the_log_say(self):
        launch = run(SMALL + ["-T", "4"], "ncclAllReduce:stuck:rank=1:nth=20", nvml=NVML)
        self.assertEqual(launch.code, 1, launch.err)
        with h5py.File(launch.path) as file:
            samples = file["gpu_samples"][:]
            self.assertEqual({row["bus"].decode() for row in samples},
                             {"00000000:01:00.0", "00000000:02:00.0"})
            self.assertEqual(set(samples["utilization_percent"]), {100})
            self.assertEqual(set(samples["rank"]), {0})
            evidence = [row["evidence"].decode() for row in file["verdicts/outcomes"][:]
                        if row["outcome"] == b"hung"]
            logs = {row["rank"]: row["text"].decode() for row in file["logs"][:]}
            self.assertEqual(file["environment/software"].attrs["device_marks"],
                             "none: --device-marks=off")
        self.assertTrue(evidence)
        for text in evidence:
            self.assertIn("device marks are off: --device-marks=on shows where its GPU is; ", text)
            self.assertRegex(text, r"GPU [01] at 100 % utilization")
            self.assertIn("95 W of 700 W: a kernel waits there and does no work", text)
        self.assertIn("NCCL", logs[1])
        self.assertEqual(launch.leftovers(), [])

    def test_a_log_is_kept_when_its_rank_was_killed(self):
        launch = run(SMALL, "ncclAllReduce:kill:rank=1:nth=20")
        self.assertEqual(launch.code, 1, launch.err)
        with h5py.File(launch.path) as file:
            logs = {row["rank"]: row for row in file["logs"][:]}
        self.assertIn(b"NCCL", logs[1]["text"])
        self.assertEqual(logs[1]["cut_bytes"], 0)
        self.assertEqual(launch.leftovers(), [])

    def test_nothing_is_left_of_the_logs_when_all_are_killed(self):
        folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        launch = Launch(BENCH, ["--backend=nccl", "--nccl-library=" + FAKE, "-b", "8", "-e", "8",
                                "-n", "1000000000", "--no-gpu-samples"],
                        environment={"TMPDIR": folder})
        workers = launch.await_workers(computed_seconds=1)
        for pid in workers.values():
            links = []
            for one in glob.glob(f"/proc/{pid}/fd/*"):
                with contextlib.suppress(OSError):  # closed since
                    links.append(os.readlink(one))
            self.assertIn("/memfd:lockstep-log (deleted)", links)
        for pid in [*launch.processes(worker=False), *workers.values(), launch.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        launch.finish()
        self.assertEqual(launch.leftovers(), [])
        names = [name for _, folders, names in os.walk(folder) for name in folders + names]
        self.assertEqual([name for name in names if "lockstep" in name], [])

    def test_no_samples_are_taken_when_nobody_wants_them(self):
        launch = run(SMALL + ["--no-gpu-samples"], nvml=NVML)
        self.assertEqual(launch.code, 0, launch.err)
        with h5py.File(launch.path) as file:
            self.assertNotIn("gpu_samples", file)

    def test_a_graph_is_replayed_and_its_results_are_right(self):
        launch = run(["-b", "8", "-e", "64K", "-f", "64", "-d", "f32,bf16", "-n", "6", "-w", "2",
                      "--check=full", "--placement=both", "--cuda-graph"])
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertIn("replayed as a graph", line_of(launch))
        with h5py.File(launch.path) as file:
            self.assertEqual(len(file["summary"]), 12)
            self.assertEqual(set(file["summary"]["wrong_elements"]), {0})
            self.assertGreater(min(file["summary"]["checked_elements"]), 0)
        self.assertEqual(launch.leftovers(), [])

    def test_the_buckets_of_a_model_are_one_graph(self):
        launch = run(["--model=resnet50", "-n", "2", "-w", "0", "--cuda-graph"])
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertIn("PASS", launch.out)

    def test_a_replay_that_is_wrong_or_does_not_end_is_found(self):
        graph = SMALL + ["--cuda-graph"]  # whose even calls are replays, and the odd ones barriers
        launch = run(graph, "ncclAllReduce:corrupt:rank=1:nth=22")
        self.assertEqual(launch.code, 1, launch.err)
        self.assertIn("FAIL: rank 1 received wrong data", launch.out)
        launch = run(graph + ["-T", "2"], "ncclAllReduce:stuck:rank=1:nth=22")
        self.assertEqual(launch.code, 1, launch.err)
        self.assertIn("graph replay: call 0 of iteration", launch.out)
        launch = run(graph, "ncclAllReduce:async=6:rank=1:nth=22")
        self.assertEqual(launch.code, 1, launch.err)
        self.assertIn("rank 1 reported an error in all_reduce", launch.out)
        self.assertEqual(launch.leftovers(), [])

    def test_a_training_step_is_one_graph_and_its_gradients_are_right(self):
        launch = run(["--model=" + small_model(), "-n", "6", "-w", "2", "--check=full",
                      "--bucket-cap-mb=0.05", "--comm-hook=none,bf16", "--accumulate=1,2",
                      "--broadcast-buffers=0,1", "--cuda-graph=0,1"], binary=STEP)
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        with h5py.File(launch.path) as file:
            self.assertEqual(len(file["summary"]), 32)  # two caps
            self.assertEqual(set(file["summary"]["wrong_elements"]), {0})
            self.assertGreater(min(file["summary"]["checked_elements"]), 6 * 40_000)
            graphs = 0
            for number, row in enumerate(file["summary"][:]):
                settings = file["cases/%d/settings" % number].attrs
                graph = text(settings["cuda_graph"]) == "true"
                graphs += graph
                self.assertEqual(graph, row["name"].endswith(b"/cuda_graph"))
                self.assertEqual(graph, not row["name"].endswith(b"/no_timeline"))
            remark = text(file["environment/software"].attrs["backend_remark"])
            self.assertIn("captured once and replayed as a graph", remark)
            self.assertEqual(graphs, 16)
            self.assertIn(b"cuda_graph", set(file["effects"]["option"]))
        self.assertRegex(launch.out, "case +step .* launch +completion")
        self.assertEqual(launch.leftovers(), [])

    def test_a_step_whose_replay_is_wrong_or_does_not_end_is_found(self):
        # Three buckets and a barrier an iteration: after the constructor, two called iterations and
        # the capture, which calls nothing, come replays.
        graph = ["--model=" + small_model(), "-n", "20", "-w", "2", "--bucket-cap-mb=0.05",
                 "--cuda-graph", "--check=full", "--no-gpu-samples", "--benchmark_filter=cap:0.05"]
        launch = run(graph, "ncclAllReduce:corrupt:rank=1:nth=%d" % self.REPLAYED, binary=STEP)
        self.assertEqual(launch.code, 1, launch.err)
        self.assertIn("FAIL: rank 1 received wrong data", launch.out)
        launch = run(graph + ["-T", "2"], "ncclAllReduce:stuck:rank=1:nth=%d" % self.REPLAYED,
                     binary=STEP)
        self.assertEqual(launch.code, 1, launch.err)
        self.assertRegex(launch.out, "graph replay: (call|bucket) 0 of iteration")
        self.assertEqual(launch.leftovers(), [])

    def test_a_rank_that_is_stopped_in_a_replay_is_named_with_it(self):
        # Computing is part of the graph, and takes nearly all of an iteration.
        launch = Launch(STEP, ["--backend=nccl", "--nccl-library=" + FAKE, "--cuda-graph",
                               "--model=" + small_model(), "--compute-ms=50", "--check=0", "-n",
                               "100000", "-w", "1", "-T", "4", "--no-gpu-samples"])
        # By then it replays: what is before the first replay computes for a fifth of a second.
        os.kill(launch.await_workers(computed_seconds=1.5)[1], signal.SIGSTOP)
        launch.finish()
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertRegex(launch.out, r"FAIL: rank 1 \(host .*, pid \d+\) is stopped by SIGSTOP "
                         r"(in .*\(graph replay: call 0\)|in barrier \d+|"
                         r"[a-z ]+ after .*\(graph replay: bucket 0\))")
        self.assertEqual(launch.leftovers(), [])

    def test_what_decides_a_result_is_in_the_plan_and_its_hash(self):
        hashes = set()
        for options, variables, key, value in [
                ([], {}, "cuda_graph", False),
                (["--cuda-graph"], {}, "cuda_graph", True),
                ([], {"LOCKSTEP_NCCL_REGISTER": "1"}, "register", True),
                (["--device-marks=on"], {}, "device_marks", True),
                ([], {"LOCKSTEP_DEVICE_MARKS": "1"}, "device_marks", True),
                (["--device-marks=off"], {"LOCKSTEP_DEVICE_MARKS": "1"}, "device_marks", False)]:
            launch = Launch(BENCH, ["--backend=nccl", "--nccl-library=" + FAKE] + SMALL + options,
                            environment=variables).finish()
            self.assertEqual(launch.code, 0, launch.err)
            with h5py.File(launch.path) as file:
                self.assertEqual(json.loads(text(file["plan/text"][()]))["nccl"][key], value)
                hashes.add(text(file["plan"].attrs["hash"]))
        self.assertEqual(len(hashes), 4)  # marks are on or off, however that is said

    def test_a_device_marks_where_microseconds_do_not_count(self):
        for binary, options in ((BENCH, SMALL), (STEP, ["--model=" + small_model(), "-n", "1"])):
            launch = run(options, binary=binary)
            self.assertEqual(launch.code, 0, launch.err)
            with h5py.File(launch.path) as file:
                plan = json.loads(text(file["plan/text"][()]))
            self.assertEqual(plan["nccl"]["device_marks"], binary == STEP)

    def test_one_rank_is_enough_to_copy(self):
        words = ["--backend=nccl", "--nccl-library=" + FAKE, "-b", "8", "-e", "1M", "-f", "64",
                 "-n", "10", "--check=full", "--format=jsonl"]
        launch = Launch(BENCH, words, ranks=1).finish()
        self.assertEqual(launch.code, 0, launch.out + launch.err)
        self.assertIn('"median_ns":', launch.out)
        self.assertEqual(launch.leftovers(), [])

    def test_graphs_are_refused_where_there_are_none(self):
        launch = Launch(BENCH, ["--backend=gloo", "--cuda-graph"]).finish()
        self.assertEqual(launch.code, 2, launch.err)
        self.assertIn("--cuda-graph: the backend gloo", line_of(launch))
        self.assertIn("--backend=nccl", line_of(launch))
        launch = Launch(STEP, ["--backend=gloo", "--model=resnet50", "--cuda-graph"]).finish()
        self.assertEqual(launch.code, 2, launch.err)
        self.assertIn("bench_ddp_step: --cuda-graph: the backend gloo", launch.err)
        for option in ("--find-unused", "--first-iteration", "--comm-hook=powersgd"):
            launch = run(["--model=resnet50", "--cuda-graph", option], binary=STEP)
            self.assertEqual(launch.code, 2, launch.err)
            self.assertIn("bench_ddp_step: --cuda-graph with %s: " % option, launch.err)

    def test_a_communicator_that_cannot_be_made(self):
        launch = run(SMALL, "ncclCommInitRankConfig:error=1")
        self.assertEqual(launch.code, 1, launch.out + launch.err)
        self.assertIn("ncclCommInitRankConfig: unhandled cuda error (1)", launch.out)


if __name__ == "__main__":
    unittest.main()
