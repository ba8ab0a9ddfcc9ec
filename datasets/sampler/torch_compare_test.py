#!/usr/bin/python3
"""Random samplers against the installed PyTorch, index for index: 10,000 of them from one seed."""

import random
import subprocess
import sys

CASES = 10000
SEED = 20260121
BINARY = "datasets/sampler/sampler_lines"


def random_case(draw):
    """n, world, rank, seed, epoch, shuffle, drop_last; few are large, many are at the edges."""
    n = draw.choice([draw.randrange(0, 20), draw.randrange(0, 3000), draw.randrange(0, 3000)])
    if draw.randrange(500) == 0:
        n = draw.randrange(300_000, 700_000)  # several pieces of the shuffle
    world = draw.choice([1, 2, draw.randrange(1, 12), draw.randrange(1, 70)])
    seed = draw.choice([draw.randrange(100), -draw.randrange(1, 2**63), draw.randrange(2**63)])
    return [n, world, draw.randrange(world), seed, draw.randrange(5),
            int(draw.randrange(5) > 0), draw.randrange(2)]


def real(torch, sampler_type, case):
    n, world, rank, seed, epoch, shuffle, drop_last = case
    sampler = sampler_type(range(n), num_replicas=world, rank=rank, shuffle=bool(shuffle),
                           seed=seed, drop_last=bool(drop_last))
    sampler.set_epoch(epoch)
    return torch.tensor(list(sampler), dtype=torch.int64)


def ours(cases):
    """The lists of all cases, from one process that reads a case a line."""
    text = "".join(" ".join(map(str, case)) + "\n" for case in cases)
    return subprocess.run([BINARY], input=text, check=True, capture_output=True,
                          text=True).stdout.split("\n")


def weighted_case(draw):
    weights = [draw.choice([0.0, draw.random(), draw.random() * 100])
               for _ in range(draw.randrange(1, 200))]
    weights[draw.randrange(len(weights))] = 1.0
    return ["w", draw.randrange(2, 300), draw.randrange(2**63)] + weights


def real_weighted(torch, case):
    generator = torch.Generator()
    generator.manual_seed(case[2])
    return torch.multinomial(torch.tensor(case[3:], dtype=torch.float64), case[1], True,
                             generator=generator)


def main(torch, sampler_type):
    print("seed %d" % SEED)
    draw = random.Random(SEED)
    cases = [random_case(draw) for _ in range(CASES)]
    weighted = [weighted_case(draw) for _ in range(CASES // 20)]
    lines = ours(cases + weighted)
    wrong = 0
    for case, line in zip(cases + weighted, lines):
        expected = (real_weighted(torch, case) if case[0] == "w"
                    else real(torch, sampler_type, case)).tolist()
        if line != " ".join(map(str, expected)):
            wrong += 1
            print("differs: %s\n  PyTorch %s\n  ours    %s" % (case[:8], expected[:8], line[:80]))
    indices = sum(len(line.split()) for line in lines)
    print("%d of %d agree with PyTorch %s, %d indices"
          % (len(cases) + len(weighted) - wrong, len(cases) + len(weighted), torch.__version__,
             indices))
    return 1 if wrong or len(lines) != len(cases) + len(weighted) + 1 else 0


if __name__ == "__main__":
    import torch as real_torch
    from torch.utils.data import DistributedSampler
    sys.exit(main(real_torch, DistributedSampler))
