"""A Slurm cluster on one machine: runs a command on its first node.

  scripts/test_slurm 2 -- srun -N2 -n2 --mpi=pmix bench_allreduce -b 8 -e 1M
  scripts/test_slurm 2 --ranks-per-host=2 -- salloc -N2 -n4 mpirun bench_allreduce --backend=gloo
  scripts/test_slurm 2 -- sbatch --wait scripts/examples/nightly.sbatch

Nodes are the hosts of scripts/test_hosts (namespaces with addresses and names of their own), each
with a slurmd; the first has slurmctld and munged as well. Configuration, state, logs, sockets and
munge's key are in a private directory, ports in the hosts' own networks: nothing of a Slurm that
this machine belongs to is used or changed, and everything ends with COMMAND. COMMAND finds the
cluster by SLURM_CONF; the logs are beside that file while it runs. Processors are pretended:
every node has --ranks-per-host of them.

What is needed: scripts/install_packages slurmctld slurmd slurm-client munge. Without, and where
test_hosts is not possible, exit code 77 with the reason.

Exit codes: COMMAND's; 2 usage; 4 environment; 77 not possible here.
"""
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time

import launches
from launches import SKIPPED, command

PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge",
            "sinfo": "slurm-client", "srun": "slurm-client"}
INSIDE = "LOCKSTEP_TEST_SLURM_INSIDE"
START_SECONDS = 30
# KillWait: seconds between SIGTERM and SIGKILL of a job that is cancelled or out of time. TmpFS: of
# one /tmp the nodes' PMIx servers would make the same directory.
CONFIGURATION = """ClusterName=lockstep
SlurmctldHost={first}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
LaunchParameters=use_interactive_step
ReturnToService=2
KillWait=5
MailProg=/bin/true
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
{nodes}
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


fail = functools.partial(launches.fail, "test_slurm")


def last_line(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return (file.read().strip().splitlines() or ["it said nothing"])[-1]
    except OSError:
        return "it wrote no log"


class Cluster:
    """Of the hosts that test_hosts made; daemons end with its process namespace."""

    def __init__(self, addresses, agent, ranks, folder):
        self.folder, self.agent = folder, agent
        self.nodes = {f"node{i + 1}": address for i, address in enumerate(addresses)}
        lines = [f"NodeName={name} NodeAddr={address} CPUs={ranks} State=UNKNOWN"
                 for name, address in self.nodes.items()]
        self.write("slurm.conf", CONFIGURATION.format(
            first="node1", address=addresses[0], folder=folder, nodes="\n".join(lines)))
        self.write("hosts", "127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in self.nodes.items()))
        self.write("munge.key", os.urandom(1024))
        os.environ["SLURM_CONF"] = os.path.join(folder, "slurm.conf")
        for name in ["state"] + [f"tmp-{node}" for node in self.nodes]:
            os.mkdir(os.path.join(folder, name))
        os.chmod(folder, 0o755)  # munge's clients must reach its socket

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            os.chmod(path, 0o600 if name == "munge.key" else 0o644)
            file.write(content if isinstance(content, bytes) else content.encode())

    def start(self, name, words, node="node1"):
        log = os.path.join(self.folder, name + ".out")
        with open(log, "wb") as file:
            return subprocess.Popen([self.agent, self.nodes[node], *words], stdout=file,
                                    stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def up(self):
        """Every daemon, then waits until all nodes take jobs."""
        daemons = {"munged": self.start("munged", [
            "munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key"] + [
                f"--{kind}-file={self.folder}/munge.{kind}" for kind in ("log", "pid", "seed")] + [
                    f"--socket={self.folder}/munge.socket"])}
        self.await_true(lambda: os.path.exists(f"{self.folder}/munge.socket"), daemons)
        daemons["slurmctld"] = self.start("slurmctld", ["slurmctld", "-D"])
        for node in self.nodes:
            daemons[f"slurmd-{node}"] = self.start(
                f"slurmd-{node}", [f"mount --bind {self.folder}/hosts /etc/hosts && slurmd -D"],
                node)
        self.await_true(self.all_idle, daemons)

    def await_true(self, condition, daemons):
        deadline = time.monotonic() + START_SECONDS
        while not condition():
            for name, daemon in daemons.items():
                if daemon.poll() is not None:
                    fail(4, f"{name} ended with {daemon.returncode}: " +
                         last_line(os.path.join(self.folder, name + ".out")))
            if time.monotonic() > deadline:
                fail(4, f"the nodes take no jobs after {START_SECONDS} s: " +
                     last_line(os.path.join(self.folder, "slurmctld.log")))
            time.sleep(0.1)

    def all_idle(self):
        said = subprocess.run(["sinfo", "--noheader", "--Node", "--format=%T"], text=True,
                              capture_output=True, timeout=30, check=False).stdout.split()
        return said == ["idle"] * len(self.nodes)


def inside(options, directory):
    """On the first host, in the namespaces of test_hosts, which begin in /."""
    addresses = [part.split(":")[0] for part in os.environ["TEST_HOSTS"].split(",")]
    folder = tempfile.mkdtemp(prefix="lockstep-slurm-")
    try:
        Cluster(addresses, os.environ["TEST_HOSTS_AGENT"], options.ranks_per_host, folder).up()
        return launches.run_as(options.command, cwd=directory)
    finally:
        # Daemons live until this process ends, and may write while the folder goes.
        for _ in range(20):
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.exists(folder):
                break
            time.sleep(0.05)


def main(arguments):
    parser = launches.parser(__doc__)
    parser.add_argument("nodes", type=int, help="how many, 1 to 16")
    parser.add_argument("--ranks-per-host", type=int, default=1, metavar="COUNT",
                        help="Ranks of a host (tasks that a node takes; default 1)")
    launches.renamed(parser, ranks="--ranks-per-host")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    options = launches.parse_with_command(parser, arguments)
    if not 1 <= options.nodes <= 16 or not 1 <= options.ranks_per_host <= 256:
        fail(2, f"{options.nodes} nodes of {options.ranks_per_host} ranks: give 1 to 16 nodes, "
                "1 to 256 "
             "ranks each")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    directory = os.environ.pop(INSIDE, None)
    if directory:
        return inside(options, directory)
    missing = sorted({package for program, package in PROGRAMS.items()
                      if shutil.which(program) is None})
    if missing:
        fail(SKIPPED, f"Slurm is not installed: scripts/install_packages {' '.join(missing)}")
    with open("/proc/self/setgroups", encoding="ascii") as file:
        if file.read().strip() == "deny":
            fail(SKIPPED, "Slurm's daemons drop their groups, which this user namespace forbids: "
                          "run it as root")
    words = [command("test_hosts"), str(options.nodes), "--shell", "--", sys.executable,
             command("test_slurm"), *arguments]
    # Of the caller's own cluster, nothing may reach this one.
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("SLURM", "SBATCH", "SRUN", "SALLOC"))}
    return os.execvpe(words[0], words, dict(environment, **{INSIDE: os.getcwd()}))
