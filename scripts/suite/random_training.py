"""A training script that is right, and knows nothing of Lockstep. Its seed draws what it does: a
model, options of DistributedDataParallel, a sampler, and some of the parts below. All ranks draw
the same. What it prints is the same in each launch.

  torch_ranks.py RANKS random_training.py SEED
"""
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WIDTH = 6


class Branches(torch.nn.Module):
    """Of two branches a step uses one, so parameters are unused."""

    def __init__(self):
        super().__init__()
        self.branches = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.steps = 0

    def forward(self, batch):
        self.steps += 1
        return self.branches[self.steps % 2](batch)


class Words(torch.nn.Module):
    """An embedding and a recurrent layer; the last one shares its weight with the first."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(16, WIDTH)
        self.recurrent = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.output = torch.nn.Linear(WIDTH, 16, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, batch):
        words = batch[..., 0].abs().mul(7).long().clamp(0, 15)
        return self.output(self.recurrent(self.embedding(words))[0])


def layers(*extra):
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 32), *extra, torch.nn.ReLU(),
                               torch.nn.Linear(32, WIDTH))


MODELS = {
    "layers": layers,
    "buffers": lambda: layers(torch.nn.BatchNorm1d(32)),
    "dropout": lambda: layers(torch.nn.Dropout(0.2)),
    "deep": lambda: torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(20))),
    "branches": Branches,
    "words": Words,
    "attention": lambda: torch.nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True),
}


class Program:

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.late = random.Random(seed * 64 + self.rank)  # ranks take naps of their own
        torch.manual_seed(seed)
        self.figures = []

    def say(self, value):
        self.figures.append("%.5g" % float(value))

    def maybe(self, share=0.5):
        return self.draw.random() < share

    def nap(self):
        if self.late.random() < 0.15:
            time.sleep(self.late.uniform(0, 0.1))

    def wrap(self, static=False, hooks=True):
        name = self.draw.choice(sorted(MODELS))
        ddp = DistributedDataParallel(
            MODELS[name](), bucket_cap_mb=self.draw.choice((25, 1, 0.001)),
            broadcast_buffers=self.maybe(0.8), gradient_as_bucket_view=self.maybe(),
            find_unused_parameters=name == "branches" or (not static and self.maybe(0.2)),
            static_graph=static and name != "branches" and self.maybe(0.3))
        if hooks and self.maybe(0.3):
            self.hook(ddp)
        return ddp

    def hook(self, ddp):
        kind = self.draw.choice(("plain", "half", "power"))
        if kind == "power":
            state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2)
            ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        elif kind == "half":
            ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
        else:
            ddp.register_comm_hook(None, default_hooks.allreduce_hook)

    def loader(self):
        data = TensorDataset(torch.randn(self.draw.randint(9, 40), 3, WIDTH))
        sampler = DistributedSampler(data, shuffle=self.maybe(), drop_last=self.maybe())
        workers = 2 if self.maybe(0.15) else 0
        return DataLoader(data, batch_size=self.draw.randint(2, 4), sampler=sampler,
                          num_workers=workers), sampler


def loss_of(model, batch):
    if any(isinstance(each, torch.nn.BatchNorm1d) for each in model.modules()):
        batch = batch.flatten(0, 1)
    return model(batch).float().pow(2).mean()


def parameters_of(model):
    return sum(each.detach().double().abs().sum() for each in model.parameters())


# ---- the parts

def train(program):
    """Epochs of a sampler, with accumulation and evaluation as drawn."""
    accumulate = program.draw.choice((1, 1, 2, 3))
    ddp = program.wrap(static=accumulate == 1)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.5)
    loader, sampler = program.loader()
    evaluates = program.draw.choice(("nowhere", "everywhere", "rank 0"))
    for epoch in range(program.draw.randint(1, 3)):
        sampler.set_epoch(epoch)
        for number, (batch,) in enumerate(loader):
            program.nap()
            last = (number + 1) % accumulate == 0
            with contextlib.nullcontext() if last else ddp.no_sync():
                loss_of(ddp, batch).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
        evaluate(program, ddp, evaluates)
    program.say(parameters_of(ddp))


def evaluate(program, ddp, where):
    """On all ranks, or through the model itself on rank 0."""
    if where == "nowhere":
        return
    ddp.eval()
    total = torch.zeros(2)
    with torch.no_grad():
        if where == "everywhere" or program.rank == 0:
            total[0] = loss_of(ddp.module, torch.ones(4, 3, WIDTH) / 2)
            total[1] = 1
    ddp.train()
    if where == "everywhere" or program.maybe():
        dist.all_reduce(total)
        program.say(total[0] / total[1])
    else:
        dist.barrier()


def uneven(program):
    """Some ranks have more batches; Join lets the others shadow them."""
    ddp = program.wrap(hooks=False)
    zero = program.maybe(0.3)
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, lr=0.01) if zero else \
        torch.optim.SGD(ddp.parameters(), lr=0.01)
    batches = [program.draw.randint(1, 8) for _ in range(program.size)]
    with Join([ddp, optimizer] if zero else [ddp]):
        for number in range(batches[program.rank]):
            program.nap()
            optimizer.zero_grad()
            loss_of(ddp, torch.full((4, 3, WIDTH), number / 8 + program.rank)).backward()
            optimizer.step()
    program.say(parameters_of(ddp))


def sharded_optimizer(program):
    ddp = program.wrap()
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, lr=0.01)
    for _ in range(program.draw.randint(2, 5)):
        optimizer.zero_grad()
        loss_of(ddp, torch.ones(4, 3, WIDTH)).backward()
        optimizer.step()
    if program.maybe():
        optimizer.consolidate_state_dict(to=0)
    program.say(parameters_of(ddp))


def averaging(program):
    """Each rank trains alone, and models are averaged now and then."""
    model = MODELS["deep"]()
    averager = PeriodicModelAverager(period=2, warmup_steps=1)
    for number in range(6):
        loss_of(model, torch.full((4, 3, WIDTH), number + program.rank / 2)).backward()
        averager.average_parameters(model.parameters())
    program.say(parameters_of(model))


def collectives(program):
    """Calls that are awaited late, of several groups of all ranks."""
    groups = [None, dist.new_group()]
    begun, data = [], []
    for number in range(program.draw.randint(5, 40)):
        program.nap()
        data.append(torch.full((program.draw.choice((1, 100, 70000)),), float(number)))
        group = program.draw.choice(groups)
        if program.maybe():
            begun.append(dist.all_reduce(data[-1], group=group, async_op=True))
        else:
            source = program.draw.randrange(program.size)
            begun.append(dist.broadcast(data[-1], source, group=group, async_op=True))
    for each in begun:
        each.wait()
    parts = [torch.zeros(3) for _ in range(program.size)]
    dist.all_gather(parts, torch.full((3,), float(program.rank)))
    dist.reduce(parts[0], dst=program.size - 1)
    dist.gather(parts[1], parts if program.rank == 1 else None, dst=1)
    dist.scatter(torch.zeros(3), parts if program.rank == 0 else None, src=0)
    program.say(sum(each.double().sum() for each in data))


def some_ranks(program):
    """Groups of some ranks; a rank is in several of them, or in none."""
    groups = []
    for _ in range(program.draw.randint(1, 4)):
        members = sorted(program.draw.sample(range(program.size),
                                             program.draw.randint(1, program.size)))
        groups.append((members, dist.new_group(members)))
    total = torch.ones(4)
    for _ in range(program.draw.randint(2, 8)):
        members, group = program.draw.choice(groups)
        source = program.draw.choice(members)
        if program.rank not in members:
            continue
        dist.all_reduce(total, op=dist.ReduceOp.MAX, group=group)
        dist.broadcast(total, source, group=group)
        total += 1
    dist.all_reduce(total, op=dist.ReduceOp.MAX)
    program.say(total.sum())


def messages(program):
    after, before = (program.rank + 1) % program.size, (program.rank - 1) % program.size
    got = torch.zeros(50)
    for number in range(program.draw.randint(1, 6)):
        program.nap()
        request = dist.isend(torch.full((50,), float(number + program.rank)), after, tag=number)
        dist.recv(got, before if program.maybe() else None, tag=number)
        request.wait()
    ring = [dist.P2POp(dist.isend, torch.ones(9), after), dist.P2POp(dist.irecv, got[:9], before)]
    for each in dist.batch_isend_irecv(ring):
        each.wait()
    if program.maybe():
        dist.monitored_barrier()
    program.say(got.sum())


def objects(program):
    """Pickles, a checkpoint of rank 0 that all others load, and their folder."""
    folder = [tempfile.mkdtemp() if program.rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    ddp = program.wrap()
    path = os.path.join(folder[0], "checkpoint")
    if program.rank == 0:
        torch.save(ddp.state_dict(), path)
    dist.barrier()
    ddp.load_state_dict(torch.load(path))
    dist.barrier()
    if program.rank == 0:
        shutil.rmtree(folder[0])
    found = [None] * program.size
    dist.all_gather_object(found, {"rank": program.rank, "text": "x" * program.rank * 100})
    program.say(sum(len(each["text"]) for each in found))


PARTS = (train, train, uneven, uneven, sharded_optimizer, averaging, collectives, some_ranks,
         messages, objects)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    program = Program(int(sys.argv[1]))
    parts = program.draw.sample(PARTS, program.draw.randint(1, 4))
    for part in parts:
        part(program)
        program.figures.append(part.__name__)
    sys.stdout.write("rank %d: %s\n" % (program.rank, " ".join(program.figures)))  # in one piece
    sys.stdout.flush()
    if program.maybe():
        dist.barrier()
        dist.destroy_process_group()
    # Who has done all of its part may leave: nobody waits for it.


if __name__ == "__main__":
    main()
