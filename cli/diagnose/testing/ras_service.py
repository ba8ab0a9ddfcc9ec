"""A service that speaks as NCCL's RAS does, and its answers."""
import json
import socket
import threading


def answer(counts):
    """Of ranks that launched so many all-reduces, as NCCL 2.29 writes it."""
    ranks = [{"rank": rank, "host": "10.0.0.1", "pid": 100 + rank,
              "status": {"init_state": 0, "async_error": 0},
              "collective_counts": {"AllReduce": count}} for rank, count in enumerate(counts)]
    return json.dumps({"nccl_version": "2.29.2", "communicators": [
        {"hash": "0xab", "ranks": ranks, "missing_ranks": []}]})


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
