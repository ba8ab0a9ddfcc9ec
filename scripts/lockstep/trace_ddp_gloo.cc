// Tracing on gloo: one thread a rank.
#include <fmt/core.h>

#include "scripts/lockstep/trace_ddp_rank.h"

#ifdef LOCKSTEP_HAS_GLOO
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "core/comm/gloo/gloo_communicator.h"
#include "core/comm/local_meeting.h"
#include "core/device/host/host_device.h"
#endif

namespace lockstep {

#ifdef LOCKSTEP_HAS_GLOO
namespace {

Status Sleep(std::int64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  return OkStatus();
}

// Of one rank; the communicator goes when all ranks are done, as processes of a launch leave.
struct RankThread {
  std::unique_ptr<Communicator> communicator = nullptr;
  Status environment = OkStatus();
};

void RunRank(const TracedProgram& traced, int rank, int ranks, Meeting& meeting,
             const GlooOptions& options, RankThread& self, TracedRank& trace) {
  auto connected = ConnectGloo(rank, ranks, meeting, "world", options,
                               Deadline::AfterSeconds(options.timeout_seconds));
  if (!connected.ok()) {
    self.environment = connected.status();
    return;
  }
  self.communicator = std::move(connected).value();
  HostDevice device;
  self.environment = TraceRank(traced, {*self.communicator, device, Sleep}, trace);
  // A rank that is done with an error frees those that wait for it, as its process's end would.
  if (!trace.status.ok()) self.communicator->Abort();
}

// gloo tells a wait that lasted too long like any error; only its words differ.
bool IsTimeout(const Status& status) {
  return status.code() == StatusCode::kDeadlineExceeded ||
         status.message().find("Timed out") != std::string::npos;
}

}  // namespace

Result<TracedRanks> TraceWithGloo(const TrainingProgram& program, int ranks,
                                  double timeout_seconds) {
  LOCKSTEP_ASSIGN_OR_RETURN(TracedProgram traced, Prepare(program));
  traced.program.deadline_seconds = 2 * timeout_seconds;  // gloo's own limit is told first
  GlooOptions options;
  options.timeout_seconds = timeout_seconds;
  TracedRanks traces(static_cast<std::size_t>(ranks));
  LocalMeeting meeting;
  {
    std::vector<RankThread> selves(traces.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      threads.emplace_back(
          [&, rank, i] { RunRank(traced, rank, ranks, meeting, options, selves[i], traces[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const RankThread& self : selves) LOCKSTEP_RETURN_IF_ERROR(self.environment);
  }
  for (TracedRank& trace : traces) {
    if (!IsTimeout(trace.status)) continue;
    trace.waits = fmt::format("{} after {} s; last: {}", trace.status.message(), timeout_seconds,
                              DescribeLastCall(trace));
  }
  return traces;
}
#else
Result<TracedRanks> TraceWithGloo(const TrainingProgram&, int, double) {
  return Unsupported(
      "--backend: gloo is not part of this build; install libgloo-dev and build again, or use sim");
}
#endif

}  // namespace lockstep
