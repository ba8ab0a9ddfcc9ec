// Members are asked for twice, some at a time: first for the name of them all, then to be written
// down in runs of neighbours, because mostly they are a few of these. Nothing is allocated.
#include "watch/preload/callers.h"

#include <algorithm>

#include "watch/preload/members.h"
#include "watch/preload/mpi_names.h"
#include "watch/preload/real.h"
#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {
namespace {

using events::Event;
using events::Phase;

int WorldRank() {
  int rank = -1;
  Real<int(Handle, int*)>("PMPI_Comm_rank")(abi.comm_world, &rank);
  return rank;
}

// Who they are, in an order that all of them know.
struct Callers {
  std::uint64_t name = 0;
  int size = 0;
  int me = -1;
  bool here_only = true;

  void Add(int rank) {
    here_only = here_only && rank != kMpiUndefined;
    if (rank == WorldRank()) me = size;
    name = Mix(name, static_cast<std::uint64_t>(rank));
    ++size;
  }
};

// Members whose ranks follow each other, here and in the world.
class Runs {
 public:
  explicit Runs(std::uint64_t name) {
    event_.phase = Phase::kMembers;
    event_.comm = name;
    event_.peer = 0;
    event_.count = 0;
  }
  void Add(int rank) {
    if (event_.count > 0 && rank != static_cast<int>(event_.request + event_.count)) Write();
    if (event_.count == 0) event_.request = static_cast<std::uint32_t>(rank);
    ++event_.count;
  }
  void Write() {
    preload::Write(event_);
    event_.peer += static_cast<std::int32_t>(event_.count);
    event_.count = 0;
  }

 private:
  Event event_;
};

// `visit_all` gives each of them to what it is called with.
template <typename VisitAll>
std::uint64_t Name(std::uint64_t salt, events::Call call, VisitAll visit_all) {
  Callers callers;
  callers.name = salt;
  visit_all([&](int rank) { callers.Add(rank); });
  if (!callers.here_only || callers.me < 0) return events::kUnknownComm;
  Event made;
  made.phase = Phase::kMade;
  made.call = call;
  made.comm = callers.name;
  made.peer = callers.me;
  made.count = callers.size;
  Write(made);
  Runs runs(callers.name);
  visit_all([&](int rank) { runs.Add(rank); });
  runs.Write();
  return callers.name;
}

bool IsKnown(std::uint64_t comm) { return comm > events::kFreedComm; }

}  // namespace

std::uint64_t CallersOfGroup(Handle comm, Handle group, int tag, events::Call call) {
  const std::uint64_t parent = CommOf(comm);
  if (!IsKnown(parent)) return parent;
  if (group == abi.group_null) return events::kUnknownComm;
  return Name(Mix(parent, static_cast<std::uint64_t>(tag)), call,
              [group](auto visit) { ForEachInWorld(group, visit); });
}

// The side of the lower rank comes first. Members of other worlds are nobody's neighbours.
std::uint64_t CallersOfInter(Handle inter, events::Call call) {
  const std::uint64_t side = CommOf(inter);
  if (!IsKnown(side)) return side;
  int has_sides = 0;
  Real<int(Handle, int*)>("PMPI_Comm_test_inter")(inter, &has_sides);
  if (has_sides == 0) return events::kUnknownComm;
  const Group mine("PMPI_Comm_group", inter);
  const Group theirs("PMPI_Comm_remote_group", inter);
  const auto lowest = [](const Group& group) {
    int rank = INT32_MAX;
    ForEachInWorld(group.handle(), [&rank](int each) { rank = std::min(rank, each); });
    return rank;
  };
  const bool first = lowest(mine) < lowest(theirs);
  return Name(static_cast<std::uint64_t>(call), call, [&](auto visit) {
    ForEachInWorld((first ? mine : theirs).handle(), visit);
    ForEachInWorld((first ? theirs : mine).handle(), visit);
  });
}

std::uint64_t CallersOfPair(Handle comm, int other, int tag, events::Call call) {
  const std::uint64_t parent = CommOf(comm);
  if (!IsKnown(parent)) return events::kUnknownComm;
  int rank = -1;
  int member = 0;
  const Group all("PMPI_Comm_group", comm);
  ForEachInWorld(all.handle(), [&](int each) { rank = member++ == other ? each : rank; });
  const int me = WorldRank();
  if (rank < 0 || rank == me) return events::kUnknownComm;
  return Name(Mix(parent, static_cast<std::uint64_t>(tag)), call, [=](auto visit) {
    visit(std::min(me, rank));
    visit(std::max(me, rank));
  });
}

}  // namespace lockstep::watch::preload
