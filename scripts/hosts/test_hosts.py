"""Several hosts on one machine: runs a command across them with mpirun.

  lockstep testbed 2 -- bench_allreduce -b 8 -e 1M               2 hosts, 1 rank each
  lockstep testbed 2 --ranks-per-host=2 -- lockstep-stress --list         2 hosts, 2 ranks each
  lockstep testbed 4 --shell -- COMMAND                          COMMAND on the first host alone

A host is a network, UTS and mount namespace: it has its own addresses (10.77.0.1, 10.77.0.2 …),
host name (node1, node2 …) and /dev/shm. All hosts hang on one bridge, and reach nothing else. They
share processors and files. Everything lives in one process namespace: when its first process ends,
however that happens, the kernel ends all processes and takes all namespaces down.

COMMAND finds the hosts in TEST_HOSTS ("10.77.0.1:2,10.77.0.2:2") and the agent that starts
processes there in TEST_HOSTS_AGENT (as mpirun's plm_rsh_agent). Works as root, and for others where
the kernel lets them make user namespaces; else exit code 77, with the reason.

--set=2:NAME=VALUE sets a variable of the second host's processes only. With --boot-ids every host
has a boot id of its own, as machines have: then its clock is taken for one of its own, too.

Exit codes: COMMAND's; 2 usage; 4 environment; 77 not possible here.
"""
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import uuid

import launches
from launches import SKIPPED

BOOT_ID = "/proc/sys/kernel/random/boot_id"
INSIDE = "LOCKSTEP_TEST_HOSTS_INSIDE"
UNSHARE = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child",
           "--mount-proc"]
AGENT = """#!/bin/sh
# mpirun's remote shell: the first word is the host, the rest is for its shell.
host=$1; shift
. {folder}/$host.variables
exec nsenter --net --uts --mount --target "$(cat {folder}/$host)" -- sh -c "$*"
"""


fail = functools.partial(launches.fail, "test_hosts")


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        fail(4, f"{' '.join(words)}: {done.stdout.strip() or done.returncode}")


def unshare_command():
    """How this user gets namespaces here, or why there are none."""
    for name in ("unshare", "nsenter", "ip"):
        if shutil.which(name) is None and not os.path.exists(f"/usr/sbin/{name}"):
            fail(SKIPPED, f"'{name}' is missing: install util-linux and iproute2")
    ways = [UNSHARE] if os.geteuid() == 0 else [UNSHARE + ["--user", "--map-root-user"]]
    for way in ways:
        probe = subprocess.run(way + ["sh", "-c", "ip link add name a type veth peer name b"],
                               capture_output=True, text=True)
        if probe.returncode == 0:
            return way
    fail(SKIPPED, "the kernel gives no network namespaces with veth pairs here: "
         + (probe.stderr.strip().splitlines() or ["no reason told"])[-1])


class Hosts:
    def __init__(self, number, folder, variables, boot_ids):
        self.folder = folder
        self.variables = variables  # {number of the host: [(name, value)]}
        self.boot_ids = boot_ids
        self.addresses = [f"10.77.0.{i + 1}" for i in range(number)]
        self.holders = []
        run("mount", "--make-rprivate", "/")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "name", "bridge0", "type", "bridge")
        run("ip", "link", "set", "bridge0", "up")
        for index, address in enumerate(self.addresses):
            self.add(index + 1, address)
        self.agent = os.path.join(folder, "agent")
        with open(self.agent, "w", encoding="utf-8") as file:
            file.write(AGENT.format(folder=folder))
        os.chmod(self.agent, 0o755)

    def add(self, number, address):
        holder = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "sleep", "infinity"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.holders.append(holder)
        deadline = time.monotonic() + 60
        while os.readlink(f"/proc/{holder.pid}/ns/uts") == os.readlink("/proc/self/ns/uts"):
            if holder.poll() is not None:
                fail(4, f"host {number} did not start: unshare ended with {holder.returncode}")
            if time.monotonic() > deadline:
                fail(4, f"host {number} did not start: unshare has made no host after 60 s")
            time.sleep(0.005)
        run("ip", "link", "add", "name", f"to{number}", "type", "veth", "peer", "name", "eth0",
            "netns", str(holder.pid))
        run("ip", "link", "set", f"to{number}", "master", "bridge0", "up")
        for words in (["hostname", f"node{number}"],
                      ["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", "/dev/shm"],
                      ["ip", "link", "set", "lo", "up"],
                      ["ip", "address", "add", f"{address}/24", "dev", "eth0"],
                      # There to be interfered with: stress looks for it (stress/links).
                      ["ip", "link", "set", "eth0", "alias", "lockstep-test-host"],
                      ["ip", "link", "set", "eth0", "up"]):
            run(*self.enter(holder.pid), *words)
        if self.boot_ids:
            own = os.path.join(self.folder, f"boot_id{number}")
            with open(own, "w", encoding="utf-8") as file:
                file.write(f"{uuid.uuid4()}\n")
            run(*self.enter(holder.pid), "mount", "--bind", own, BOOT_ID)
        lines = [f"export {name}={shlex.quote(value)}\n"
                 for name, value in self.variables.get(number, [])]
        for name in (address, f"node{number}"):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(str(holder.pid))
            with open(os.path.join(self.folder, name + ".variables"), "w",
                      encoding="utf-8") as file:
                file.writelines(lines)

    @staticmethod
    def enter(pid):
        return ["nsenter", "--net", "--uts", "--mount", "--target", str(pid), "--"]

    def mpirun(self, ranks):
        # What is set for the programs is set on all hosts.
        ours = [name for name in os.environ if name.startswith("LOCKSTEP_") and name != INSIDE]
        return mpirun_across(self.addresses, ranks, self.agent,
                             *(word for name in ours for word in ("-x", name)))


