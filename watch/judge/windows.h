// Windows of one-sided communication: epochs that some members open for each other, and locks. Who
// is in a call of a window may wait for what another member has not called yet.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "watch/events/event.h"

namespace lockstep::watch::judge {

struct History;
struct Need;
struct OpenCall;

// What members called on a window. Ranks are those of the world.
struct Window {
  struct Pair {  // of an origin and a target: how often
    std::uint64_t posted = 0;
    std::uint64_t started = 0;
    std::uint64_t completing = 0;  // MPI_Win_complete was entered
    std::uint64_t completed = 0;
  };
  std::map<std::pair<int, int>, Pair> pairs;
  std::map<int, std::vector<int>> targets;  // by origin, of its newest MPI_Win_start
  std::map<int, std::vector<int>> origins;  // by target, of its newest MPI_Win_post
  // By member that is the target: who locked it, and whether for itself. Whose rank the member has
  // may be read later.
  std::map<int, std::map<int, bool>> locks;
};

// A rank enters or leaves a call of a window.
void EnterWindow(History& history, int rank, const OpenCall& open);
void LeaveWindow(History& history, int rank, const OpenCall& open);
// What a rank in such a call waits for. `pending`: also for something under way.
std::vector<Need> NeedsOfWindow(const History& history, int rank, const OpenCall& open,
                                bool* pending);

}  // namespace lockstep::watch::judge
