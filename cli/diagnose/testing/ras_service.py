"""A service that speaks as NCCL's RAS does, and its answers."""
import json
import re
import socket
import threading


def answer(counts, missing=(), version="2.29.2"):
    """Of ranks that launched so many all-reduces, and of those that do not answer, with all members
    in NCCL's order. Before 2.29 a comma is missing behind a missing rank."""
    ranks = [{"rank": rank, "host": "10.0.0.1", "pid": 100 + rank, "cuda_dev": rank,
              "nvml_dev": rank,
              "status": {"init_state": 0, "async_error": 0, "finalize_called": False,
                         "destroy_flag": False, "abort_flag": False},
              "collective_counts": {"Broadcast": 0, "Reduce": 0, "AllGather": 0,
                                    "ReduceScatter": 0, "AllReduce": count}}
             for rank, count in enumerate(counts)]
    gone = [{"rank": rank, "host": "10.0.0.2", "pid": 100 + rank, "cuda_dev": 0, "nvml_dev": 0,
             "status": {"unresponsive": True, "considered_dead": False}} for rank in missing]
    text = json.dumps({
        "nccl_version": version, "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
        "timestamp": "2025-12-19 13:06:53", "communicators_count": 1,
        "communicators": [{"hash": "0xab", "secondary_hash": "0xb7e:0xb82",
                           "size": len(ranks) + len(gone), "ranks_count": len(ranks),
                           "missing_ranks_count": len(gone), "ranks": ranks,
                           "missing_ranks": gone}],
        "ras": {"collection_time_sec": 0.003, "timeouts_count": 0}}, indent=2) + "\n"
    if version.startswith("2.28."):
        text = re.sub(r'("nvml_dev": \d+),(\s+"status": \{\s+"unresponsive")', r"\1\2", text)
    return text


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
