#!/usr/bin/env python3
"""The six cases of uneven inputs under PyTorch's own DistributedDataParallel, on two ranks.

    six_cases.py [--backend=nccl|gloo] [--cases=1,2,3] [--timeout=20] [--predictions=gloo]

Rank r has 5 + r inputs of Linear(1, 1). Cases 1, 4 and 6 are under join(), 3 and 4 call a barrier
in the loop, 5 and 6 one behind it. A case is over when both ranks are, or when neither got any
further for so many seconds of silence. What a rank did is compared with what is predicted of the
backend: of gloo from runs of PyTorch 1.13 and 2.6, of nccl from an emulation whose barrier is an
all-reduce of one float, as NCCL's is, and from runs of 2.11 over sockets. With nccl,
ranks share GPU 0 where there is only one. Needs no other file.
Exit codes: 0 all as predicted, 1 something differs (for nccl that is news), 4 no such PyTorch.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

OK = (["finished"], ["finished"])
# PyTorch may have to be read from a slow disk first.
STARTS_S = 180
BEFORE = ("the start", "the meeting", "the constructor")
# By case, then rank: what may happen. "hung": still there after the silence.
PREDICTED = {
    "gloo": {1: OK, 2: (["finished"], ["failed"]), 3: (["finished"], ["failed"]),
             4: (["hung"], ["hung"]), 5: (["hung"], ["hung"]), 6: OK},
    "nccl": {1: OK, 2: (["finished"], ["hung"]), 3: (["finished"], ["hung", "failed"]),
             4: (["finished", "failed"], ["hung"]), 5: (["finished"], ["hung"]), 6: OK},
}
NAMES = {1: "join", 2: "no join", 3: "no join, barrier in the loop", 4: "join, barrier in the loop",
         5: "no join, barrier behind it", 6: "join, barrier behind it"}
# Two ranks on one GPU look like two hosts, which talk over sockets.
SHARED_GPU = {"NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo",
              "NCCL_RAS_ENABLE": "0", "NCCL_MAX_CTAS": "2", "NCCL_NVLS_ENABLE": "0",
              "NCCL_MNNVL_ENABLE": "0", "NCCL_CUMEM_ENABLE": "0"}


def say(point, **more):
    print(json.dumps({"at": point, **more}), flush=True)


def train(case, rank, device, ddp):
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.join import Join
    with Join([ddp]) if case in (1, 4, 6) else contextlib.nullcontext():
        for number in range(1, 5 + rank + 1):
            say("backward %d" % number)
            ddp(torch.ones(1, 1, device=device)).sum().backward()
            if case in (3, 4):
                say("barrier %d" % number)
                dist.barrier()
        say("the end of join" if case in (1, 4, 6) else "the end of the loop")
    if case in (5, 6):
        say("the last barrier")
        dist.barrier()
    say("the last synchronization")
    return ddp.module.weight.grad.item()  # waits for the device


def work(case, rank, backend, store):
    """One rank. What it came to is said at once, so that it stays when the process is killed."""
    import datetime
    import torch
    import torch.distributed as dist
    device = "cpu"
    if backend == "nccl":
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    say("the meeting")
    # Longer than anybody waits here: what would time out is seen as what it is.
    dist.init_process_group(backend, init_method="file://" + store, rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=3600))
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1).to(device)
    ids = [device.index] if backend == "nccl" else None
    say("the constructor")
    ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=ids)
    try:
        say("the end", gradient=train(case, rank, device, ddp))
    except Exception as error:  # whatever PyTorch raises is what is asked for
        say("an error", error=" ".join(str(error).split())[:160])
        os._exit(1)
    os._exit(0)  # destroying the group might wait for the other rank


class Rank:
    def __init__(self, case, rank, backend, folder):
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        if backend == "gloo":
            environment["GLOO_SOCKET_IFNAME"] = "lo"
        else:
            import torch
            if torch.cuda.device_count() < 2:
                environment.update(SHARED_GPU, NCCL_HOSTID="rank%d" % rank)
        self._path = os.path.join(folder, "rank%d" % rank)
        store = os.path.join(folder, "store")
        with open(self._path, "w") as said:
            self._process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), "--backend=" + backend,
                 "--work=%d,%d,%s" % (case, rank, store)],
                env=environment, stdout=said, stderr=subprocess.DEVNULL)

    def lines(self):
        with open(self._path) as said:
            whole = [line for line in said if line.endswith("\n")]
        return [json.loads(line) for line in whole] or [{"at": "the start"}]

    def runs(self):
        return self._process.poll() is None

    def stop(self):
        """Whether it still ran. It says nothing more then: to see its peer killed is an error."""
        runs = self.runs()
        if runs:
            self._process.send_signal(signal.SIGSTOP)
        return runs

    def end(self, hung):
        """("finished" | "failed" | "hung" | "late", in words)."""
        if hung:
            self._process.send_signal(signal.SIGKILL)
        code = self._process.wait()
        lines = self.lines()
        last = lines[-1]
        if "gradient" in last:
            return "finished", "gradient %g" % last["gradient"]
        if hung:
            return "late" if last["at"] in BEFORE else "hung", "in " + last["at"]
        before = lines[-2]["at"] if "error" in last and len(lines) > 1 else last["at"]
        return "failed", "in %s: %s" % (before, last.get("error", "exit code %d" % code))


def wait(ranks, silence_s):
    heard, heard_at = 0, time.monotonic()
    while any(rank.runs() for rank in ranks):
        said = [rank.lines() for rank in ranks]
        count = sum(len(lines) for lines in said)
        if count != heard:
            heard, heard_at = count, time.monotonic()
        starting = any(lines[-1]["at"] in BEFORE for lines in said)
        if time.monotonic() - heard_at > (STARTS_S if starting else silence_s):
            return
        time.sleep(0.05)


def run(case, arguments):
    """Runs a case, and tells whether what its ranks did was predicted."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [Rank(case, rank, arguments.backend, folder) for rank in range(2)]
        wait(ranks, arguments.timeout)
        hung = [rank.stop() for rank in ranks]
        outcomes = [rank.end(still) for rank, still in zip(ranks, hung)]
    right = True
    for rank, (outcome, words) in enumerate(outcomes):
        predicted = PREDICTED[arguments.predictions or arguments.backend][case][rank]
        right = right and outcome in predicted
        print("case %d (%s) rank %d: %s %s; %s" % (
            case, NAMES[case], rank, outcome, words, "as predicted" if outcome in predicted else
            "DIFFERS: predicted is " + " or ".join(predicted)), flush=True)
    return right


def missing(backend):
    try:
        import torch
    except ImportError as error:
        return "no PyTorch: %s" % error
    if backend == "nccl" and not torch.cuda.is_available():
        return "PyTorch %s sees no CUDA device" % torch.__version__
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", choices=sorted(PREDICTED), default="nccl")
    parser.add_argument("--cases", default="1,2,3,4,5,6")
    parser.add_argument("--timeout", type=float, default=20)
    parser.add_argument("--predictions", choices=sorted(PREDICTED), help="of another backend")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        case, rank, store = arguments.work.split(",", 2)
        work(int(case), int(rank), arguments.backend, store)
    why = missing(arguments.backend)
    if why:
        sys.exit(print("six_cases: %s; run it with a python3 that has it" % why,
                       file=sys.stderr) or 4)
    import torch
    print("PyTorch %s, %s" % (torch.__version__, arguments.backend), flush=True)
    cases = [int(case) for case in arguments.cases.split(",")]
    rights = [run(case, arguments) for case in cases]
    print("%d of %d cases as predicted" % (sum(rights), len(rights)))
    sys.exit(0 if all(rights) else 1)


if __name__ == "__main__":
    main()
