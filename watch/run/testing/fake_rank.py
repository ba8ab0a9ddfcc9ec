"""A rank of no library: it has the pipe that ProcessGroupNCCL makes, and answers it with a dump.
Rank 1 lacks the last call: fake_rank.py FOLDER [healthy|differs], where FOLDER holds
flight_dumps.py. With "differs" rank 1 has made another call when it is asked a third time."""
import os
import pickle
import sys
import time

sys.path.insert(0, sys.argv[1])
import flight_dumps

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
assert int(os.environ["TORCH_FR_BUFFER_SIZE"]) > 0
dump = os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(rank)
pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + str(rank) + ".pipe"
os.mkfifo(pipe)
asked = os.open(pipe, os.O_RDWR)  # so that reading waits, also while nobody writes

healthy = sys.argv[2:] == ["healthy"]
differs = sys.argv[2:] == ["differs"]
# As if all that had been a minute ago.
shift = time.time_ns() - 60 * 10**9 - flight_dumps._START_NS


def a_minute_ago(call):
    for name in ("time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns"):
        call[name] = call[name] and call[name] + shift
    return call


def entry(*words, **facts):
    return a_minute_ago(flight_dumps.entry(*words, **facts))


calls = [a_minute_ago(call) for call in flight_dumps.steps(3)]
if rank != 1 and not healthy:
    calls.append(entry(3, "all_reduce", 4, state="started", line=31))


def answer():
    content = flight_dumps.dump(calls, groups=(("0", "default_pg", range(size)),))
    os.read(asked, 128)
    print("asked", flush=True)
    with open(dump, "wb") as file:
        file.write(b"\x80")  # a reader may come at any moment
        file.flush()
        time.sleep(0.3)
        file.seek(0)
        pickle.dump(content, file, protocol=2)


print("ready", flush=True)
answer()
if differs:
    answer()
    if rank == 1:
        calls.append(entry(3, "broadcast", 4, state="started", line=32))
    answer()
time.sleep(3 if healthy else 600)
