#!/usr/bin/python3
"""One process of oracle.Ranks: programs come as JSON lines on stdin, results go to stdout."""

import datetime
import json
import sys

import torch
import torch.distributed as dist

import real_ddp

# PyTorch's default is 30 minutes; what waits longer than this in so small a program hangs.
_HANG_S = 60


def main(rank, size, store):
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=_HANG_S)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=size,
                            timeout=limit)
    groups = {ranks: dist.new_group(list(range(ranks)), timeout=limit)
              for ranks in range(2, size + 1)}
    for line in sys.stdin:
        ranks, program = json.loads(line)
        print(json.dumps(real_ddp.run(program, rank, groups[ranks])), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