def slots(addresses, ranks):
    return ",".join(f"{address}:{ranks}" for address in addresses)


def mpirun_across(addresses, ranks, agent, *words):
    """`ranks` ranks a host, which `agent` starts there."""
    return launches.mpirun(
        *launches.SHARING, "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent, "--mca", "btl",
        "self,vader,tcp", "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include",
        "eth0", "--host", slots(addresses, ranks), "-np", str(ranks * len(addresses)), *words)


def inside(options, command):
    folder = tempfile.mkdtemp(prefix="lockstep-hosts-")
    try:
        hosts = Hosts(options.hosts, folder, options.set, options.boot_ids)
        os.environ["LOCKSTEP_TEST_HOSTS"] = "1"  # stress may interfere with their network
        words = command if options.shell else hosts.mpirun(options.ranks_per_host) + command
        environment = dict(os.environ, TEST_HOSTS_AGENT=hosts.agent,
                           TEST_HOSTS=slots(hosts.addresses, options.ranks_per_host))
        # Open MPI names its folders by host and process number: another set of hosts, which may run
        # at the same time, has the same.
        environment["OMPI_MCA_orte_tmpdir_base"] = folder
        environment.pop(INSIDE, None)
        environment.update(options.set.get(1, []))
        return launches.run_as(hosts.enter(hosts.holders[0].pid) + words, env=environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def variables_of(words):
    """{host: [(name, value)]} of ["2:NAME=VALUE"]"""
    variables = {}
    for word in words:
        match = re.fullmatch(r"(\d+):(\w+)=(.*)", word, re.DOTALL)
        if match is None:
            fail(2, f"--set={word}: give HOST:NAME=VALUE, such as --set=2:OMP_NUM_THREADS=1")
        variables.setdefault(int(match[1]), []).append((match[2], match[3]))
    return variables


def main(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("hosts", type=int, help="how many, 1 to 64")
    parser.add_argument("--ranks-per-host", type=int, default=1, metavar="COUNT",
                        help="Ranks of a host (default 1)")
    parser.add_argument("--shell", action="store_true", help="COMMAND once, on the first host")
    parser.add_argument("--set", action="append", default=[], metavar="HOST:NAME=VALUE",
                        help="A variable of one host's processes")
    parser.add_argument("--boot-ids", action="store_true",
                        help="Every host has a boot id of its own, as machines have")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    launches.renamed(parser, ranks="--ranks-per-host")
    options = launches.parse_with_command(parser, arguments)
    if not 1 <= options.hosts <= 64 or not 1 <= options.ranks_per_host <= 256:
        fail(2, f"{options.hosts} hosts of {options.ranks_per_host} ranks: give 1 to 64 hosts, "
                "1 to 256 "
             "ranks each")
    options.set = variables_of(options.set)
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.environ.get(INSIDE):
        return inside(options, options.command)
    words = unshare_command() + [sys.executable, launches.command("test_hosts"), *arguments]
    return os.execvpe(words[0], words, dict(os.environ, **{INSIDE: "1"}))
