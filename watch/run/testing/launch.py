"""Starts ranks of a script on this host, as torchrun does, but ends none when another has failed:
launch.py RANKS SCRIPT ARGUMENT..."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../../scripts/trials"))
import torch_ranks  # pylint: disable=wrong-import-position


def main():
    with torch_ranks.hold_port() as held:
        ranks = torch_ranks.start(int(sys.argv[1]), sys.argv[2:], held.getsockname()[1])
        signal.signal(signal.SIGTERM, lambda *_: [rank.kill() for rank in ranks])
        sys.exit(max(abs(rank.wait()) for rank in ranks))


if __name__ == "__main__":
    main()
