"""One rank of a program under PyTorch's own DistributedDataParallel, every collective recorded.

Both Python and the C++ reducer call collectives through PyTorch's dispatcher, so that a
TorchDispatchMode sees each of them, with its tensors, when it is enqueued.
"""

import contextlib
import itertools

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

_TYPES = {torch.float32: "Float", torch.float16: "Half", torch.int64: "Long", torch.int32: "Int",
          torch.uint8: "Byte"}


class Recorder(TorchDispatchMode):
    """Collectives as [kind, elements, type], by section of the program."""

    def __init__(self):
        super().__init__()
        self.sections = []

    def begin(self, name):
        self.sections.append([name, []])

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        space, _, name = str(function).partition(".")
        if space == "c10d":
            kind = name.split(".")[0].rstrip("_").upper()
            tensors = [a for a in torch.utils._pytree.tree_flatten(args)[0]
                       if isinstance(a, torch.Tensor)]
            # A gather lists its outputs first; the input is the last.
            call = [kind] if kind == "BARRIER" else \
                [kind, tensors[-1].numel(), _TYPES[tensors[-1].dtype]]
            self.sections[-1][1].append(call)
        return function(*args, **(kwargs or {}))


class TwoBranch(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 3)
        self.b = torch.nn.Linear(3, 2)
        self.c = torch.nn.Linear(3, 5)
        self.branch = "b"

    def forward(self, x):
        return (self.b if self.branch == "b" else self.c)(self.a(x))


def _make(program, rank):
    """The model and its input i, which every rank has alike."""
    torch.manual_seed(0)
    if program["model"] == "linear_1_1":
        return torch.nn.Linear(1, 1), lambda i: torch.ones(program["linear_rows"], 1)
    if program["model"] == "bn_4_4_2":
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4),
                                    torch.nn.Linear(4, 2))
    else:
        model = TwoBranch()
        model.branch = program["branch"][rank]
    inputs = [torch.randn(8, 4) for _ in range(64)]
    return model, lambda i: inputs[i]


def _wrap(model, program, group):
    dist._DEFAULT_FIRST_BUCKET_BYTES = int(program["first_bucket_mb"] * 1024 * 1024)
    caps = {}
    if program["bucket_cap_mb"] is not None:  # since 2.6 it matters whether it is passed
        caps["bucket_cap_mb"] = program["bucket_cap_mb"]
    ddp = DistributedDataParallel(
        model, process_group=group, **caps, broadcast_buffers=program["broadcast_buffers"],
        find_unused_parameters=program["find_unused_parameters"],
        static_graph=program["static_graph"])
    hooks = {"all_reduce": default_hooks.allreduce_hook, "fp16": default_hooks.fp16_compress_hook}
    if program["comm_hook"] != "none":
        ddp.register_comm_hook(group, hooks[program["comm_hook"]])
    return ddp


def _evaluate(ddp, block, rank, inputs, recorder, iteration, group):
    recorder.begin("EVAL%d" % iteration)
    if rank in block["ranks"]:
        run = ddp if block["through"] == "ddp" else ddp.module
        ddp.eval()
        with torch.set_grad_enabled(block["grad"]):
            for _ in range(block["inputs"]):
                run(next(inputs))
        ddp.train()
    if block["then"] == "barrier":
        dist.barrier(group)


def _join(ddp, program):
    if not program["join"]:
        return contextlib.nullcontext()
    return ddp.join(divide_by_initial_world_size=program["divide_by_initial_world_size"],
                    throw_on_early_termination=program["join_throw"])


def _iterate(ddp, program, inputs, group):
    """One iteration; inputs come from the iterator."""
    if program["zero_grad"]:
        ddp.zero_grad(set_to_none=True)
    ddp(next(inputs)).sum().backward()
    if program["barrier"] == "in_loop":
        dist.barrier(group)


def _train(ddp, program, rank, make_input, recorder, group):
    """The epochs. Each begins with input 0, and evaluation takes the next ones too."""
    iteration = 0
    block = program["eval"]
    for _ in range(program["epochs"]):
        inputs = (make_input(i) for i in itertools.count())
        with _join(ddp, program):
            for i in range(program["inputs"][rank]):
                recorder.begin("ITER%d" % iteration)
                quiet = i in program["no_sync_iterations"]
                with ddp.no_sync() if quiet else contextlib.nullcontext():
                    _iterate(ddp, program, inputs, group)
                if block is not None and block["after_iteration"] == i:
                    _evaluate(ddp, block, rank, inputs, recorder, iteration, group)
                iteration += 1
            recorder.begin("JOINEXIT")
        if program["barrier"] == "after_loop":
            recorder.begin("AFTER")
            dist.barrier(group)


def run(program, rank, group):
    """What the rank did: sections, the error it raised (or None), gradients and weights."""
    recorder = Recorder()
    error = None
    model, make_input = _make(program, rank)
    with recorder:
        try:
            recorder.begin("CTOR")
            ddp = _wrap(model, program, group)
            _train(ddp, program, rank, make_input, recorder, group)
        except RuntimeError as raised:
            error = str(raised).splitlines()[0]
    return {
        "torch": torch.__version__,
        "sections": recorder.sections,
        "error": error,
        "gradients": [None if p.grad is None else p.grad.flatten().tolist()
                      for p in model.parameters()],
        "weights": [p.detach().flatten().tolist() for p in model.parameters()],
    }
