#!/usr/bin/python3
"""`lockstep diagnose --ras` against a service that speaks as NCCL's does, and on kept answers."""
import json
import os
import socket
import subprocess
import tempfile
import threading
import unittest

LOCKSTEP = "cli/lockstep"


def answer(counts):
    """Of ranks that launched so many all-reduces, as NCCL 2.29 writes it."""
    ranks = [{"rank": rank, "host": "10.0.0.1", "pid": 100 + rank,
              "status": {"init_state": 0, "async_error": 0},
              "collective_counts": {"AllReduce": count}} for rank, count in enumerate(counts)]
    return json.dumps({"nccl_version": "2.29.2", "communicators": [
        {"hash": "0xab", "ranks": ranks, "missing_ranks": []}]})


TEXT = """NCCL version 2.26.5 compiled with CUDA 12.8

Communicators... (0.00s)
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  Rank 0 has launched up to operation 7 -- GPU 0 managed by process 11 on node 10.0.0.1
  Rank 1 has launched up to operation 6 -- GPU 1 managed by process 12 on node 10.0.0.2
"""


class Service:
    """Says one of `answers` to each client; `knows_json`: else it is from before NCCL 2.28.7."""

    def __init__(self, answers, knows_json=True):
        self.answers, self.knows_json, self.heard = list(answers), knows_json, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while self.answers:
            client, _ = self.socket.accept()
            with client, client.makefile("rw") as stream:
                for line in stream:
                    self.heard.append(line.strip())
                    if line.startswith("CLIENT PROTOCOL"):
                        stream.write("SERVER PROTOCOL 2\n")
                    elif line.startswith("SET FORMAT") and self.knows_json:
                        stream.write("OK\n")
                    elif line.startswith("VERBOSE STATUS"):
                        stream.write(self.answers.pop(0))
                        stream.flush()
                        break
                    else:
                        stream.write("ERROR: Unknown command " + line)
                    stream.flush()
        self.socket.close()


def diagnose(*words):
    done = subprocess.run([LOCKSTEP, "diagnose", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class RasTest(unittest.TestCase):
    def kept(self, text):
        handle, path = tempfile.mkstemp(dir=os.environ.get("TEST_TMPDIR"))
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_a_rank_that_is_behind_in_both_looks(self):
        service = Service([answer([412, 411, 412])] * 2)
        code, out, err = diagnose("--ras", service.address, "--ras-seconds=0.1")
        self.assertEqual((code, err), (3, ""), out)
        lines = out.splitlines()
        self.assertEqual(lines[0],
                         "INCONCLUSIVE: rank 1 (pid 101 on 10.0.0.1) launched 411 AllReduce, "
                         "2 ranks 412; no launch between the looks")
        self.assertIn("NCCL 2.29.2, 1 communicator: a suspicion at most", lines[1])
        self.assertIn("rank_busy (suspected, ranks 1)", out)
        self.assertEqual(lines[-1], "exit code 3")
        self.assertEqual(service.heard, ["CLIENT PROTOCOL 2", "SET FORMAT json",
                                         "VERBOSE STATUS"] * 2)

    def test_a_job_that_goes_on(self):
        service = Service([answer([5, 6]), answer([7, 6])])
        code, out, _ = diagnose("--ras", service.address, "--ras-seconds=0.1", "--format=json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out)["verdict"], "pass")

    def test_text_of_an_older_nccl(self):
        service = Service([TEXT] * 2, knows_json=False)
        code, out, _ = diagnose("--ras", service.address, "--ras-seconds=0.1")
        self.assertEqual(code, 3)
        self.assertIn("rank 1 (pid 12 on 10.0.0.2) launched 6 AllReduce, rank 0 7", out)

    def test_kept_answers(self):
        first, second = self.kept(answer([5, 5])), self.kept(answer([5, 5]))
        code, out, _ = diagnose("--ras", first, "--ras", second)
        self.assertEqual(code, 3)
        self.assertIn("INCONCLUSIVE: all ranks launched the same and nothing since", out)

    def test_what_is_wrong_is_one_line(self):
        silent = socket.create_server(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        silent.close()
        one = self.kept(answer([1]))
        for words, expected, said in (
                (["--ras", "127.0.0.1:%d" % port], 4, "what is NCCL_RAS_ADDR?"),
                (["--ras", one], 2, "one look shows no progress"),
                (["--ras", one, "--ras", self.kept("hello")], 2, "no status of NCCL's RAS"),
                (["--ras", one, "--ras", one, "--ras", one], 2, "is given 3 times"),
                (["--ras", "localhost", "run.h5"], 2, "--ras goes without")):
            code, out, err = diagnose(*words)
            self.assertEqual((code, out), (expected, ""), words)
            self.assertIn(said, err)
            self.assertEqual(err.count("\n"), 1, err)


if __name__ == "__main__":
    unittest.main()
