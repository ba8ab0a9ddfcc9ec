"""A training script that knows nothing of Lockstep: DistributedDataParallel over gloo, on CPUs.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 train.py CASE
"""
import contextlib
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join

BATCH = 4
UNEVEN = ("join", "no_join", "join_barrier", "no_join_metric")


def make(case):
    layers = [torch.nn.Linear(8, 8)]
    if case in ("healthy", "evaluation"):
        layers.append(torch.nn.BatchNorm1d(8))  # forward() sends its buffers
    torch.manual_seed(0)
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))


def step(ddp, optimizer):
    optimizer.zero_grad()
    ddp(torch.ones(BATCH, 8) * torch.arange(BATCH)[:, None]).sum().backward()
    optimizer.step()


def go_wrong(case):
    """What rank 1 does in the middle of the second epoch."""
    if case == "raises":
        raise ValueError("a sample of rank 1 is broken")
    if case == "exits":
        sys.exit()
    if case == "killed":
        os.kill(os.getpid(), 9)
    if case == "stopped":
        os.kill(os.getpid(), 19)
    if case == "slow":
        time.sleep(3)


def train(case, rank, ddp, optimizer):
    for epoch in range(2):
        with Join([ddp]) if case in ("join", "join_barrier") else contextlib.nullcontext():
            for number in range(5 + rank if case in UNEVEN else 5):
                if (epoch, number, rank) == (1, 2, 1):
                    go_wrong(case)
                step(ddp, optimizer)
                if case == "join_barrier":
                    dist.barrier()
        if case == "evaluation" and rank == 0:
            with torch.no_grad():
                ddp(torch.ones(BATCH, 8))
        if case == "no_join":
            continue
        total = torch.ones(1)
        dist.all_reduce(total)
        if rank == 0:
            print("epoch", epoch, "ranks", int(total.item()), flush=True)


def use_groups(rank, everybody, alone):
    """Several groups, and collectives that nobody waits for at once."""
    begun = [dist.all_reduce(torch.ones(100 + n), async_op=True) for n in range(20)]
    begun += [dist.broadcast(torch.ones(9), src=n % 2, group=everybody, async_op=True)
              for n in range(20)]
    dist.all_reduce(torch.ones(3 + rank), group=alone[rank])
    parts = [torch.zeros(4) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, torch.ones(4))
    dist.reduce(torch.ones(5), dst=1)
    dist.gather(torch.ones(4), parts if rank == 0 else None, dst=0)
    dist.scatter(torch.ones(4), parts if rank == 0 else None, src=0)
    dist.all_to_all_single(torch.zeros(4), torch.ones(4))
    for _ in range(3):
        sparse = torch.sparse_coo_tensor([[rank]], [1.0], (4,))
        begun.append(dist.all_reduce(sparse, async_op=True))
    for each in begun:
        each.wait()


def use_messages(case, rank):
    """Sends and receives; their groups, tags and sources are right in `messages` alone."""
    size = dist.get_world_size()
    one = torch.ones(100)
    if case == "receives":
        dist.recv(one, (rank + 1) % size, tag=3)
    elif case == "tags" and rank < 2:
        dist.send(one, 1, tag=5) if rank == 0 else dist.recv(one, 0, tag=7)
    elif case == "messages":
        pair = dist.new_group([0, 1])
        for number in range(20):
            if rank == 1:
                dist.send(one * number, 0, tag=number + 1)
                dist.recv(torch.zeros(200), 0, group=pair)  # more room than is needed
            elif rank == 0:
                dist.recv(one, tag=number + 1)  # from any
                dist.send(one, 1, group=pair)
        ring = [dist.P2POp(dist.isend, one, (rank + 1) % size),
                dist.P2POp(dist.irecv, torch.zeros(100), (rank - 1) % size)]
        for each in dist.batch_isend_irecv(ring):
            each.wait()
        dist.monitored_barrier()
        sys.stdout.write(f"rank {rank} got {int(one[0])}\n")  # in one piece


def use_pairs(case, rank):
    """Groups of some ranks, of which a rank may have several."""
    size = dist.get_world_size()
    pairs = [dist.new_group([each, (each + 1) % size]) for each in range(size)]
    for _ in range(3):
        for each in sorted((rank, (rank - 1) % size)):
            dist.all_reduce(torch.ones(4), group=pairs[each])
    if case == "pair_mismatch" and rank == 2:
        dist.broadcast(torch.ones(4), src=0, group=pairs[2])
    elif case == "pair_mismatch" and rank == 0:
        dist.all_reduce(torch.ones(4), group=pairs[2])


def main():
    case = sys.argv[1]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if case in ("groups", "two_groups"):
        everybody = dist.new_group()
        alone = [dist.new_group([each]) for each in range(dist.get_world_size())]
        if case == "groups":
            use_groups(rank, everybody, alone)
        else:
            dist.all_reduce(torch.ones(1), group=everybody if rank == 1 else None)
    elif case in ("pairs", "pair_mismatch"):
        use_pairs(case, rank)
    elif case in ("messages", "receives", "tags"):
        use_messages(case, rank)
    elif case == "roots":
        dist.broadcast(torch.ones(1), src=rank)
    else:
        ddp = make(case)
        train(case, rank, ddp, torch.optim.SGD(ddp.parameters(), lr=0.1))
    if case != "no_join":
        dist.barrier()


if __name__ == "__main__":
    main()
