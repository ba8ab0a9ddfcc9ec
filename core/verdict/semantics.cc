// The table of libraries, and what follows from it for two calls that meet. A rule that is not
// certain is kUndefined.
#include "core/verdict/semantics.h"

#include <fmt/core.h>

namespace lockstep::verdict {
namespace {

constexpr Semantics kTable[] = {
    {.backend = "nccl",
     .matching = Matching::kPosition,
     .barrier_is_all_reduce = true,
     .root_waits = false,
     .sends_wait = false,
     .receives_exactly = true},
    {.backend = "mpi", .matching = Matching::kKind, .root_waits = false, .sends_wait = false},
    {.backend = "gloo", .matching = Matching::kPositionAndKind},
    {.backend = "null", .root_waits = false, .sends_wait = false, .ignores_all = true},
};
constexpr Semantics kAny = {};
constexpr std::string_view kImitation = "sim_";
// The unit in which NCCL's LL protocol waits: two words of data, each with a flag.
constexpr std::int64_t kLineBytes = 8;

// No rank leaves it before all came, whatever the size.
bool NeedsAll(const Semantics& semantics, Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kBarrier:
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return true;
    case Collective::kBroadcast:
    case Collective::kReduce:
      return semantics.root_waits;
    case Collective::kSend:
    case Collective::kRecv:
      break;
  }
  return false;
}

Operation AsRun(const Semantics& semantics, const Operation& operation) {
  if (!semantics.barrier_is_all_reduce || operation.collective != Collective::kBarrier) {
    return operation;
  }
  return {.collective = Collective::kAllReduce, .type = collective::DataType::kF32, .count = 1};
}

bool IsEmpty(const Operation& operation) {
  return operation.collective != Collective::kBarrier && operation.count == 0;
}

std::int64_t BytesOf(const Operation& operation) {
  return operation.count * collective::SizeOf(operation.type);
}

Effect EffectOfParameters(const Semantics& semantics, const Operation& a, const Operation& b) {
  const collective::CollectiveInfo& info = collective::InfoOf(a.collective);
  if (info.rooted && a.root != b.root) return Effect::kUndefined;
  if (BytesOf(a) == BytesOf(b)) return Effect::kWrongData;
  const bool one_line = BytesOf(a) <= kLineBytes && BytesOf(b) <= kLineBytes;
  return semantics.matching == Matching::kPosition && one_line ? Effect::kWrongData
                                                               : Effect::kUndefined;
}

struct Message {
  const Operation& sent;
  const Operation& received;
};

Message MessageOf(const Operation& a, const Operation& b) {
  return a.collective == Collective::kSend ? Message{a, b} : Message{b, a};
}

// All that is sent comes, into memory that is meant for it.
bool HasRoom(const Semantics& semantics, const Message& message) {
  const std::int64_t sent = BytesOf(message.sent), room = BytesOf(message.received);
  return semantics.receives_exactly ? sent == room : sent <= room;
}

std::string ExplainMessage(const Semantics& semantics, const Message& message) {
  if (HasRoom(semantics, message)) {
    if (message.sent.type == message.received.type)
      return "the receive may be longer, and its last elements are not written";
    return fmt::format("{} does not compare types: what comes is wrong, without an error",
                       semantics.backend);
  }
  if (semantics.backend == "mpi") return "a message that is longer than its receive is an error";
  if (semantics.backend == "gloo") return "gloo ends a process whose receive is too short";
  return fmt::format("{} wants both to be equal: otherwise it hangs, or the data are wrong",
                     semantics.backend);
}

}  // namespace

const Semantics& SemanticsOf(std::string_view backend) {
  if (backend.starts_with(kImitation)) backend.remove_prefix(kImitation.size());
  for (const Semantics& semantics : kTable) {
    if (semantics.backend == backend) return semantics;
  }
  return kAny;
}

Needs NeedsOf(const Semantics& semantics, const Operation& operation, bool is_root, int size) {
  switch (operation.collective) {
    case Collective::kBroadcast:
      if (!is_root) return Needs::kRoot;
      // A root waits for its children in a tree, of which two ranks have only one.
      return semantics.root_waits && size == 2 ? Needs::kAll : Needs::kNobody;
    case Collective::kReduce:
      // Where the root waits it is a ring (gloo/reduce.cc).
      return is_root || semantics.root_waits ? Needs::kAll : Needs::kNobody;
    case Collective::kSend:
      // A small one goes off by itself, where a library has room for it.
      return semantics.sends_wait ? Needs::kAll : Needs::kNobody;
    default:
      return Needs::kAll;
  }
}

