#!/usr/bin/env python3
"""Makes links between hosts of scripts/test_hosts bad, and runs a command there with mpirun.

  scripts/test_hosts 4 --shell -- bench/testing/bad_wire.py --link=node2:node3 --delay-ms=10 \
      --loss=0.01 -- bench_links

Packets between the two hosts of a link go through a pair of TUN devices, one on each host, and this
program between them, which delays and loses them; all others stay as they are. It ends with the
command, and the devices with it.
"""
import argparse
import ctypes
import fcntl
import heapq
import itertools
import os
import random
import selectors
import signal
import struct
import subprocess
import sys
import time

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_MOST_QUEUED = 4096  # packets of a wire; more are lost, as in a router


def enter_network(path):
    with open(path, encoding="utf-8") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns " + path)


def open_tun(pid, name):
    """A TUN device in the network of a process."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    enter_network("/proc/%d/ns/net" % pid)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    enter_network("/proc/self/fd/%d" % here)
    os.close(here)
    return device


def route(pid, name, local, remote):
    for words in (["link", "set", name, "up", "txqueuelen", "4096"],
                  ["route", "add", remote + "/32", "dev", name, "src", local]):
        subprocess.run(["nsenter", "--net", "--target", str(pid), "--", "ip", *words], check=True)


def carry(ends, delay_s, loss, seed):
    """Carries packets between the two devices for ever."""
    dice = random.Random(seed)
    waiting, numbers = [], itertools.count()
    selector = selectors.DefaultSelector()
    for one, other in (ends, ends[::-1]):
        selector.register(one, selectors.EVENT_READ, other)
    while True:
        left = waiting[0][0] - time.monotonic() if waiting else None
        for key, _ in selector.select(None if left is None else max(0, left)):
            for _ in range(64):
                try:
                    packet = os.read(key.fd, 65536)
                except BlockingIOError:
                    break
                if dice.random() >= loss and len(waiting) < _MOST_QUEUED:
                    heapq.heappush(waiting, (time.monotonic() + delay_s, next(numbers), key.data,
                                             packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(waiting)
            try:
                os.write(device, packet)
            except OSError:  # its queue is full: lost
                continue


def start_wire(number, link, hosts, pids, options):
    one, other = (int(name.removeprefix("node")) - 1 for name in link.split(":"))
    name = "wire%d" % number
    ends = [open_tun(pids[place], name) for place in (one, other)]
    route(pids[one], name, hosts[one], hosts[other])
    route(pids[other], name, hosts[other], hosts[one])
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        carry(ends, options.delay_ms / 1e3, options.loss, options.seed)
    for end in ends:
        os.close(end)
    return child


def mpirun(hosts, slots):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", *root, "--oversubscribe", "--bind-to", "none", "--mca",
            "mpi_yield_when_idle", "1", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
            os.environ["TEST_HOSTS_AGENT"], "--mca", "btl", "self,vader,tcp",
            "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
            "--host", os.environ["TEST_HOSTS"], "-np", str(slots * len(hosts))]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link", action="append", default=[], help="node2:node3, one or several")
    parser.add_argument("--delay-ms", type=float, default=0, help="of each direction")
    parser.add_argument("--loss", type=float, default=0, help="0 to 1, of each direction")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    places = [place.split(":") for place in os.environ["TEST_HOSTS"].split(",")]
    hosts, slots = [address for address, _ in places], int(places[0][1])
    folder = os.path.dirname(os.environ["TEST_HOSTS_AGENT"])
    pids = []
    for address in hosts:
        with open(os.path.join(folder, address), encoding="utf-8") as file:
            pids.append(int(file.read()))
    wires = [start_wire(number, link, hosts, pids, options)
             for number, link in enumerate(options.link)]
    done = subprocess.run(mpirun(hosts, slots) + options.command, check=False)
    for wire in wires:
        os.kill(wire, signal.SIGKILL)
        os.waitpid(wire, 0)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
