// What the parts of one simulated world share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/communicator.h"
#include "core/comm/sim/group.h"
#include "core/comm/sim/scheduler.h"
#include "core/comm/sim/sim_world.h"
#include "core/device/device.h"

namespace lockstep::comm::sim {

struct SimOpenCall {
  int group = 0;
  std::shared_ptr<SimCall> call;
};

// One rank as the world keeps it.
struct SimRank {
  std::unique_ptr<Task> body;
  std::vector<Task*> streams;     // alive
  std::vector<SimOpenCall> open;  // posted and not completed, oldest first
  std::size_t connects = 0;
  std::size_t meets = 0;
  bool stopped = false;
  bool over = false;     // `end` says how; nothing changes it any more,
  bool lingers = false;  // but while it lingers what ends it does
  RankEnd end;
};

// The color and key of each rank that came to one Split, and the groups that follow.
struct SimSplit {
  std::vector<std::pair<int, int>> answers;  // color, key; by rank
  std::size_t here = 0;
  std::map<int, std::shared_ptr<SimGroup>> groups;  // by color, once all are here
  WaitList changed;
};

struct SimState {
  explicit SimState(const SimOptions& given);

  SimRank& At(int rank) { return ranks[static_cast<std::size_t>(rank)]; }
  std::shared_ptr<SimGroup> NewGroup(std::vector<int> members);
  std::shared_ptr<SimSplit> SplitOf(const SimGroup& group, std::uint64_t nth);
  // The first end of a rank counts. Its connections close, unless it lingers.
  void End(int rank, RankState state, std::string message, int exit_code = 0);
  void Linger(int rank);      // finished, but its connections stay
  void RecordHung(int rank);  // what is not over will never be
  void Schedule(const SimFault& fault);
  // Unwinds the rank's stacks as soon as no task runs.
  void Unwind(int rank);
  void UnwindNow(int rank);  // from outside any task

  SimOptions options;
  Scheduler scheduler;
  SimLibrary library;
  std::vector<SimRank> ranks;
  std::vector<std::shared_ptr<SimGroup>> worlds;  // by number of the Connect
  std::vector<std::size_t> met;                   // ranks that came, by number of the Meet
  WaitList all_met;
  std::vector<std::weak_ptr<SimGroup>> groups;  // all, by id
  // That not all ranks have come to, by group and number; those who wait keep them alive.
  std::map<std::pair<int, std::uint64_t>, std::shared_ptr<SimSplit>> splits;
};

// One rank's communicator; `rank` is of the group.
std::unique_ptr<Communicator> NewSimCommunicator(SimState& state, std::shared_ptr<SimGroup> group,
                                                 int rank);

// The device of a simulated rank: host memory, and streams and events in virtual time. It is as the
// host device (core/device/host), with fibers for threads: a FIFO stream is one, whose work
// may wait; it holds at most 4,096 pieces of work, and Enqueue waits while there are as many. Its
// destructor lets work finish for 10 virtual seconds, then unwinds it; at once when an exception
// destroys it, because what its work refers to may be gone by then. Waiting for an event or a
// stream is waiting of the fiber.
std::unique_ptr<device::Device> NewSimDevice(SimState& state, int rank);

}  // namespace lockstep::comm::sim
