// Messages split from collectives by their two ranks: a position means the same on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/verdict/evidence.h"
#include "core/verdict/outcome.h"

namespace lockstep::verdict {

// Communicators from this number on are lanes: the messages from one rank to another.
inline constexpr std::uint16_t kFirstLane = 0x8000;

// It is a message, or its sequence number counts some.
bool StandsAmongMessages(const JournalEvent& event);

struct SplitEvidence {
  std::vector<RankEvidence> evidence;
  Setting setting;
};

// Sends and receives match the n-th to the n-th between two ranks, whatever else these call (MPI's
// and NCCL's point-to-point order; gloo's slots). In the copy they are operations of a communicator
// of the two, and those of the communicator that they were called on count without them. Nothing
// when there are none, or when a journal does not tell who belongs to what, or how many there were.
std::optional<SplitEvidence> SplitByPeer(const std::vector<RankEvidence>& evidence,
                                         const Setting& setting);

// The operations of findings as they are in `evidence`.
void RestoreOperations(const std::vector<RankEvidence>& evidence, Judgement& judgement);

}  // namespace lockstep::verdict
