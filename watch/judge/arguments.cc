// Arguments that no library has to accept, seen before the library sees them.
#include <fmt/format.h>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

using events::Class;
using events::FactsOf;
using events::Sync;

namespace {

bool HasComm(const Event& event) {
  switch (FactsOf(event.call).call_class) {
    case Class::kSend:
    case Class::kReceive:
    case Class::kProbe:
    case Class::kExchange:
    case Class::kPostSend:
    case Class::kPostReceive:
    case Class::kPrepare:
    case Class::kCollective:
    case Class::kPostCollective:
      return true;
    default:
      return event.call == Call::kCart_get || event.call == Call::kComm_free ||
             event.call == Call::kPut || event.call == Call::kGet ||
             event.call == Call::kAccumulate;
  }
}

bool IsMessage(const Event& event) {
  const Class kind = FactsOf(event.call).call_class;
  return HasComm(event) && kind != Class::kCollective && kind != Class::kPostCollective &&
         kind != Class::kLocal;
}

const char* WrongType(std::uint32_t type) {
  return type == events::kNullType          ? "a null datatype"
         : type == events::kFreedType       ? "a freed datatype"
         : type == events::kUncommittedType ? "a datatype that was not committed"
                                            : nullptr;
}

struct Wrong {
  Cause cause;
  std::string what;
};

std::optional<Wrong> WrongPeer(const Event& event, int size) {
  const bool receives =
      (event.flags & events::kReceiving) != 0 || FactsOf(event.call).call_class == Class::kProbe;
  const bool special =
      event.peer == events::kProcNull || (receives && event.peer == events::kAnySource);
  if (!special && (event.peer < 0 || event.peer >= size)) {
    return Wrong{Cause::kInvalidRank, fmt::format("rank {} of {}", event.peer, size)};
  }
  if (event.tag < 0 && !(receives && event.tag == events::kAnyTag)) {
    return Wrong{Cause::kInvalidTag, fmt::format("tag {}", event.tag)};
  }
  return std::nullopt;
}

// What is wrong whatever the communicator has for members.
std::optional<Wrong> WrongAnywhere(const Event& event) {
  if (event.comm == events::kNullComm) {
    return Wrong{Cause::kInvalidCommunicator, "a null communicator"};
  }
  if (event.comm == events::kFreedComm) {
    return Wrong{Cause::kInvalidCommunicator, "a freed communicator"};
  }
  for (const std::uint32_t type : {event.type, event.type2}) {
    if (const char* const wrong = WrongType(type)) return Wrong{Cause::kInvalidDatatype, wrong};
  }
  if (event.count < 0 && event.count != events::kUnknownCount) {
    return Wrong{Cause::kInvalidCount, fmt::format("count {}", event.count)};
  }
  return std::nullopt;
}

std::optional<Wrong> WrongInCollective(const Event& event, int size) {
  const Sync sync = FactsOf(event.call).sync;
  const bool rooted = sync == Sync::kRoot || sync == Sync::kAtRoot;
  if (rooted && (event.peer < 0 || event.peer >= size)) {
    return Wrong{Cause::kInvalidRoot, fmt::format("root {} of {}", event.peer, size)};
  }
  if (event.tag == events::kNullOp) return Wrong{Cause::kInvalidOperator, "a null operator"};
  return std::nullopt;
}

std::optional<Wrong> WrongArgument(const Event& event, const Communicator* comm) {
  if ((event.flags & events::kBadArgument) != 0) {
    return event.call == Call::kCart_get
               ? Wrong{Cause::kInvalidCommunicator, "a communicator without coordinates"}
               : Wrong{Cause::kInvalidArgument, "an argument out of its range"};
  }
  if (!HasComm(event)) return std::nullopt;
  if (std::optional<Wrong> wrong = WrongAnywhere(event)) return wrong;
  if (!comm || comm->inter) return std::nullopt;
  if (IsMessage(event)) return WrongPeer(event, comm->size);
  if (FactsOf(event.call).call_class == Class::kLocal) return std::nullopt;
  return WrongInCollective(event, comm->size);
}

}  // namespace

bool Judge::CheckArguments(int rank, const Event& event) {
  const std::optional<Wrong> wrong =
      WrongArgument(event, history_.MembershipIn(rank, event.comm).comm);
  if (!wrong) return true;
  Add(wrong->cause, {rank},
      fmt::format("rank {} gives {} {} at {}", rank, FactsOf(event.call).name, wrong->what,
                  At(rank, event.site)),
      event.site);
  return false;
}

}  // namespace lockstep::watch::judge
