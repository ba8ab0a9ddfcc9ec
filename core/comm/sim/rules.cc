// The parts of the libraries' rules that fit into one function: where calls meet, how much is
// eager, which tree a broadcast takes. The numbers are the libraries' defaults, and the comments
// say which.
#include "core/comm/sim/rules.h"

#include <algorithm>
#include <bit>

namespace lockstep::comm::sim {
namespace {

Status SupportsAll(const Operation&) { return OkStatus(); }

Status SupportsAsGloo(const Operation& operation) {
  if (operation.collective == Collective::kReduceScatter) {
    return Unsupported("sim_gloo: gloo has no reduce_scatter; use all_reduce, or other rules");
  }
  if (operation.blocking == Blocking::kNonblocking) {
    return Unsupported(
        "sim_gloo: gloo has no non-blocking calls; use blocking operations, on a FIFO stream");
  }
  return OkStatus();
}

// Apart from the kinds of collectives.
constexpr std::uint64_t kAnyKind = 0xff;
constexpr std::uint64_t kMessage = 0x100;

}  // namespace

std::string_view NameOf(SimRules rules) {
  static constexpr std::string_view kNames[] = {"nccl", "mpi", "gloo"};
  return kNames[static_cast<std::size_t>(rules)];
}

Result<SimRules> ParseSimRules(std::string_view option, std::string_view text) {
  for (const SimRules rules : {SimRules::kNccl, SimRules::kMpi, SimRules::kGloo}) {
    if (text == NameOf(rules)) return rules;
  }
  return InvalidInput("{}: there are no rules '{}'; choose nccl, mpi or gloo", option, text);
}

const Capabilities& SimCapabilities(SimRules rules) {
  static const Capabilities nccl = {.backend = "sim_nccl", .supports = &SupportsAll};
  static const Capabilities mpi = {.backend = "sim_mpi", .supports = &SupportsAll};
  static const Capabilities gloo = {
      .backend = "sim_gloo", .can_abort = true, .supports = &SupportsAsGloo};
  return rules == SimRules::kNccl ? nccl : rules == SimRules::kMpi ? mpi : gloo;
}

std::int64_t EagerBytes(SimRules rules) {
  // A step of NCCL's buffer: NCCL_BUFFSIZE 4 MiB / NCCL_STEPS 8. MPI's btl_vader_eager_limit.
  static constexpr std::int64_t kEagerBytes[] = {512 * 1024, 4096, -1};
  return kEagerBytes[static_cast<std::size_t>(rules)];
}

SimPlace PlaceOf(SimRules rules, Collective collective, std::uint64_t sequence, std::uint64_t nth) {
  const auto kind = static_cast<std::uint64_t>(collective);
  if (rules == SimRules::kNccl) return {kAnyKind, sequence};
  return {kind, rules == SimRules::kMpi ? nth : sequence};
}

SimPlace PlaceOfMessage(int from, int to, std::uint64_t nth) {
  return {
      kMessage | (static_cast<std::uint64_t>(from) << 36) | (static_cast<std::uint64_t>(to) << 12),
      nth};
}

Operation AsRun(SimRules rules, const Operation& operation) {
  if (rules != SimRules::kNccl || operation.collective != Collective::kBarrier) return operation;
  Operation run = operation;
  run.collective = Collective::kAllReduce;
  run.type = DataType::kF32;
  run.reduction = Reduction::kSum;
  run.count = 1;
  run.root = 0;
  return run;
}

int ParentOf(SimRules rules, int rank, int root, int size) {
  const int relative = (rank - root + size) % size;
  if (relative == 0) return -1;
  int above = relative & (relative - 1);
  if (rules == SimRules::kNccl) above = relative - 1;
  if (rules == SimRules::kGloo) above = relative - HighestBit(relative);
  return (above + root) % size;
}

double CollectiveNs(const SimNetwork& network, const collective::Operation& operation,
                    int world_size) {
  const auto bytes = static_cast<double>(operation.count * collective::SizeOf(operation.type));
  const double message = network.alpha_ns + bytes * network.beta_ns_per_byte;
  const double ranks = world_size;
  const double rounds = std::bit_width(static_cast<unsigned>(world_size - 1));  // ceil(log2 W)
  switch (operation.collective) {
    case collective::Collective::kAllReduce:
      return std::min(
          2 * (ranks - 1) * (network.alpha_ns + bytes / ranks * network.beta_ns_per_byte),
          rounds * message);
    case collective::Collective::kAllGather:
    case collective::Collective::kReduceScatter:
      return (ranks - 1) * message;
    case collective::Collective::kBroadcast:
    case collective::Collective::kReduce:
      return rounds * message;
    case collective::Collective::kBarrier:
      return rounds * network.alpha_ns;
    case collective::Collective::kSend:
    case collective::Collective::kRecv:
      return message;
  }
  return 0;
}

std::int64_t DrawNs(const SimNetwork& network, double ns, Random& random) {
  return static_cast<std::int64_t>(ns * (1 + network.jitter * random.Uniform()));
}

}  // namespace lockstep::comm::sim
