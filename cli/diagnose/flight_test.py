#!/usr/bin/python3
"""`lockstep diagnose --flight-recorder` and `export --format=flight-recorder` from the outside."""

import os
import pickle
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.getcwd())
# pylint: disable=wrong-import-position
from cli.diagnose.testing import flight_dumps
from cli.diagnose.testing.flight_dumps import dump, entry, steps
from cli.diagnose.testing.flight_folder import FlightTest, run


class RealDumps(FlightTest):

    def test_all_done(self):
        self.copy("gloo_healthy")
        code, findings, answer = self.found()
        self.assertEqual((0, []), (code, findings))
        self.assertIn("no dump tells how many ranks the job has: of ranks above 3 nothing is "
                      "known", answer["notes"])

    def test_json_is_the_same(self):
        self.copy("gloo_healthy_json")
        code, findings, answer = self.found()
        self.assertEqual((0, [], "2.10"), (code, findings, answer["version"]))

    def test_missing_rank(self):
        self.copy("gloo_missing")
        code, findings, answer = self.found()
        self.assertEqual((1, [("rank_busy", [2], "suspected")]), (code, findings))
        self.assertIn("train.py:19 in step", answer["findings"][0]["message"])
        self.assertEqual({"hung"}, {rank["outcome"] for rank in answer["outcomes"]})
        self.assertIn("\n0 of 4 ranks finished\n",
                      run("diagnose", "--flight-recorder", self.directory)[1])

    def test_dumps_without_a_call_say_nothing(self):
        code, findings, answer = self.judge({rank: dump([]) for rank in range(4)})
        self.assertEqual((3, [], "unknown"), (code, findings, answer["verdict"]))
        self.assertIn("no dump holds a call", answer["notes"][0])

    def test_missing_rank_is_no_matter_before_the_deadline(self):
        self.copy("gloo_missing", seconds_later=4)
        self.assertEqual((3, []), self.found()[:2])
        self.assertEqual(1, self.found("--timeout=3")[0])

    def test_other_collective(self):
        self.copy("gloo_kind", seconds_later=0)
        self.assertEqual((1, [("collective_mismatch", [1], "proved")]), self.found()[:2])

    def test_uneven_inputs(self):
        self.copy("gloo_ddp")
        self.assertEqual((1, [("rank_busy", [0], "suspected")]), self.found()[:2])

    def test_of_pytorch_2_15(self):
        # PyTorch's own analyzer ends with a KeyError on them (results/reference).
        for name, rank in (("gloo_missing_2_15", 2), ("gloo_ddp_2_15", 0)):
            self.copy(name)
            code, findings, answer = self.found()
            self.assertEqual((1, [("rank_busy", [rank], "suspected")], "2.10"),
                             (code, findings, answer["version"]))
            self.assertIn("at run.py:", answer["findings"][0]["message"])
            shutil.rmtree(self.directory)

    def test_nccl_on_a_gpu(self):
        # The group's time-out is 20 s.
        self.copy("nccl_sleeps_2_11", seconds_later=20.5)
        code, findings, answer = self.found()
        self.assertEqual((1, [("rank_busy", [1], "suspected")]), (code, findings))
        self.assertIn("rank 0 waits for rank 1 in all_reduce Float[97] (call 24 of default_pg)",
                      answer["findings"][0]["message"])
        code, out, _ = run("diagnose", "--flight-recorder", self.directory, "--timeout=60")
        self.assertEqual(3, code)
        self.assertIn("no hang before --timeout=60\n", out)
        shutil.rmtree(self.directory)
        self.copy("nccl_sleeps_2_11", seconds_later=18.5)
        code, out, _ = run("diagnose", "--flight-recorder", self.directory)
        self.assertEqual(3, code)
        self.assertIn("no hang before 30 s or their own time-out\n", out)

    def test_what_gloo_gave_up_is_not_done(self):
        self.copy("gloo_timeout", seconds_later=5.5)  # its own time-out is 3 s
        self.assertEqual((1, [("rank_busy", [2], "suspected")]), self.found()[:2])

    def test_broadcasts_that_gloo_gave_up_are_not_done(self):
        # As PyTorch leaves them at their time-out of 30 minutes.
        for name in ("gloo_ddp", "gloo_ddp_2_15"):
            for seconds, expected in ((1801, (1, [("rank_busy", [0], "suspected")])),
                                      (60, (3, []))):
                self.copy(name, seconds_later=seconds, retired=True)
                code, findings, answer = self.found()
                self.assertEqual(expected, (code, findings), (name, seconds))
                told = "rank 0 has not called" in str(answer["notes"])
                self.assertEqual(code == 3, told, answer["notes"])
                shutil.rmtree(self.directory)

    def test_groups_that_nobody_tells(self):
        self.copy("gloo_inversion")
        code, findings, answer = self.found()
        self.assertEqual((3, [("unknown", [0, 1], "suspected")]), (code, findings))
        self.assertIn("do not say who else", answer["findings"][0]["message"])

    def test_a_dump_is_missing(self):
        self.copy("gloo_missing")
        os.remove(os.path.join(self.directory, "trace_rank_2"))
        code, findings, answer = self.found()
        self.assertEqual((1, [("rank_lost", [2], "suspected")]), (code, findings))
        self.assertEqual([2], answer["missing"])


