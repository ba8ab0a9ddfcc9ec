#include "core/comm/sim/mismatch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/collective/reference.h"
#include "fmt/format.h"

namespace lockstep {
namespace {

using Bytes = std::vector<std::byte>;

// What NCCL's LL protocol sends and waits for at once: ncclLLFifoLine, two words of four bytes.
constexpr std::size_t kLineBytes = 8;
constexpr std::string_view kTruncate = "MPI_ERR_TRUNCATE: message truncated";

std::size_t LinesOf(std::size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

SimFate Done(SimDelivery delivery = {}) {
  return {.kind = SimFate::Kind::kDone, .delivery = std::move(delivery), .message = ""};
}

SimDelivery Whole(Bytes data) {
  const std::size_t bytes = data.size();
  return {std::make_shared<const Bytes>(std::move(data)), 0, bytes};
}

// What a rank computes from its own call and the bytes that came from the others, where a message
// was shorter than it thinks over what its receive buffer held.
Bytes OwnResult(const SimCall& call, const std::vector<std::pair<const std::byte*, std::size_t>>& sent) {
  const std::size_t room = call.SendSize();
  const auto* before = static_cast<const std::byte*>(call.buffers.recv);
  std::vector<Bytes> sends;
  std::vector<const void*> pointers;
  for (const auto& [data, bytes] : sent) {
    Bytes one(room);
    if (before != nullptr) std::copy_n(before, std::min(room, call.RecvSize()), one.begin());
    if (data != nullptr) std::copy_n(data, std::min(room, bytes), one.begin());
    sends.push_back(std::move(one));
  }
  for (const Bytes& one : sends) pointers.push_back(one.data());
  Bytes result(call.RecvSize());
  if (!result.empty()) {
    ReferenceResult(call.run, call.size, pointers, call.rank, result.data());
  }
  return result;
}

Bytes OwnResult(const SimCall& call, const SimCalls& calls) {
  std::vector<std::pair<const std::byte*, std::size_t>> sent;
  for (const SimCall* peer : calls) {
    sent.emplace_back(static_cast<const std::byte*>(peer->buffers.send), peer->SendSize());
  }
  return OwnResult(call, sent);
}

std::size_t LeastOther(const SimCalls& calls, const SimCall& call) {
  std::size_t least = static_cast<std::size_t>(-1);
  for (const SimCall* peer : calls) {
    if (peer != &call) least = std::min(least, peer->BlockSize());
  }
  return least;
}

SimFate FateOfNccl(const SimCalls& calls, const SimCall& call) {
  if (LinesOf(call.BlockSize()) > LinesOf(LeastOther(calls, call))) return {};
  return Done(Whole(OwnResult(call, calls)));
}

}  // namespace

std::vector<SimFate> FatesOfEqual(const SimCalls& calls) {
  const SimCall& first = *calls.front();
  const auto size = calls.size();
  std::vector<SimFate> fates(size, Done());
  const std::size_t block = first.BlockSize();
  if (block == 0 || first.run.collective == Collective::kBarrier) return fates;
  std::vector<const void*> sends;
  sends.reserve(size);
  for (const SimCall* call : calls) sends.push_back(call->buffers.send);
  const bool scatters = first.run.collective == Collective::kReduceScatter;
  const std::size_t each = first.RecvSize();
  Bytes result(scatters ? each * size : each);
  if (scatters) {
    for (std::size_t rank = 0; rank < size; ++rank) {
      ReferenceResult(first.run, first.size, sends, static_cast<int>(rank),
                      result.data() + rank * each);
    }
  } else {
    ReferenceResult(first.run, first.size, sends, first.run.root, result.data());
  }
  const auto shared = std::make_shared<const Bytes>(std::move(result));
  for (std::size_t rank = 0; rank < size; ++rank) {
    const bool receives = first.run.collective != Collective::kReduce ||
                          static_cast<int>(rank) == first.run.root;
    if (receives) fates[rank].delivery = {shared, scatters ? rank * each : 0, each};
  }
  return fates;
}

std::vector<SimFate> FatesOfDifferent(SimRules rules, const SimCalls& calls) {
  std::vector<SimFate> fates;
  for (const SimCall* call : calls) {
    const std::size_t block = call->BlockSize();
    const std::size_t least = LeastOther(calls, *call);
    bool longer_comes = false;
    for (const SimCall* peer : calls) longer_comes = longer_comes || peer->BlockSize() > block;
    if (rules == SimRules::kNccl) {
      fates.push_back(FateOfNccl(calls, *call));
    } else if (block == least && !longer_comes) {
      fates.push_back(Done(Whole(OwnResult(*call, calls))));
    } else {
      fates.push_back({});
    }
  }
  return fates;
}

SimFate FateOfRoot(SimRules rules, const SimCall& root, const SimCalls& calls) {
  std::vector<std::pair<const std::byte*, std::size_t>> sent;
  bool longer = false;
  bool more_lines = false;
  for (const SimCall* peer : calls) {
    const bool held = peer != nullptr && peer->held != nullptr;
    sent.emplace_back(held ? peer->held->data() : nullptr, held ? peer->held->size() : 0);
    longer = longer || sent.back().second > root.SendSize();
    more_lines = more_lines || LinesOf(root.SendSize()) > LinesOf(sent.back().second);
  }
  if (rules == SimRules::kNccl && more_lines) return {};
  SimFate fate = Done(Whole(OwnResult(root, sent)));
  if (rules == SimRules::kMpi && longer) {
    fate.kind = SimFate::Kind::kError;
    fate.message = kTruncate;
  }
  return fate;
}

SimFate FateOfMessage(SimRules rules, const SimCall& call,
                      const std::shared_ptr<const std::vector<std::byte>>& sent) {
  const std::size_t room = call.BlockSize();
  if (sent->size() == room) return Done({sent, 0, room});
  if (rules == SimRules::kNccl && LinesOf(room) > LinesOf(sent->size())) return {};
  Bytes got(room);
  if (call.buffers.recv != nullptr) {
    std::copy_n(static_cast<const std::byte*>(call.buffers.recv), room, got.begin());
  }
  std::copy_n(sent->begin(), std::min(room, sent->size()), got.begin());
  SimFate fate = Done(Whole(std::move(got)));
  if (sent->size() <= room) return fate;
  if (rules == SimRules::kMpi) {
    fate.kind = SimFate::Kind::kError;
    fate.message = kTruncate;
  } else if (rules == SimRules::kGloo) {
    fate.kind = SimFate::Kind::kCrash;
    fate.message = fmt::format("[enforce fail] op.preamble.length <= op.nbytes. {} vs {}",
                               sent->size(), room);
  }
  return fate;
}

}  // namespace lockstep