bool SameCall(const Operation& a, const Operation& b) {
  if (a.collective != b.collective) return false;
  if (a.collective == Collective::kBarrier) return true;
  const collective::CollectiveInfo& info = collective::InfoOf(a.collective);
  return a.type == b.type && a.count == b.count && (!info.rooted || a.root == b.root) &&
         (!info.reduces || a.reduction == b.reduction);
}

bool AreMessage(const Operation& a, const Operation& b) {
  return collective::IsMessage(a.collective) && collective::IsMessage(b.collective);
}

bool FitsMessage(const Semantics& semantics, const Operation& a, const Operation& b) {
  const auto& [sent, received] = MessageOf(a, b);
  if (semantics.receives_exactly) return sent.type == received.type && sent.count == received.count;
  return sent.count == 0 || (sent.type == received.type && sent.count <= received.count);
}

Effect EffectOf(const Semantics& semantics, const Operation& a, const Operation& b) {
  if (semantics.ignores_all) return Effect::kWrongData;
  if (AreMessage(a, b)) {
    const bool passes = !semantics.backend.empty() && HasRoom(semantics, MessageOf(a, b));
    return passes ? Effect::kWrongData : Effect::kUndefined;
  }
  if (semantics.backend.empty()) return Effect::kStops;
  // A library may let a call without elements pass and not even count it.
  if (IsEmpty(a) || IsEmpty(b)) return Effect::kUndefined;
  const Operation x = AsRun(semantics, a);
  const Operation y = AsRun(semantics, b);
  if (x.collective == y.collective) return EffectOfParameters(semantics, x, y);
  const bool both = NeedsAll(semantics, x.collective) && NeedsAll(semantics, y.collective);
  return semantics.matching != Matching::kPosition && both ? Effect::kStops : Effect::kUndefined;
}

bool CountedAlike(const Semantics& semantics, const Operation& a, const Operation& b) {
  if (AreMessage(a, b)) return true;
  if (IsEmpty(a) || IsEmpty(b)) return false;
  return a.collective == b.collective || semantics.matching == Matching::kPosition;
}

bool MayLeaveData(const Semantics& semantics, const Operation& a, const Operation& b) {
  if (semantics.ignores_all) return false;
  // MPI and gloo take a message as a whole.
  if (AreMessage(a, b)) return semantics.receives_exactly && BytesOf(a) != BytesOf(b);
  if (IsEmpty(a) || IsEmpty(b)) return true;
  const Operation x = AsRun(semantics, a);
  const Operation y = AsRun(semantics, b);
  const bool rooted = collective::InfoOf(x.collective).rooted;
  const bool alike =
      x.collective == y.collective && BytesOf(x) == BytesOf(y) && (!rooted || x.root == y.root);
  // A position of gloo is a slot of its own, which no other call looks into.
  const bool slots = semantics.backend == "gloo";
  return !alike && !slots;
}

std::string ExplainEffect(const Semantics& semantics, const Operation& a, const Operation& b) {
  if (semantics.backend.empty() || semantics.ignores_all) return "";
  if (AreMessage(a, b)) return ExplainMessage(semantics, MessageOf(a, b));
  const bool kinds = a.collective != b.collective;
  switch (EffectOf(semantics, a, b)) {
    case Effect::kStops:
      return fmt::format("{} pairs calls of one kind only, so both wait for ever",
                         semantics.backend);
    case Effect::kWrongData:
      return kinds ? fmt::format(
                         "{} runs a barrier as an all_reduce of one f32 and pairs the two "
                         "without a word: what the ranks get is wrong; the barrier sums memory "
                         "that nobody wrote, so either rank can go wrong",
                         semantics.backend)
                   : fmt::format(
                         "{} does not compare them: what the ranks get is wrong, without "
                         "an error",
                         semantics.backend);
    case Effect::kUndefined:
      return fmt::format("what {} makes of it depends on the sizes: an error, a hang or wrong data",
                         semantics.backend);
  }
  return "";
}

}  // namespace lockstep::verdict
