"""Starts ranks of a PyTorch script on this host, as torchrun does, and ends the others when one has
failed: torch_ranks.py RANKS SCRIPT ARGUMENT... Debian's own torchrun fails on its own Python."""
import os
import signal
import socket
import subprocess
import sys
import time


def hold_port():
    """A socket whose port no other program gets while it is open. It does not listen, so rank 0,
    which allows that as well, may bind and listen."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def start(size, words, port):
    return [subprocess.Popen([sys.executable, *words], env=dict(
        os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), OMP_NUM_THREADS="1",
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo"))
        for rank in range(size)]


def main():
    held = hold_port()
    ranks = start(int(sys.argv[1]), sys.argv[2:], held.getsockname()[1])
    signal.signal(signal.SIGTERM, lambda *_: [rank.kill() for rank in ranks])
    while all(rank.poll() is None or rank.returncode == 0 for rank in ranks):
        if all(rank.poll() == 0 for rank in ranks):
            return 0
        time.sleep(0.02)
    time.sleep(1)  # the others may be about to end, too
    for rank in ranks:
        rank.kill()
        rank.wait()
    return max(abs(rank.returncode) for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
