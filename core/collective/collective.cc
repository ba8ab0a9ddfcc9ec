// The table of collectives, and the formulas that follow from a row of it: bytes a rank sends and
// receives, and bus bandwidth. The factors are those of nccl-tests (doc/PERFORMANCE.md). Rows stand
// in the order of the enumeration, which InfoOf relies on.
#include "core/collective/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/check.h"

namespace lockstep::collective {
namespace {

// Who it is, its name, whether it reduces, whether it has a root.
constexpr std::array<CollectiveInfo, 8> kCollectives = {
    {{Collective::kAllReduce, "all_reduce", true, false},
     {Collective::kBroadcast, "broadcast", false, true},
     {Collective::kBarrier, "barrier", false, false},
     {Collective::kAllGather, "all_gather", false, false},
     {Collective::kReduceScatter, "reduce_scatter", true, false},
     {Collective::kReduce, "reduce", true, true},
     {Collective::kSend, "send", false, true},
     {Collective::kRecv, "recv", false, true}}};

constexpr std::array<std::string_view, 4> kReductionNames = {"sum", "prod", "min", "max"};

std::int64_t BlockBytes(const Operation& operation) {
  return operation.count * SizeOf(operation.type);
}

}  // namespace

const CollectiveInfo& InfoOf(Collective collective) {
  const auto index = static_cast<std::size_t>(collective);
  LOCKSTEP_CHECK(index < kCollectives.size(), "a Collective that is not in the table");
  return kCollectives[index];
}

std::string_view NameOf(Collective collective) { return InfoOf(collective).name; }

std::string_view NameOf(Reduction reduction) {
  const auto index = static_cast<std::size_t>(reduction);
  LOCKSTEP_CHECK(index < kReductionNames.size(), "a Reduction that is not in the table");
  return kReductionNames[index];
}

Result<Collective> ParseCollective(std::string_view option, std::string_view text) {
  std::string names;
  for (const CollectiveInfo& row : kCollectives) {
    if (text == row.name) return row.collective;
    names += fmt::format(" {}", row.name);
  }
  return InvalidInput("{}: '{}' is not a collective; choose one of:{}", option, text, names);
}

Result<Reduction> ParseReduction(std::string_view option, std::string_view text) {
  const auto found = std::ranges::find(kReductionNames, text);
  if (found != kReductionNames.end()) {
    return static_cast<Reduction>(found - kReductionNames.begin());
  }
  return InvalidInput("{}: '{}' is not a reduction; choose one of: {}", option, text,
                      fmt::join(kReductionNames, " "));
}

std::int64_t SendBytes(const Operation& operation, int world_size) {
  switch (operation.collective) {
    case Collective::kBarrier:
    case Collective::kRecv:
      return 0;
    case Collective::kReduceScatter:
      return BlockBytes(operation) * world_size;
    default:
      return BlockBytes(operation);
  }
}

std::int64_t RecvBytes(const Operation& operation, int world_size) {
  switch (operation.collective) {
    case Collective::kBarrier:
    case Collective::kSend:
      return 0;
    case Collective::kAllGather:
      return BlockBytes(operation) * world_size;
    default:
      return BlockBytes(operation);
  }
}

std::int64_t MessageBytes(const Operation& operation, int world_size) {
  return std::max(SendBytes(operation, world_size), RecvBytes(operation, world_size));
}

double BusBandwidthFactor(Collective collective, int world_size) {
  LOCKSTEP_CHECK(world_size > 0, "a communicator has at least one rank");
  const double others = static_cast<double>(world_size - 1) / world_size;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * others;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return others;
    default:
      return 1;
  }
}

std::string Describe(const Operation& operation) {
  const CollectiveInfo& info = InfoOf(operation.collective);
  if (operation.collective == Collective::kBarrier) return std::string(info.name);
  std::string text = fmt::format("{} {} x {}", info.name, NameOf(operation.type), operation.count);
  if (info.reduces) text += fmt::format(" {}", NameOf(operation.reduction));
  const bool message = IsMessage(operation.collective);
  if (info.rooted) text += fmt::format(" {} {}", message ? "peer" : "root", operation.root);
  return text;
}

std::string DescribeIn(std::int64_t iteration, const Operation& operation) {
  return fmt::format("{} of iteration {}", Describe(operation), iteration);
}

}  // namespace lockstep::collective
