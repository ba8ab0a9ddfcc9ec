"""Dumps as PyTorch's Flight Recorder writes them for NCCL, in its formats 2.1 to 2.10.

Source: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp of the releases
2.4 to 2.10.
"""

import json
import os
import pickle

_START_NS = 1795281159209734832


def entry(record, name, sequence, state="completed", sizes=((256,),), **more):
    """One call; `more` replaces fields, and p2p=True makes it one of two ranks."""
    p2p = more.pop("p2p", False)
    started = state != "scheduled"
    fields = {
        "frames": [{"name": "all_reduce", "filename": "/x/torch/distributed/distributed_c10d.py",
                    "line": 2501},
                   {"name": more.pop("function", "step"), "filename": "/job/train.py",
                    "line": more.pop("line", 20)}],
        "record_id": record, "pg_id": 0, "process_group": ("0", "default_pg"),
        "collective_seq_id": 0 if p2p else sequence, "p2p_seq_id": sequence if p2p else 0,
        "op_id": record + 1, "profiling_name": "nccl:" + name,
        "time_created_ns": _START_NS + record * 1000000,
        "input_sizes": [list(size) for size in sizes], "input_dtypes": ["Float"] * len(sizes),
        "output_sizes": [list(size) for size in sizes], "output_dtypes": ["Float"] * len(sizes),
        "state": state,
        "time_discovered_started_ns": _START_NS + record * 1000000 + 1 if started else None,
        "time_discovered_completed_ns":
            _START_NS + record * 1000000 + 2 if state == "completed" else None,
        "retired": state == "completed", "timeout_ms": 600000, "is_p2p": p2p}
    fields.update(more)
    return fields


def steps(count, **more):
    return [entry(i, "all_reduce", i + 1, **more) for i in range(count)]


def dump(entries, groups=(("0", "default_pg", range(4)),), version="2.10"):
    """What _dump_nccl_trace() pickles; older formats know fewer fields."""
    minor = int(version.split(".")[1])
    content = {
        "version": version,
        "pg_config": {name: {"name": name, "desc": desc, "ranks": str(list(ranks))}
                      for name, desc, ranks in groups},
        "pg_status": {"0": {"last_enqueued_collective": len(entries),
                            "last_started_collective": -1, "last_completed_collective": -1}},
        "entries": [dict(fields) for fields in entries],
        "nccl_comm_state": {"0x7f": {"rank": "0", "nranks": "4"}}}
    if minor >= 9:
        content["comm_lib_version"] = "2.27.5"
    for fields in content["entries"]:
        if minor < 2:
            fields["seq_id"] = fields.pop("collective_seq_id")
        if minor < 3:
            del fields["is_p2p"]
        if minor < 4:
            del fields["timeout_ms"]
        if minor >= 10:
            fields["thread_name"], fields["thread_id"] = "pt_main_thread", "139"
    return content


def write(directory, dumps, protocol=2, form="pickle", prefix="nccl_trace_rank_"):
    """`dumps` by rank."""
    os.makedirs(directory, exist_ok=True)
    for rank, content in dumps.items():
        path = os.path.join(directory, prefix + str(rank))
        if form == "json":
            with open(path + ".json", "w", encoding="utf-8") as file:
                json.dump(content, file)
        else:
            with open(path, "wb") as file:
                pickle.dump(content, file, protocol)
