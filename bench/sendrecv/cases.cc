#include "bench/sendrecv/cases.h"

#include <fmt/core.h>

#include "core/collective/collective.h"

namespace lockstep::bench::sendrecv {
namespace {

plan::PlannedCase CaseOf(collective::DataType type, std::int64_t count) {
  plan::PlannedCase planned;
  const std::int64_t bytes = count * collective::SizeOf(type);
  planned.name = fmt::format("send_recv/{}/{}", collective::NameOf(type), bytes);
  planned.operations = {{.collective = collective::Collective::kRecv,
                         .type = type,
                         .blocking = collective::Blocking::kNonblocking,
                         .count = count,
                         .root = -1}};
  planned.send_bytes = planned.recv_bytes = plan::AlignedBytes(bytes);
  return planned;
}

}  // namespace

Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size) {
  LOCKSTEP_ASSIGN_OR_RETURN(plan::Plan plan, plan::PlanWithoutCases(spec, world_size));
  for (const collective::DataType type : axes.types) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::int64_t> counts,
                              plan::CountsOf(axes.sizes, collective::SizeOf(type)));
    for (const std::int64_t count : counts) plan.cases.push_back(CaseOf(type, count));
    LOCKSTEP_RETURN_IF_ERROR(plan::CheckNumberOfCases(plan));
  }
  plan::SizeMemory(plan);
  return plan;
}

}  // namespace lockstep::bench::sendrecv