class ImitatedDumps(FlightTest):

    def waiting(self, **more):
        return dump(steps(3) + [entry(3, "all_reduce", 4, "started", retired=True, **more)])

    def test_calls_that_no_device_has_started(self):
        waits = dump(steps(3) + [entry(3, "all_reduce", 4, "scheduled")])
        code, findings, answer = self.judge({0: waits, 1: waits, 2: waits, 3: dump(steps(3))})
        self.assertEqual((3, []), (code, findings))
        self.assertIn("the device of ranks 0-2 has not started", answer["notes"][0])

    def test_every_format_and_protocol(self):
        for minor in range(1, 11):
            for form, protocol in (("pickle", 2), ("pickle", 3), ("pickle", 4), ("pickle", 5),
                                   ("json", 0)):
                entries = steps(3) + [entry(3, "all_reduce", 4, "started", retired=True)]
                version = "2.%d" % minor
                dumps = {rank: dump(entries, version=version) for rank in range(3)}
                dumps[3] = dump(entries[:3], version=version)
                if minor < 4:  # no timeout: known from the times of the files
                    dumps[3]["entries"][2]["time_created_ns"] -= 10 ** 9
                code, findings, answer = self.judge(dumps, form=form, protocol=protocol)
                self.assertEqual((1, [("rank_busy", [3], "suspected")], version),
                                 (code, findings, answer["version"]), (form, protocol))
                shutil.rmtree(self.directory)

    def test_sizes_and_types(self):
        for more, cause in (({"sizes": ((128,),)}, "count_mismatch"),
                            ({"input_dtypes": ["Half"], "output_dtypes": ["Half"]},
                             "type_mismatch")):
            other = self.waiting(line=31, function="evaluate", **more)
            code, findings, answer = self.judge(
                {0: other, 1: self.waiting(), 2: self.waiting(), 3: self.waiting()})
            # PyTorch's analyzer takes the first rank for right, and blames the other three.
            self.assertEqual((1, [(cause, [0], "proved")]), (code, findings))
            self.assertIn("train.py:31 in evaluate", answer["findings"][0]["message"])
            shutil.rmtree(self.directory)

    def test_shapes_of_as_many_elements_are_the_same(self):
        flat = dump([entry(0, "all_reduce", 1, sizes=((6,),))])
        square = dump([entry(0, "all_reduce", 1, sizes=((2, 3),))])
        self.assertEqual((0, []), self.judge({0: flat, 1: flat, 2: flat, 3: square})[:2])

    def test_coalesced_calls_are_one(self):
        def coalesced(state, last=64):
            return dump(steps(2) + [
                entry(2, "all_reduce", 3, "scheduled", retired=False),
                entry(3, "all_reduce", 3, "scheduled", sizes=((last,),), retired=False),
                entry(4, "coalesced", 3, state, sizes=(), retired=True)])
        self.assertEqual((0, []), self.judge({rank: coalesced("completed")
                                              for rank in range(4)})[:2])
        dumps = {rank: coalesced("started") for rank in range(4)}
        dumps[2] = coalesced("started", last=65)
        self.assertEqual((1, [("collective_mismatch", [2], "proved")]), self.judge(dumps)[:2])

    def test_messages(self):
        send = entry(3, "send 0->1", 1, "started", retired=True, p2p=True)
        dumps = {0: dump(steps(3) + [send])}
        dumps.update({rank: dump(steps(3)) for rank in (1, 2, 3)})
        code, findings, answer = self.judge(dumps)
        self.assertEqual((1, [("rank_busy", [1], "suspected")]), (code, findings))
        self.assertIn("send Float[256]", answer["findings"][0]["message"])

    def test_groups(self):
        groups = (("0", "default_pg", range(4)), ("1", "tensor", (0, 1)), ("2", "data", (0, 1)))
        def calls(first, second):
            waits = [entry(3, "all_reduce", 1, "started", process_group=first, retired=True),
                     entry(4, "all_reduce", 1, "scheduled", process_group=second)]
            return dump(steps(3) + waits, groups)
        tensor, data = ("1", "tensor"), ("2", "data")
        dumps = {0: calls(tensor, data), 1: calls(data, tensor), 2: dump(steps(3), groups[:1]),
                 3: dump(steps(3), groups[:1])}
        code, findings, answer = self.judge(dumps)
        self.assertEqual((1, [("order_inversion", [0, 1], "suspected")]), (code, findings))
        self.assertIn("of tensor", answer["findings"][0]["message"])

    def test_rings_that_wrapped(self):
        entries = [entry(i, "all_reduce", i + 1) for i in range(1000, 1030)]
        last = entry(1030, "all_reduce", 1031, "started", retired=True)
        dumps = {0: dump(entries[10:] + [last]), 1: dump(entries[5:] + [last]),
                 2: dump(entries[:30]), 3: dump(entries + [last])}
        self.assertEqual((1, [("rank_busy", [2], "suspected")]), self.judge(dumps)[:2])


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Refused(FlightTest):

    def refused(self, *arguments):
        code, out, err = run("diagnose", "--flight-recorder", self.directory, *arguments)
        self.assertEqual((2, "", 1), (code, out, err.count("\n")), err)
        return err

    def test_nothing_of_a_malicious_pickle_runs(self):
        witness = self.directory + "-ran"
        for protocol in (2, 3, 4, 5):
            evil = dump(steps(3))
            evil["entries"][1]["state"] = Touch(witness)
            flight_dumps.write(self.directory, {0: dump(steps(3)), 1: evil}, protocol)
            err = self.refused()
            self.assertIn("nccl_trace_rank_1: opcode " +
                          ("GLOBAL" if protocol < 4 else "STACK_GLOBAL"), err)
            self.assertFalse(os.path.exists(witness))
        with open(os.path.join(self.directory, "nccl_trace_rank_1"), "rb") as file:
            pickle.load(file)  # the pickle does what it is feared for
        self.assertTrue(os.path.exists(witness))

    def test_what_is_no_dump(self):
        for content, words in ((b"GIF89a", "neither a pickle"), (b"", "neither a pickle"),
                               (pickle.dumps([1], 4), "no dictionary"),
                               (pickle.dumps({"entries": []}, 4), "no version"),
                               (pickle.dumps({"version": "1.5"}, 4), "format 1.5"),
                               (pickle.dumps({"version": "2.4", "entries": [{}]}, 4), "entry 0"),
                               (pickle.dumps({"version": "2.4", "entries": 7}, 4), "no list")):
            os.makedirs(self.directory, exist_ok=True)
            with open(os.path.join(self.directory, "trace_0"), "wb") as file:
                file.write(content)
            self.assertIn(words, self.refused())

    def test_dumps_in_folders_below(self):
        """As `lockstep export` and launchers of several jobs leave them."""
        below = os.path.join(self.directory, "lifetime_1")
        os.makedirs(below)
        os.mkdir(os.path.join(self.directory, "a_folder_of_others"))
        flight_dumps.write(below, {0: dump(steps(2))})
        self.assertEqual([1, 2, 3], self.found()[2]["missing"])
        flight_dumps.write(os.path.join(self.directory, "lifetime_2"), {0: dump(steps(2))})
        self.assertIn(f"name one folder, as {below}", self.refused())

    def test_directories(self):
        self.assertIn("No such file", self.refused())
        os.makedirs(self.directory)
        self.assertIn("no file whose name", self.refused())
        flight_dumps.write(self.directory, {0: dump(steps(2))})
        flight_dumps.write(self.directory, {0: dump(steps(2))}, prefix="other_")
        # Three of the four ranks that the dump names are missing.
        self.assertEqual([1, 2, 3], self.found("--prefix=other_")[2]["missing"])
        flight_dumps.write(self.directory, {0: dump(steps(2))}, form="json")
        self.assertIn("both of rank 0", self.refused("--prefix=nccl_trace_rank_"))

    def test_options(self):
        code, _, err = run("diagnose")
        self.assertEqual(2, code)
        self.assertIn("--flight-recorder", err)
        self.assertEqual(2, run("diagnose", "run.h5", "--flight-recorder", self.directory)[0])


