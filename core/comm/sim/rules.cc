// The parts of the libraries' rules that fit into one function: where calls meet, how much is
// eager, which tree a broadcast takes. The numbers are the libraries' defaults, and the comments
// say which.
#include "core/comm/sim/rules.h"

#include <string>

#include "fmt/format.h"

namespace lockstep::comm::sim {
namespace {

Status SupportsAll(const collective::Operation&) { return OkStatus(); }

Status SupportsAsGloo(const collective::Operation& operation) {
  if (operation.collective == collective::Collective::kReduceScatter) {
    return Unsupported("sim_gloo: gloo has no reduce_scatter; use all_reduce, or other rules");
  }
  if (operation.blocking == collective::Blocking::kNonblocking) {
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
  return InvalidInput(
      fmt::format("{}: there are no rules '{}'; choose nccl, mpi or gloo", option, text));
}

const Capabilities& SimCapabilities(SimRules rules) {
  static const Capabilities nccl = {.backend = "sim_nccl", .supports = &SupportsAll};
  static const Capabilities mpi = {.backend = "sim_mpi", .supports = &SupportsAll};
  static const Capabilities gloo = {
      .backend = "sim_gloo", .can_abort = true, .supports = &SupportsAsGloo};
  return rules == SimRules::kNccl ? nccl : rules == SimRules::kMpi ? mpi : gloo;
}

std::int64_t EagerBytes(SimRules rules) {
  switch (rules) {
    case SimRules::kNccl:
      return 512 * 1024;  // a step of its buffer: NCCL_BUFFSIZE 4 MiB / NCCL_STEPS 8
    case SimRules::kMpi:
      return 4096;  // btl_vader_eager_limit
    case SimRules::kGloo:
      return -1;
  }
  return -1;
}

SimPlace PlaceOf(SimRules rules, collective::Collective collective, std::uint64_t sequence,
                 std::uint64_t nth) {
  const auto kind = static_cast<std::uint64_t>(collective);
  switch (rules) {
    case SimRules::kNccl:
      return {kAnyKind, sequence};
    case SimRules::kMpi:
      return {kind, nth};
    case SimRules::kGloo:
      return {kind, sequence};
  }
  return {};
}

SimPlace PlaceOfMessage(int from, int to, std::uint64_t nth) {
  return {
      kMessage | (static_cast<std::uint64_t>(from) << 36) | (static_cast<std::uint64_t>(to) << 12),
      nth};
}

collective::Operation AsRun(SimRules rules, const collective::Operation& operation) {
  if (rules != SimRules::kNccl || operation.collective != collective::Collective::kBarrier)
    return operation;
  collective::Operation run = operation;
  run.collective = collective::Collective::kAllReduce;
  run.type = collective::DataType::kF32;
  run.reduction = collective::Reduction::kSum;
  run.count = 1;
  run.root = 0;
  return run;
}

int ParentOf(SimRules rules, int rank, int root, int size) {
  const int relative = (rank - root + size) % size;
  if (relative == 0) return -1;
  const int above = rules == SimRules::kNccl ? relative - 1 : relative & (relative - 1);
  return (above + root) % size;
}

}  // namespace lockstep::comm::sim
