// The launcher gives each rank an identity that can be used once. A child, or the worker itself,
// uses it to gather one text of every rank over MPI, on order of its agent.
#include "core/control/rendezvous/exchange.h"

#include <optional>

#include "core/control/frames.h"
#include "core/control/rendezvous/mpi_gather.h"

namespace lockstep::control::rendezvous {
namespace {

// The agent has its own deadline and ends this process with it; this is only a bound.
constexpr double kServeSeconds = 24 * 3600;

Result<Frame> AwaitFrame(Channel& channel, Deadline deadline) {
  while (true) {
    if (std::optional<Frame> frame = channel.Take()) return *std::move(frame);
    if (!channel.open()) return EnvironmentError("the agent of this process is gone");
    if (deadline.Passed()) return DeadlineExceeded("the agent gave no order in time");
    channel.MoveOn(deadline);
  }
}

Result<std::vector<std::string>> PartsIn(const Frame& frame) {
  std::optional<GatheredReport> gathered;
  if (frame.is(FrameType::kGathered)) gathered = Decode<GatheredReport>(frame.payload);
  if (!gathered) {
    return EnvironmentError("malformed reply from the exchange of addresses over MPI");
  }
  LOCKSTEP_RETURN_IF_ERROR(gathered->status);
  return std::move(gathered->parts);
}

}  // namespace

Status ServeExchange(Channel& channel, bool keep_mpi) {
  const Deadline deadline = Deadline::AfterSeconds(kServeSeconds);
  LOCKSTEP_ASSIGN_OR_RETURN(const Frame request, AwaitFrame(channel, deadline));
  const std::optional<GatherOrder> order = Decode<GatherOrder>(request.payload);
  LOCKSTEP_CHECK(order.has_value(), "expected the order to gather");
  const Result<std::vector<std::string>> parts =
      MpiGather(order->part, keep_mpi, order->on_threads);
  GatheredReport report;
  report.status = parts.status();
  if (parts.ok()) report.parts = *parts;
  channel.Send(report);
  if (!channel.FlushUntil(deadline)) return EnvironmentError("the agent of this process is gone");
  if (!parts.ok()) return parts.status();
  if (!keep_mpi) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const Frame proceed, AwaitFrame(channel, deadline));
  LOCKSTEP_CHECK(proceed.is(FrameType::kProceed), "expected the order to go on");
  return OkStatus();
}

Result<std::vector<std::string>> AskForExchange(Channel& channel, const std::string& part,
                                                bool mpi_on_threads, Signals& signals,
                                                Deadline deadline) {
  channel.Send(GatherOrder{mpi_on_threads, part});
  while (true) {
    if (const std::optional<Frame> frame = channel.Take()) return PartsIn(*frame);
    if (!channel.open()) {
      return EnvironmentError(
          "the process that should exchange the agents' addresses over MPI "
          "died; see its output above, and try the launcher with a plain MPI "
          "program (under srun: --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH)");
    }
    if (deadline.Passed()) {
      return EnvironmentError(
          "the agents could not exchange their addresses over MPI in time; "
          "try the launcher with a plain MPI program");
    }
    channel.MoveOn(deadline, signals.fd());
    LOCKSTEP_RETURN_IF_ERROR(signals.TakeBeforeMeeting());
  }
}

}  // namespace lockstep::control::rendezvous