class Export(FlightTest):

    def exported(self, name):
        work = os.path.dirname(self.directory)
        subprocess.run(["cli/diagnose/examples", work], check=True)
        return run("export", os.path.join(work, name + ".h5"), "--format=flight-recorder",
                   "--output-folder", self.directory)

    def test_round_trip(self):
        for name, expected in (("healthy", (0, [])),
                               ("join_barrier", (1, [("collective_mismatch", [0, 1], "proved")])),
                               ("uneven_inputs", (1, [("rank_busy", [0], "suspected")]))):
            self.assertEqual((0, "", ""), self.exported(name))
            self.assertEqual(expected, self.found("--timeout=0.001")[:2], name)
            shutil.rmtree(self.directory)

    def test_python_reads_what_is_written(self):
        self.assertEqual((0, "", ""), self.exported("join_barrier"))
        with open(os.path.join(self.directory, "nccl_trace_rank_0"), "rb") as file:
            content = pickle.load(file)
        self.assertEqual({"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
                         content["pg_config"])
        last = content["entries"][-1]
        self.assertEqual(("nccl:all_reduce", "started", [[1]], ["Float"], ("0", "default_pg")),
                         tuple(last[key] for key in ("profiling_name", "state", "input_sizes",
                                                     "input_dtypes", "process_group")))
        wanted = set(entry(0, "all_reduce", 1)) | {"thread_id", "thread_name"}
        self.assertEqual(set(), wanted - set(last))
        self.assertEqual("join: alive of iteration 2", last["frames"][0]["name"])

    def test_dumps_of_two_runs_do_not_mix(self):
        self.assertEqual(0, self.exported("healthy")[0])
        code, _, err = self.exported("healthy")
        self.assertEqual(2, code)
        self.assertIn("is not empty", err)


if __name__ == "__main__":
    unittest.main()
