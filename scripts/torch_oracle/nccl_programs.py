#!/usr/bin/env python3
"""Small PyTorch programs over NCCL that go well or wrong in one known way, to try watchers on:

    torchrun --nproc-per-node=2 nccl_programs.py healthy|mismatch|sleeps|exits|raises|evaluates

Ranks share GPU 0 where there is only one. PROGRAM_TIMEOUT is that of the process group, in seconds
(3600). Needs no other file.
"""

import datetime
import os
import sys
import time

RANK = int(os.environ["RANK"])


def model_of(device):
    import torch
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8),
                                 torch.nn.Linear(8, 1))
    return torch.nn.parallel.DistributedDataParallel(layers.to(device), device_ids=[device.index])


def at_iteration_5(case, ddp, device):
    import torch
    import torch.distributed as dist
    if case == "mismatch":
        if RANK == 0:
            dist.all_reduce(torch.ones(10, device=device))
        else:
            dist.broadcast(torch.ones(10, device=device), src=0)
    if case == "evaluates":
        if RANK == 0:
            with torch.no_grad():
                ddp(torch.ones(4, 8, device=device))
        dist.barrier()
    if RANK == 1:
        if case == "sleeps":
            print("rank 1 sleeps", flush=True)
            time.sleep(3600)
        if case == "exits":
            sys.exit(0)
        if case == "raises":
            raise RuntimeError("no more data")


def main(case):
    import torch
    import torch.distributed as dist
    device = torch.device("cuda", RANK % torch.cuda.device_count())
    torch.cuda.set_device(device)
    if torch.cuda.device_count() < int(os.environ["WORLD_SIZE"]):
        # Ranks that share a GPU look like hosts, which talk over sockets.
        os.environ.update(NCCL_HOSTID="rank%d" % RANK, NCCL_NET="Socket", NCCL_SOCKET_IFNAME="lo",
                          NCCL_MAX_CTAS="2", NCCL_NVLS_ENABLE="0", NCCL_CUMEM_ENABLE="0")
    timeout_s = float(os.environ.get("PROGRAM_TIMEOUT", "3600"))
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=timeout_s))
    ddp = model_of(device)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    for iteration in range(10):
        if iteration == 5:
            at_iteration_5(case, ddp, device)
        optimizer.zero_grad()
        ddp(torch.ones(4, 8, device=device)).sum().backward()
        optimizer.step()
        torch.cuda.synchronize()
    dist.barrier()
    print("rank %d is done" % RANK, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
