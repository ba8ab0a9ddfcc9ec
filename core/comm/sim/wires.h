// Messages between the ranks of one collective whose calls differ: who waits for whom, and what
// comes, follows from the library's own algorithm, step by step.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "core/comm/sim/fate.h"

namespace lockstep::comm::sim {

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
