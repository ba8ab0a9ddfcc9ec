// One rank as its journal shows it: what it is in, and how far it came on the world communicator.
#ifndef LOCKSTEP_CORE_VERDICT_RANK_VIEW_H_
#define LOCKSTEP_CORE_VERDICT_RANK_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/journal/journal.h"
#include "core/verdict/judge.h"

namespace lockstep {

// The communicator of all ranks. The journal does not say who is a member of any other.
inline constexpr std::uint16_t kWorld = 0;

// How far a rank came with one operation of the world.
enum class Step : std::uint8_t { kNotEntered, kEnqueued, kStarted, kLeft };

struct RankView {
  const RankEvidence* evidence = nullptr;
  std::optional<JournalEvent> open;    // the invocation it is in
  const JournalEvent* last = nullptr;  // newest event of all, or nullptr
  const JournalEvent* last_collective = nullptr;  // newest event of a collective, or nullptr
  Phase phase = Phase::kStart;
  bool announced_exit = false;       // a kExit event: it left, or is about to leave, on its own
  std::uint64_t world_next = 0;  // the world's first sequence number that it has not completed

  int rank() const { return evidence->rank; }
  bool running() const { return evidence->state == ProcessState::kRunning; }
  bool in_world_operation() const { return open && open->communicator == kWorld; }
  bool newest_collective_failed() const;
  // It, or its library, reported an error.
  bool reported_error() const;
};

RankView ViewOf(const RankEvidence& evidence);

// Linear in the journal.
Step StepAt(const RankView& view, std::uint64_t sequence);

// The rank's newest event of operation `sequence` of the world in case `case_index`, or nullptr.
const JournalEvent* WorldEventAt(const RankView& view, std::uint64_t sequence,
                                 std::uint32_t case_index);

// "all_reduce 50 (…) f32 x 256 sum", "checking results after all_reduce 49 (…)", "connecting".
std::string WhereOf(const RankView& view);
// The same as the end of a sentence: "in all_reduce 50 (…)", "while connecting".
std::string InOrWhile(const RankView& view);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_VERDICT_RANK_VIEW_H_
