// All ranks at one moment, and where their calls on a communicator do not match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/collective/collective.h"
#include "core/verdict/evidence.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/semantics.h"

namespace lockstep::verdict {

// A communicator whose members are known.
struct Group {
  std::uint16_t communicator = kWorld;
  bool making = false;  // its operations are the makings of communicators out of it
  std::string name;
  std::vector<std::size_t> members = {};  // indices of the views
  std::vector<int> ranks = {};            // by rank in the group; empty: that of the world
  // Ranks' sequence numbers mean the same operation: nobody sends or receives on it.
  bool aligned = true;
};

struct Situation {
  std::vector<RankView> views = {};
  std::vector<Group> groups = {};  // the world is the first, makings are the last
  double deadline_seconds = 0;
  Semantics semantics;
  bool one_stream = false;
  bool nonblocking_calls = false;

  const Group& GroupAt(int index) const { return groups[static_cast<std::size_t>(index)]; }
  bool overdue(const RankView& view) const {
    return view.evidence->seconds_silent >= deadline_seconds;
  }
};

// The view of the root of an operation of the group, or nothing when nobody knows that rank.
std::optional<std::size_t> RootIn(const Situation& situation, int group, int root);

// `evidence` outlives it. Ranks that a group names and nobody knows are left out.
Situation SituationOf(const std::vector<RankEvidence>& evidence, const Setting& setting);

// A position of a group in which ranks called different operations.
struct Mismatch {
  int group = 0;
  std::uint64_t sequence = 0;
  std::uint32_t case_index = 0;
  // Who called what there; the largest party first, among equals the one with the lowest rank.
  struct Party {
    const JournalEvent* event = nullptr;
    std::vector<std::size_t> members = {};  // indices of the views
  };
  std::vector<Party> parties = {};
  Effect effect = Effect::kStops;
  // Ranks are in it and cannot go on, or ended in it by themselves. Otherwise they went through it,
  // or wait in it for one that does not come so far.
  bool holds = true;
  // The library counts the calls of all parties alike: those behind it still meet by position.
  bool in_step = true;
};

// Of each group, in the order of the groups: the earliest, and where that one holds nobody, the
// earliest behind it that does, or that the library does not count alike. Of the messages from one
// rank to another, where a send does not fit its receive: the first, and the last if it holds. What
// the ring of a journal lost cannot be compared.
std::vector<Mismatch> FindMismatches(const Situation& situation);

Operation OperationOf(const JournalEvent& event);
// Both say what they are for, and it is not the same (a bucket's shadow is for that bucket).
bool DifferInPurpose(const JournalEvent& a, const JournalEvent& b);
// The same call, and for the same purpose as far as both say one.
bool SameInvocation(const JournalEvent& a, const JournalEvent& b);

}  // namespace lockstep::verdict
