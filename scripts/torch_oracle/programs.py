"""Programs of kind ddp_training: read from a scenario file, or drawn from a seed."""

import tomllib

MODELS = ("linear_1_1", "bn_4_4_2", "two_branch")

_DEFAULTS = {
    "epochs": 1, "inputs": 5, "extra_inputs_per_rank": 0, "join": False, "join_throw": False,
    "divide_by_initial_world_size": True, "barrier": "none", "broadcast_buffers": True,
    "find_unused_parameters": False, "static_graph": False, "branch": "b",
    "no_sync_iterations": [], "bucket_cap_mb": None, "first_bucket_mb": 1.0,
    "comm_hook": "none", "eval": None, "zero_grad": False, "linear_rows": 2,
}
_EVAL_DEFAULTS = {"after_iteration": 2, "ranks": [0], "through": "ddp", "grad": False, "inputs": 3,
                  "then": "train"}


def load(path):
    """(number of ranks, workload with every default) of a scenario file."""
    with open(path, "rb") as file:
        scenario = tomllib.load(file)
    return scenario["ranks"], complete(scenario["workload"], scenario["ranks"])


def complete(workload, ranks):
    """The workload with every default, and one item a rank where ranks may differ."""
    unknown = set(workload) - set(_DEFAULTS) - {"kind", "model"}
    if unknown:
        raise ValueError("the oracle does not know %s" % ", ".join(sorted(unknown)))
    program = dict(_DEFAULTS, **workload)
    if not isinstance(program["inputs"], list):
        program["inputs"] = [program["inputs"] + rank * program["extra_inputs_per_rank"]
                             for rank in range(ranks)]
    if not isinstance(program["branch"], list):
        program["branch"] = [program["branch"]] * ranks
    if program["eval"] is not None:
        program["eval"] = dict(_EVAL_DEFAULTS, **program["eval"])
    return program


def draw(random, torch):
    """(number of ranks, workload) of a program that ends on every rank in that PyTorch."""
    ranks = random.choice((2, 2, 3, 4))
    workload = {"kind": "ddp_training", "model": random.choice(MODELS)}
    most = random.randint(1, 5)
    workload["inputs"] = most
    for key, value in (("epochs", 2), ("zero_grad", True)):
        if random.random() < 0.2:
            workload[key] = value
    _draw_ddp(random, workload)
    if torch == "2.6":  # there bucket_cap_mb is the first bucket's too
        workload.pop("first_bucket_mb", None)
    if workload["model"] == "two_branch":
        _draw_branch(random, workload, ranks)
    raises = _raises(workload)
    if not raises and random.random() < 0.5:
        _draw_join(random, workload, ranks, most)
    uneven = isinstance(workload["inputs"], list)
    if random.random() < 0.3:
        _draw_no_sync(random, workload, most)
    if not raises and not uneven and random.random() < 0.3:
        _draw_eval(random, workload, ranks, most)
    if not raises and random.random() < 0.3:
        _draw_barrier(random, workload)
    return ranks, workload


def _raises(workload):
    """Without a gradient for each parameter DDP raises in the second forward, outside join's
    rules."""
    return "branch" in workload and not workload.get("find_unused_parameters") \
        and not workload.get("static_graph")


def _draw_ddp(random, workload):
    if random.random() < 0.4:
        workload["broadcast_buffers"] = random.random() < 0.5
    mode = random.choice(("plain", "plain", "unused", "static"))
    if mode == "unused":
        workload["find_unused_parameters"] = True
    if mode == "static":
        workload["static_graph"] = True
    if random.random() < 0.7:
        # A few bytes, so that these models have several buckets. Exact in binary and in decimal.
        workload["bucket_cap_mb"] = random.choice((4, 16, 32, 64, 128)) / 2**20
        workload["first_bucket_mb"] = random.choice((4, 16, 32, 64)) / 2**20
    if random.random() < 0.15:
        workload["comm_hook"] = random.choice(("all_reduce", "fp16"))


def _draw_branch(random, workload, ranks):
    if workload.get("find_unused_parameters"):
        workload["branch"] = [random.choice("bc") for _ in range(ranks)]
    else:
        workload["branch"] = random.choice("bc")


def _draw_join(random, workload, ranks, most):
    workload["join"] = True
    if random.random() < 0.8:
        # The bitmap of a static graph's first iteration is not shadowed by ranks that have joined.
        # The bitmap that a rank sends after joining is its last; before its first it is memory that
        # nobody has written, and whether unused parameters get gradients is chance.
        branches = "branch" in workload
        fewest = 1 if workload.get("static_graph") or branches else 0
        workload["inputs"] = [random.randint(fewest, most) for _ in range(ranks)]
    if random.random() < 0.3:
        workload["divide_by_initial_world_size"] = False
    if random.random() < 0.25:
        workload["join_throw"] = True


def _draw_no_sync(random, workload, most):
    inputs = workload["inputs"]
    last = (max(inputs) if isinstance(inputs, list) else inputs) - 1
    if last < 0:
        return
    chosen = sorted(random.sample(range(last + 1), random.randint(1, min(2, last + 1))))
    if workload.get("join") and "branch" in workload:
        chosen = [i for i in chosen if i > 0]
    # A static graph needs two iterations with it to learn its order (1.13 fails an assertion).
    if workload.get("static_graph"):
        chosen = [i for i in chosen if i > 1]
    workload["no_sync_iterations"] = chosen


def _draw_eval(random, workload, ranks, most):
    block = {"after_iteration": random.randrange(most), "inputs": random.randint(1, 3),
             "through": random.choice(("ddp", "ddp", "module")), "grad": False,
             "ranks": list(range(ranks))}
    rebuilt = 2 if workload.get("static_graph") else 1
    # On some ranks only: their broadcasts meet those of the others' next training forward, if that
    # has nothing else before them.
    alone = block["through"] == "module" or (
        rebuilt <= block["after_iteration"] < most - 1 and not workload.get("join"))
    if alone and not workload.get("no_sync_iterations") and random.random() < 0.5:
        block["ranks"] = [random.randrange(ranks)]
    else:
        block["grad"] = random.random() < 0.3
        if random.random() < 0.3:
            block["then"] = "barrier"
    workload["eval"] = block


def _draw_barrier(random, workload):
    if workload.get("join_throw") and isinstance(workload["inputs"], list):
        return
    choices = ["after_loop"] if workload.get("join") else ["in_loop", "after_loop"]
    workload["barrier"] = random.choice(choices)


def to_toml(name, ranks, workload):
    """The scenario file of a program."""
    lines = ['name = "%s"' % name, "ranks = %d" % ranks, "[workload]"]
    lines += ["%s = %s" % (key, _value(value)) for key, value in workload.items()]
    return "\n".join(lines) + "\n"


def _value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"%s"' % value
    if isinstance(value, list):
        return "[%s]" % ", ".join(map(_value, value))
    if isinstance(value, dict):
        return "{ %s }" % ", ".join("%s = %s" % (k, _value(v)) for k, v in value.items())
    if isinstance(value, float):
        return "%.17f" % value if value < 1 else repr(value)
    return repr(value)
