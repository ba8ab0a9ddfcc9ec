// Tracing on core/comm/sim, where time is virtual. So a rank that waits when nothing can happen any
// more waits for ever, however long the others load or compute.
#include <fmt/core.h>

#include "cli/trace_ddp/rank.h"
#include "core/comm/sim/sim_kernels.h"
#include "core/comm/sim/sim_world.h"

namespace lockstep::cli::trace_ddp {
namespace {

// More than any load takes, so that what waits so long in virtual time waits for ever. DDP's own
// deadline comes later.
constexpr std::int64_t kSilenceSeconds = 100'000'000;
constexpr double kDeadlineSeconds = 5e9;

std::string DescribeWait(const comm::sim::RankEnd& end, const TracedRank& trace) {
  if (!end.waiting) return fmt::format("{}; last: {}", end.where, DescribeLastCall(trace));
  return fmt::format("collective {}, {}", end.waiting->sequence,
                     collective::Describe(end.waiting->operation));
}

// `complete`: the simulation went on until nothing could happen any more.
void ConcludeSim(const comm::sim::RankEnd& end, bool complete, TracedRank& trace) {
  if (end.state == comm::sim::RankState::kHung) {
    trace.end = complete ? TraceEnd::kHung : TraceEnd::kNotEnded;
    trace.message = DescribeWait(end, trace);
  } else if (end.state != comm::sim::RankState::kFinished) {
    trace.end = TraceEnd::kFailed;
    trace.message = trace.status.ok()
                        ? fmt::format("{}: {}", comm::sim::NameOf(end.state), end.message)
                        : trace.status.message();
  }
}

}  // namespace

Result<TracedRanks> TraceWithSim(const ddp::TrainingProgram& program, int ranks,
                                 comm::sim::SimRules rules) {
  LOCKSTEP_ASSIGN_OR_RETURN(TracedProgram traced, Prepare(program));
  traced.program.deadline_seconds = kDeadlineSeconds;
  TracedRanks traces(static_cast<std::size_t>(ranks));
  std::vector<Status> environment(traces.size());
  comm::sim::SimWorld world(
      {.ranks = ranks, .rules = rules, .silence_ns = kSilenceSeconds * 1'000'000'000});
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
    ConcludeSim(report.ranks[rank], report.complete, traces[rank]);
  }
  return traces;
}

}  // namespace lockstep::cli::trace_ddp
