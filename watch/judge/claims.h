// Which messages under way the posted receives of their ranks take, as far as that is certain.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "watch/judge/history.h"

namespace lockstep::watch::judge {

class Claims {
 public:
  explicit Claims(const History& history);

  // A posted receive takes the message, or may take it.
  bool Wanted(const Message& message) const { return wanted_.count(message.number) > 0; }
  // One certainly does.
  bool Taken(const Message& message) const { return taken_.count(message.number) > 0; }
  // A message is there for the receive of this rank and order, or may be.
  bool Served(int rank, std::uint64_t order) const { return served_.count({rank, order}) > 0; }
  // A message is there for a probe, or may be.
  bool Arrives(int rank, const Event& probe) const;
  // A message for the rank that would fit the receive but for its tag or communicator, and that
  // nothing else takes; null: none.
  const Message* NearMiss(int rank, const Event& receive, bool* other_comm) const;

 private:
  bool Claim(int rank, const Event& receive);

  const History& history_;
  std::set<std::uint64_t> wanted_, taken_;          // by number
  std::set<std::pair<int, std::uint64_t>> served_;  // receives (rank, order)
};

}  // namespace lockstep::watch::judge
