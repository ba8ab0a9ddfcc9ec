// Tracing on core/comm/sim.
#include <fmt/core.h>

#include "cli/trace_ddp/rank.h"
#include "core/comm/sim/sim_kernels.h"
#include "core/comm/sim/sim_world.h"

namespace lockstep::cli::trace_ddp {
namespace {

std::string DescribeWait(const comm::sim::RankEnd& end, const TracedRank& trace) {
  if (!end.waiting) return fmt::format("{}; last: {}", end.where, DescribeLastCall(trace));
  return fmt::format("collective {}, {}", end.waiting->sequence,
                     collective::Describe(end.waiting->operation));
}

}  // namespace

Result<TracedRanks> TraceWithSim(const ddp::TrainingProgram& program, int ranks,
                                 comm::sim::SimRules rules) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TracedProgram traced, Prepare(program));
  TracedRanks traces(static_cast<std::size_t>(ranks));
  std::vector<Status> environment(traces.size());
  comm::sim::SimWorld world({.ranks = ranks, .rules = rules});
  const comm::sim::SimReport report = world.Run([&](comm::sim::RankContext& context) -> Status {
    const auto rank = static_cast<std::size_t>(context.rank());
    const auto sleep = [&](std::int64_t ns) { return context.Sleep(ns), OkStatus(); };
    {
      const std::unique_ptr<comm::Communicator> communicator = context.Connect();
      TraceRecorder recorder(traces[rank]);
      comm::sim::SimKernels kernels(context);
      const TraceHost host = {*communicator, context.device(), kernels, sleep, recorder};
      environment[rank] = TraceRank(traced, host, traces[rank]);
    }
    LOCKSTEP_RETURN_IF_ERROR(environment[rank]);
    LOCKSTEP_RETURN_IF_ERROR(traces[rank].status);
    if (traced.program.after_finish == ddp::AfterFinish::kLinger) context.Linger();
    return OkStatus();
  });
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    LOCKSTEP_RETURN_IF_ERROR(environment[rank]);
    const comm::sim::RankEnd& end = report.ranks[rank];
    TracedRank& trace = traces[rank];
    if (end.state == comm::sim::RankState::kHung) {
      trace.waits = DescribeWait(end, trace);
    } else if (end.state != comm::sim::RankState::kFinished && trace.status.ok()) {
      trace.status = SystemFailed("{}: {}", comm::sim::NameOf(end.state), end.message);
    }
  }
  return traces;
}

}  // namespace lockstep::cli::trace_ddp
