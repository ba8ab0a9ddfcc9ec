// Arguments that no library has to accept, seen before the library sees them.
#include "watch/judge/arguments.h"

#include <fmt/format.h>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

using events::Class;
using events::FactsOf;

namespace {

bool HasComm(const Event& event) {
  switch (FactsOf(event.call).call_class) {
    case Class::kSend:
    case Class::kReceive:
    case Class::kProbe:
    case Class::kExchange:
    case Class::kPostSend:
    case Class::kPostReceive:
    case Class::kPostExchange:
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

std::optional<Cause> WrongPeer(const Event& event, int size) {
  const bool receives =
      (event.flags & events::kReceiving) != 0 || FactsOf(event.call).call_class == Class::kProbe;
  const bool special =
      event.peer == events::kProcNull || (receives && event.peer == events::kAnySource);
  if (!special && (event.peer < 0 || event.peer >= size)) return Cause::kInvalidRank;
  if (event.tag < 0 && !(receives && event.tag == events::kAnyTag)) return Cause::kInvalidTag;
  return std::nullopt;
}

const char* WrongType(std::uint32_t type) {
  return type == events::kNullType    ? "a null datatype"
         : type == events::kFreedType ? "a freed datatype"
                                      : "a datatype that was not committed";
}

// Of that cause, where `event` was found wrong.
std::string WhatIsWrong(Cause cause, const Event& event, int size) {
  switch (cause) {
    case Cause::kInvalidRank:
      return fmt::format("rank {} of {}", event.peer, size);
    case Cause::kInvalidTag:
      return fmt::format("tag {}", event.tag);
    case Cause::kInvalidCommunicator:
      if ((event.flags & events::kBadArgument) != 0) return "a communicator without coordinates";
      return event.comm == events::kNullComm ? "a null communicator" : "a freed communicator";
    case Cause::kInvalidDatatype:
      return WrongType(IsWrongType(event.type) ? event.type : event.type2);
    case Cause::kInvalidCount:
      return fmt::format("count {}", event.count);
    case Cause::kInvalidRoot:
      return fmt::format("root {} of {}", event.peer, size);
    case Cause::kInvalidOperator:
      return "a null operator";
    default:
      return "an argument out of its range";
  }
}

std::optional<Cause> WrongArgument(const Event& event, const Communicator* comm) {
  if ((event.flags & events::kBadArgument) != 0) {
    return event.call == Call::kCart_get ? Cause::kInvalidCommunicator : Cause::kInvalidArgument;
  }
  if (!HasComm(event)) return std::nullopt;
  if (const std::optional<Cause> wrong = WrongAnywhere(event)) return wrong;
  if (!comm || comm->inter) return std::nullopt;
  if (IsMessage(event)) return WrongPeer(event, comm->size);
  if (FactsOf(event.call).call_class == Class::kLocal) return std::nullopt;
  return WrongInCollective(event, comm->size);
}

}  // namespace

bool Judge::CheckArguments(int rank, const Event& event) {
  const Communicator* const comm = history_.MembershipIn(rank, event.comm).comm;
  const std::optional<Cause> wrong = WrongArgument(event, comm);
  if (!wrong) return true;
  Add(*wrong, {rank},
      fmt::format("rank {} gives {} {} at {}", rank, FactsOf(event.call).name,
                  WhatIsWrong(*wrong, event, comm ? comm->size : 0), At(rank, event.site)),
      event.site);
  return false;
}

}  // namespace lockstep::watch::judge
