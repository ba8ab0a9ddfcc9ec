// What becomes of calls that meet: data where they agree, and what the rules say where they differ.
// Pure functions of the calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/comm/sim/fate.h"
#include "core/comm/sim/rules.h"

namespace lockstep::comm::sim {

// By rank. All of the group are here, with the same call of a collective that needs everybody:
// all_reduce, all_gather, reduce_scatter, barrier, and kGloo's reduce.
std::vector<SimFate> FatesOfEqual(const SimCalls& calls);

// The same, when their counts, types, reductions or roots differ.
std::vector<SimFate> FatesOfDifferent(SimRules rules, const SimCalls& calls);

// Of the root of a reduce when all sends that it sees are there (`held`). Ranks that are not here
// (nullptr) took no part.
SimFate FateOfRoot(SimRules rules, const SimCall& root, const SimCalls& calls);

// A message for a call that waits for one.
SimFate FateOfMessage(SimRules rules, const SimCall& call,
                      const std::shared_ptr<const std::vector<std::byte>>& sent);

// Two algorithms step by step, among ranks whose calls differ. gloo's ring, of all_reduce and
// reduce: the pipelined reduce-scatter and (of all_reduce) all-gather of gloo/allreduce.cc, `ring`,
// segment by segment, each rank with the segments that follow from its own count. A rank that gets
// a longer message than it waits for crashes. A reduce's last step (to the root) is taken to go
// well.
std::vector<SimFate> FatesOfGlooRing(const SimCalls& calls);

// Open MPI's small all-reduce, as coll_base_allreduce.c,
// ompi_coll_base_allreduce_intra_recursivedoubling: each rank exchanges with its partners what its
// own count, type and reduction give. A rank that gets a longer message than it waits for returns
// MPI_ERR_TRUNCATE and takes no further part; messages above `eager_bytes` wait for their receive.
std::vector<SimFate> FatesOfRecursiveDoubling(const SimCalls& calls, std::int64_t eager_bytes);

// Messages between the ranks of one collective whose calls differ: who waits for whom, and what
// comes, follows from the library's own algorithm, step by step.
// Sends and receives between two ranks match in order. A receive takes what fits.
class Wires {
 public:
  struct Part {
    bool done = false;      // matched; of a receive: the bytes are there
    std::size_t bytes = 0;  // of the message, once matched
  };

  // Handles of what was posted. Data is read at once.
  std::size_t Send(int from, int to, const std::byte* data, std::size_t bytes);
  std::size_t Receive(int at, int from, std::byte* room, std::size_t bytes);
  const Part& At(std::size_t handle) const { return parts_[handle]; }

 private:
  struct Waiting {
    std::size_t handle = 0;
    std::vector<std::byte> data;  // of a send
    std::byte* room = nullptr;    // of a receive
    std::size_t bytes = 0;
  };
  struct Wire {
    std::deque<Waiting> sends;
    std::deque<Waiting> receives;
  };
  void Match(Wire& wire);

  std::vector<Part> parts_;
  std::map<std::pair<int, int>, Wire> wires_;  // by sender, receiver
};

// What becomes of the calls when all ranks take steps until none can go on. A `Rank` is made of a
// call, `more` and the wires; it has bool Step() (whether it did something) and fate().
template <typename Rank, typename... More>
std::vector<SimFate> FatesOf(const SimCalls& calls, More... more) {
  Wires wires;
  std::vector<Rank> ranks;
  ranks.reserve(calls.size());
  for (const SimCall* call : calls) ranks.emplace_back(*call, more..., wires);
  for (bool progress = true; progress;) {
    progress = false;
    for (Rank& rank : ranks) progress = rank.Step() || progress;
  }
  std::vector<SimFate> fates;
  for (const Rank& rank : ranks) fates.push_back(rank.fate());
  return fates;
}

}  // namespace lockstep::comm::sim
