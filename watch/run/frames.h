// What watchers tell each other. A watcher sends the events of its processes as they come; rank
// 0's judges them. Frames of one connection arrive in their order.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "core/control/codec.h"
#include "watch/events/event.h"
#include "watch/run/process.h"

namespace lockstep::watch::run {

// Beside those of core/control/frames.h, with which watchers meet.
enum FrameType : std::uint32_t {
  // To rank 0's watcher.
  kProcess = 1000,
  kEvents,
  kFacts,
  kRoundDone,
  kAnswer,
  kEnd,
  kAreYouThere,  // asked by who only waits
  // From it.
  kRound,
  kAsk,
  kKill,
  kDismiss,  // nothing more is wanted
  kHere,
};

// From now on `process` is the number of this one, on this connection.
struct ProcessFrame {
  static constexpr std::uint32_t kType = kProcess;
  std::uint32_t process = 0;
  ProcessName name;
  static void Describe(auto& fields, auto& frame) { fields(frame.process, frame.name); }
};

static_assert(std::has_unique_object_representations_v<events::Event>);

struct EventsFrame {
  static constexpr std::uint32_t kType = kEvents;
  std::uint32_t process = 0;
  std::string bytes;  // of events, as they lie in memory
  static void Describe(auto& fields, auto& frame) {
    fields(frame.process);
    fields.Rest(frame.bytes);
    fields.Require(frame.bytes.size() % sizeof(events::Event) == 0);
  }
};

// Sent after the events that were complete when it was looked at.
struct FactsFrame {
  static constexpr std::uint32_t kType = kFacts;
  std::uint32_t process = 0;
  ProcessFacts facts;
  static void Describe(auto& fields, auto& frame) { fields(frame.process, frame.facts); }
};

// kRound asks for the facts of all processes; kRoundDone follows them.
template <std::uint32_t kOf>
struct RoundFrame {
  static constexpr std::uint32_t kType = kOf;
  std::uint64_t round = 0;
  static void Describe(auto& fields, auto& frame) { fields(frame.round); }
};
using RoundOrder = RoundFrame<kRound>;
using RoundReport = RoundFrame<kRoundDone>;

// kAskForDumps: of its ranks.
enum class About : std::uint8_t { kSite, kPython, kStacks, kAskForDumps, kDump };

struct AskFrame {
  static constexpr std::uint32_t kType = kAsk;
  std::uint64_t question = 0;
  std::uint32_t process = 0;
  About about = About::kSite;
  std::uint64_t site = 0;  // of kSite
  std::int32_t rank = -1;  // of kDump
  static void Describe(auto& fields, auto& frame) {
    fields(frame.question, frame.process, frame.site, frame.rank);
    fields.UpTo(frame.about, About::kDump);
  }
};
struct AnswerFrame {
  static constexpr std::uint32_t kType = kAnswer;
  std::uint64_t question = 0;
  std::string line;  // or the stacks, or a dump
  bool in_torch = false;
  std::vector<std::int32_t> ranks;  // that were asked for their dumps
  static void Describe(auto& fields, auto& frame) {
    fields(frame.question, frame.line, frame.in_torch, frame.ranks);
  }
};

// The command ended, and so did its processes; all was told.
struct EndFrame {
  static constexpr std::uint32_t kType = kEnd;
  std::int32_t code = 0;
  static void Describe(auto& fields, auto& frame) { fields(frame.code); }
};

}  // namespace lockstep::watch::run
