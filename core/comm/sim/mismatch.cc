// Fates of calls that met and differ, a function for each library and algorithm. The rules were
// observed on real libraries or read from their source, which the comments name. Data is computed
// too, because NCCL goes on with wrong results.
#include "core/comm/sim/mismatch.h"

#include <algorithm>
#include <utility>

#include "core/collective/reference.h"

namespace lockstep::comm::sim {
namespace {

using Bytes = std::vector<std::byte>;
using SentBytes = std::vector<std::pair<const std::byte*, std::size_t>>;

// What NCCL's LL protocol sends and waits for at once: ncclLLFifoLine, two words of four bytes.
constexpr std::size_t kLineBytes = 8;
// Up to here Open MPI reduces by recursive doubling (coll_tuned_decision_fixed.c).
constexpr std::size_t kSmallBytes = 10'000;

std::size_t LinesOf(std::size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

SimFate Done(SimDelivery delivery = {}) {
  return {.kind = SimFate::Kind::kDone, .delivery = std::move(delivery)};
}

// What a rank computes with its own parameters from the bytes of all; where they are fewer than it
// thinks, the rest is what its receive buffer held.
Bytes OwnResult(const SimCall& call, const SentBytes& sent) {
  std::vector<Bytes> sends;
  std::vector<const void*> pointers;
  for (const auto& [data, bytes] : sent) {
    Bytes one = HeldBefore(call, call.SendSize());
    if (data != nullptr) std::copy_n(data, std::min(one.size(), bytes), one.begin());
    sends.push_back(std::move(one));
  }
  for (const Bytes& one : sends) pointers.push_back(one.data());
  Bytes result(call.RecvSize());
  if (!result.empty()) {
    collective::ReferenceResult(call.run, call.size, pointers, call.rank, result.data());
  }
  return result;
}

Bytes OwnResult(const SimCall& call, const SimCalls& calls) {
  SentBytes sent;
  for (const SimCall* peer : calls) {
    sent.emplace_back(static_cast<const std::byte*>(peer->buffers.send), peer->SendSize());
  }
  return OwnResult(call, sent);
}

std::size_t LeastBlock(const SimCalls& calls) {
  return (*std::ranges::min_element(calls, {}, &SimCall::BlockSize))->BlockSize();
}

SimFate FateOfNccl(const SimCalls& calls, const SimCall& call) {
  if (LinesOf(call.BlockSize()) > LinesOf(LeastBlock(calls))) return {};
  return Done(Whole(OwnResult(call, calls)));
}

// In a ring of Open MPI: who gets a longer block than its own from the rank before it fails, and
// everyone else then waits for someone who failed, or waits; but of an all_gather and the like two
// ranks exchange only once, and who has more goes on. Observed with 2 and 3 ranks.
SimFate FateOfMpiRing(const SimCalls& calls, const SimCall& call) {
  const SimCall& before = *calls[static_cast<std::size_t>((call.rank + call.size - 1) % call.size)];
  if (before.BlockSize() > call.BlockSize()) return Truncated(Whole(OwnResult(call, calls)));
  const bool once = call.size == 2 && call.run.collective != Collective::kAllReduce;
  return once ? Done(Whole(OwnResult(call, calls))) : SimFate{};
}

// Every block of gloo's all_gather goes around the ring; someone gets a longer one than its own
// from the rank before it, and crashes.
SimFate FateOfGlooGather(const SimCalls& calls, const SimCall& call) {
  const SimCall& before = *calls[static_cast<std::size_t>((call.rank + call.size - 1) % call.size)];
  if (before.BlockSize() > call.BlockSize()) return Overrun(before.BlockSize(), call.BlockSize());
  return {};
}

bool SameBytes(const SimCalls& calls) {
  return std::ranges::all_of(
      calls, [&](const SimCall* call) { return call->BlockSize() == calls.front()->BlockSize(); });
}

}  // namespace

std::vector<SimFate> FatesOfEqual(const SimCalls& calls) {
  const SimCall& first = *calls.front();
  const auto size = calls.size();
  std::vector<SimFate> fates(size, Done());
  if (first.BlockSize() == 0 || first.run.collective == Collective::kBarrier) return fates;
  std::vector<const void*> sends;
  sends.reserve(size);
  for (const SimCall* call : calls) sends.push_back(call->buffers.send);
  const bool scatters = first.run.collective == Collective::kReduceScatter;
  const std::size_t each = first.RecvSize();
  Bytes result(scatters ? each * size : each);
  if (scatters) {
    for (std::size_t rank = 0; rank < size; ++rank) {
      collective::ReferenceResult(first.run, first.size, sends, static_cast<int>(rank),
                                  result.data() + rank * each);
    }
  } else {
    collective::ReferenceResult(first.run, first.size, sends, first.run.root, result.data());
  }
  const auto shared = std::make_shared<const Bytes>(std::move(result));
  for (std::size_t rank = 0; rank < size; ++rank) {
    const bool receives =
        first.run.collective != Collective::kReduce || static_cast<int>(rank) == first.run.root;
    if (receives) fates[rank].delivery = {shared, scatters ? rank * each : 0, each};
  }
  return fates;
}

std::vector<SimFate> FatesOfDifferent(SimRules rules, const SimCalls& calls) {
  const Collective collective = calls.front()->run.collective;
  const bool reduces = collective == Collective::kAllReduce || collective == Collective::kReduce;
  if (rules == SimRules::kGloo && reduces) return FatesOfGlooRing(calls);
  if (rules == SimRules::kMpi && reduces && LeastBlock(calls) <= kSmallBytes) {
    return FatesOfRecursiveDoubling(calls, EagerBytes(rules));
  }
  std::vector<SimFate> fates;
  for (const SimCall* call : calls) {
    if (SameBytes(calls)) {
      fates.push_back(Done(Whole(OwnResult(*call, calls))));
    } else if (rules == SimRules::kNccl) {
      fates.push_back(FateOfNccl(calls, *call));
    } else if (rules == SimRules::kMpi) {
      fates.push_back(FateOfMpiRing(calls, *call));
    } else {
      fates.push_back(FateOfGlooGather(calls, *call));
    }
  }
  return fates;
}

SimFate FateOfRoot(SimRules rules, const SimCall& root, const SimCalls& calls) {
  SentBytes sent;
  bool longer = false;
  bool fewer_lines = false;
  for (const SimCall* peer : calls) {
    const bool held = peer != nullptr && peer->held != nullptr;
    sent.emplace_back(held ? peer->held->data() : nullptr, held ? peer->held->size() : 0);
    longer = longer || sent.back().second > root.SendSize();
    fewer_lines = fewer_lines || LinesOf(sent.back().second) < LinesOf(root.SendSize());
  }
  if (rules == SimRules::kNccl && fewer_lines) return {};
  SimDelivery result = Whole(OwnResult(root, sent));
  return rules == SimRules::kMpi && longer ? Truncated(std::move(result)) : Done(std::move(result));
}

SimFate FateOfMessage(SimRules rules, const SimCall& call,
                      const std::shared_ptr<const std::vector<std::byte>>& sent) {
  const std::size_t room = call.BlockSize();
  if (sent->size() == room) return Done({sent, 0, room});
  if (rules == SimRules::kNccl && LinesOf(room) > LinesOf(sent->size())) return {};
  if (rules == SimRules::kGloo && sent->size() > room) return Overrun(sent->size(), room);
  Bytes got = HeldBefore(call, room);
  std::copy_n(sent->begin(), std::min(room, sent->size()), got.begin());
  if (rules == SimRules::kMpi && sent->size() > room) return Truncated(Whole(std::move(got)));
  return Done(Whole(std::move(got)));
}

std::size_t Wires::Send(int from, int to, const std::byte* data, std::size_t bytes) {
  parts_.emplace_back();
  const std::size_t handle = parts_.size() - 1;
  Wire& wire = wires_[{from, to}];
  wire.sends.push_back({handle, {data, data + bytes}, nullptr, bytes});
  Match(wire);
  return handle;
}

std::size_t Wires::Receive(int at, int from, std::byte* room, std::size_t bytes) {
  parts_.emplace_back();
  const std::size_t handle = parts_.size() - 1;
  Wire& wire = wires_[{from, at}];
  wire.receives.push_back({handle, {}, room, bytes});
  Match(wire);
  return handle;
}

void Wires::Match(Wire& wire) {
  while (!wire.sends.empty() && !wire.receives.empty()) {
    const Waiting& send = wire.sends.front();
    const Waiting& receive = wire.receives.front();
    std::copy_n(send.data.begin(), std::min(send.bytes, receive.bytes), receive.room);
    parts_[send.handle] = parts_[receive.handle] = {true, send.bytes};
    wire.sends.pop_front();
    wire.receives.pop_front();
  }
}

}  // namespace lockstep::comm::sim
