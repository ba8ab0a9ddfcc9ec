// One thing that happened on a rank: 64 bytes, one cache line.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/clock.h"
#include "core/collective/collective.h"

namespace lockstep::journal {

enum class EventKind : std::uint16_t {
  kNone = 0,  // an empty slot
  kEnqueue,   // collective put on a stream (written before it is)
  kStart,     // its library call begins
  kEnd,       // its library call is over, or the non-blocking operation completed
  kError,     // ... it reported an error
  kPhase,     // the worker enters `phase`
  kCase,      // the worker begins case `case_index`
  kIdle,      // the worker waits for an order: silence from here on is not a hang
  kExit,      // the worker leaves on its own; `value` is its exit code
  kFault,     // a fault was injected
  kDeath,     // written by the agent: the worker died; `value` is the wait status
  // A communicator is made out of `communicator`, which takes all of its ranks: `sequence` counts
  // from 0 there, `count` is the new one's number, `root` the color (< 0: not a member of it).
  kSplit,     // the rank begins to take part
  kSplitEnd,  // it is done with it; `value` is 0, or 1 when the library reported an error
};
inline constexpr EventKind kLastEventKind = EventKind::kSplitEnd;
std::string_view NameOf(EventKind kind);
// Of an operation on a communicator.
constexpr bool IsOfCall(EventKind kind) {
  return kind == EventKind::kEnqueue || kind == EventKind::kStart || kind == EventKind::kEnd ||
         kind == EventKind::kError;
}
constexpr bool IsSplit(EventKind kind) {
  return kind == EventKind::kSplit || kind == EventKind::kSplitEnd;
}

enum class Phase : std::uint8_t {
  kStart,     // process start
  kConnect,   // making a communicator
  kAllocate,  // memory
  kMeasure,   // collectives
  kCheck,     // comparing results, rewriting inputs
  kLoad,      // data loading
  kCompute,
  kFinalize,
  kConstruct,  // the parts of a training program
  kForward,
  kBackward,
  kJoinExit,
  kEvaluate,
  kBarrier,
};
std::string_view NameOf(Phase phase);

// Nobody counted: of a file of an older version, or beyond what the number holds.
inline constexpr std::uint32_t kUnknownMessages = ~std::uint32_t{0};

struct alignas(64) JournalEvent {
  std::uint64_t index = 0;     // 1, 2, 3 … in the journal; 0: slot empty or being written
  Ticks ticks = 0;             // when
  std::uint64_t sequence = 0;  // of the communicator, from 0
  std::int64_t count = 0;      // elements
  std::uint32_t nth = 0;       // the n-th of this collective on this communicator, from 1
  // Of a collective: sends and receives before it on its communicator. Of a send or receive: those
  // before it with the same peer, in the same direction. So its position is known from it alone,
  // however much of the history is lost.
  std::uint32_t messages_before = 0;
  std::int64_t value = 0;        // exit code, wait status; of collectives their Annotation
  std::uint32_t case_index = 0;  // of the plan
  std::int32_t root = 0;
  EventKind kind = EventKind::kNone;
  std::uint16_t communicator = 0;
  collective::Collective collective = collective::Collective::kAllReduce;
  collective::DataType type = collective::DataType::kF32;
  collective::Reduction reduction = collective::Reduction::kSum;
  Phase phase = Phase::kStart;
};
static_assert(sizeof(JournalEvent) == 64);

}  // namespace lockstep::journal
