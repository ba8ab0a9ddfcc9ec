// What is wrong with a call, whatever other ranks do. Asked of each call, so it is inlined and
// makes no text.
#pragma once

#include <cstdint>
#include <optional>

#include "watch/events/event.h"
#include "watch/judge/finding.h"

namespace lockstep::watch::judge {

inline bool IsWrongType(std::uint32_t type) {
  return type >= events::kNullType && type <= events::kUncommittedType;
}

// What is wrong whatever the communicator has for members.
inline std::optional<Cause> WrongAnywhere(const events::Event& event) {
  if (event.comm == events::kNullComm || event.comm == events::kFreedComm) {
    return Cause::kInvalidCommunicator;
  }
  if (IsWrongType(event.type) || IsWrongType(event.type2)) return Cause::kInvalidDatatype;
  if (event.count < 0 && event.count != events::kUnknownCount) return Cause::kInvalidCount;
  return std::nullopt;
}

inline std::optional<Cause> WrongInCollective(const events::Event& event, int size) {
  const events::Sync sync = events::FactsOf(event.call).sync;
  const bool rooted = sync == events::Sync::kRoot || sync == events::Sync::kAtRoot;
  if (rooted && (event.peer < 0 || event.peer >= size)) return Cause::kInvalidRoot;
  if (event.tag == events::kNullOp) return Cause::kInvalidOperator;
  return std::nullopt;
}

inline bool IsRightCollective(const events::Event& event, int size) {
  return (event.flags & events::kBadArgument) == 0 && !WrongAnywhere(event) &&
         !WrongInCollective(event, size);
}

}  // namespace lockstep::watch::judge
