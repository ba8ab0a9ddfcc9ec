// What a watched process writes down, 64 bytes at a time. Handles and constants of a vendor are
// translated before they come here, so that the judge knows no MPI header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "watch/events/calls.h"

namespace lockstep::watch::events {

enum class Phase : std::uint8_t {
  kNothing,
  kPart,  // a request or a message that belongs to the call entered next on this thread
  kEnter,
  kDone,  // a request is over, or a receive found its message, in the call that is open
  kLeave,
  kMade,  // an object exists from now on
  kFreed,
  // Of a communicator: `count` ranks of the world from `request` on are its members from `peer` on.
  kMembers,
  // These two become what they are where the call returns and nothing was written meanwhile.
  kEnterLeft,  // kEnter, then kLeave
  kDoneLeft,   // kDone, then kLeave
  // The `peer` events before it come again, in their order, and are only counted: `count` grows by
  // one where a call is entered, and where it returns. `ticks`: when the watcher last saw it grow.
  kAgain,
};

inline constexpr int kMostAgain = 4;  // events that may come again together

// What the newest event of a call becomes when that returns; kNothing: it can't say so.
inline constexpr Phase LeftAfter(Phase phase) {
  return phase == Phase::kEnter  ? Phase::kEnterLeft
         : phase == Phase::kDone ? Phase::kDoneLeft
                                 : Phase::kNothing;
}
inline constexpr bool HasLeft(Phase phase) {
  return phase == Phase::kEnterLeft || phase == Phase::kDoneLeft;
}
// What comes before the kLeave in those two; others are what they are.
inline constexpr Phase BeforeLeft(Phase phase) {
  return phase == Phase::kEnterLeft  ? Phase::kEnter
         : phase == Phase::kDoneLeft ? Phase::kDone
                                     : phase;
}

enum class Object : std::uint8_t {
  kCommunicator,
  kDatatype,
  kOperator,
  kGroup,
  kWindow,
  kFile,
};

// Peers, roots, tags and counts that are no number.
inline constexpr std::int32_t kAnySource = -1'000'001;
inline constexpr std::int32_t kProcNull = -1'000'002;
inline constexpr std::int32_t kAnyTag = -1'000'003;
inline constexpr std::int32_t kNoRoot = -1'000'004;
inline constexpr std::int32_t kUnknown = -1'000'005;
inline constexpr std::int64_t kUnknownCount = -1'000'006;

// Of a wait's part: a request of a call that is not followed. Nobody knows what it needs.
inline constexpr std::uint32_t kOtherRequest = 0xffff'ffff;

// Communicators: hashes that are the same in all their members, beside these.
inline constexpr std::uint64_t kNullComm = 0;
inline constexpr std::uint64_t kUnknownComm = 1;
inline constexpr std::uint64_t kFreedComm = 2;
inline constexpr std::uint64_t kWorldComm = 3;
inline constexpr std::uint64_t kWorldGroups = 16;  // and above: process groups of all ranks

// Datatypes: what the elements are (class and size), beside these.
inline constexpr std::uint32_t kMixedType = 0;  // several, or not known
inline constexpr std::uint32_t kNullType = 1;
inline constexpr std::uint32_t kFreedType = 2;
inline constexpr std::uint32_t kUncommittedType = 3;
inline constexpr std::uint32_t kByteType = 4;  // fits all

// Operators: numbers of the predefined ones, beside these (in `tag`).
inline constexpr std::int32_t kNoOp = -1;
inline constexpr std::int32_t kNullOp = -2;
inline constexpr std::int32_t kUserOp = -3;

// In `thread`: the main one. Others have greater numbers.
inline constexpr std::uint16_t kMainThreadNumber = 1;

// In `count` of a wait of a process group: the main thread makes it.
inline constexpr std::int64_t kMainThread = 1;

enum Flag : std::uint8_t {
  kSynchronous = 1,  // the send needs its receive
  kBuffered = 2,     // the send needs nobody
  kReceiving = 4,    // a request that receives
  kCancelled = 8,
  kPersistent = 16,
  kIntercomm = 32,
  kNoMessage = 64,  // of a kDone: it is not known which message it was
  kBadArgument = 128,
  kExclusive = 1,  // of a lock
  kAllGive = 1,    // of a collective with a count for each member: every other one gives something
};

struct Event {
  Phase phase = Phase::kNothing;
  std::uint8_t flags = 0;
  Call call = Call::kNone;
  std::uint16_t thread = 0;
  Object object = Object::kCommunicator;
  std::uint8_t part = 0;    // of a collective of several calls, or of a request: which
  std::uint64_t site = 0;   // return address: where in the user's program; 0: threads of a library
  std::uint64_t ticks = 0;  // of the call's entry, unless kTimesVariable is set
  std::uint64_t comm = kNullComm;
  std::int32_t peer = kProcNull;  // or the root, or the own rank in a new communicator
  std::int32_t tag = kAnyTag;     // or the operator
  std::uint32_t type = kMixedType;
  std::uint32_t request = 0;         // or the number of an object, or the order in a group
  std::int64_t count = 0;            // elements of `type`; bytes where it is mixed; or a size
  std::uint32_t type2 = kMixedType;  // a second buffer of a collective
  std::int32_t count2 = 0;           // in a group: how many of its kind the rank has called
};
static_assert(sizeof(Event) == 64);

// What the step of this number, from 0 on, of an event of kAgain says: a call is entered where it
// is even, else it returns.
inline Event EventAgain(const Event* again, std::int64_t step) {
  Event event = *(again - again->peer + step / 2 % again->peer);
  event.ticks = again->ticks;
  event.phase = Phase::kEnter;
  if (step % 2 == 0) return event;
  event.phase = Phase::kLeave;
  event.peer = 0;
  return event;
}

// Of a process: calls that it makes again and again, and that are counted.
struct Cycle {
  std::array<Event, kMostAgain> calls = {};  // the next one first
  std::size_t length = 0;                    // 0: there are none
  std::uint64_t over = 0;                    // calls that have returned and are not read
  bool inside = false;  // the return of the call that was read last comes before them

  std::span<const Event> round() const { return std::span(calls).first(length); }
};

// The place of a group's collective, where the call says it (threads enter in any order); else 0.
inline std::uint64_t OrderOf(const Event& event) {
  return !OfGroup(event.call) ? 0 : std::uint64_t{event.request} << 8 | event.part;
}

}  // namespace lockstep::watch::events
