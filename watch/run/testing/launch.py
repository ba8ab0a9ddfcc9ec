"""Starts ranks of a script on this host, as torchrun does: launch.py RANKS SCRIPT ARGUMENT..."""
import os
import signal
import socket
import subprocess
import sys


def main():
    size = int(sys.argv[1])
    # Ours until the ranks have ended, so that no other program gets it. It does not listen, so rank
    # 0, which allows that as well, may bind and listen.
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port = held.getsockname()[1]
    ranks = []

    def end(*_):
        for each in ranks:
            each.kill()

    signal.signal(signal.SIGTERM, end)
    for rank in range(size):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                           GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        ranks.append(subprocess.Popen([sys.executable, *sys.argv[2:]], env=environment))
    sys.exit(max(abs(each.wait()) for each in ranks))


if __name__ == "__main__":
    main()
