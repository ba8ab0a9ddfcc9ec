#include "core/control/rendezvous/exchange.h"

#include <fmt/core.h>
#include <poll.h>

#include <optional>

#include "core/control/protocol.h"
#include "core/control/rendezvous/mpi_gather.h"

namespace lockstep::control::rendezvous {
namespace {

constexpr std::uint32_t Number(FrameType type) { return static_cast<std::uint32_t>(type); }
// The agent has its own deadline and ends this process with it; this is only a bound.
constexpr double kServeSeconds = 24 * 3600;

Result<Frame> AwaitFrame(Channel& channel, Deadline deadline) {
  while (true) {
    if (std::optional<Frame> frame = channel.Take()) return *std::move(frame);
    if (!channel.open()) return EnvironmentError("the agent of this process is gone");
    if (deadline.Passed()) return DeadlineExceeded("the agent gave no order in time");
    pollfd item{channel.fd(), POLLIN, 0};
    poll(&item, 1, deadline.RemainingMs());
    channel.Fill();
  }
}

std::string EncodeGathered(const Result<std::vector<std::string>>& parts) {
  Encoder encoder;
  Put(encoder, parts.ok() ? OkStatus() : parts.status());
  if (parts.ok()) {
    for (const std::string& part : *parts) encoder.Text(part);
  }
  return encoder.Take();
}

Result<std::vector<std::string>> DecodeGathered(const Frame& frame) {
  Decoder decoder(frame.payload);
  Status status;
  if (frame.type != Number(FrameType::kGathered) || !Get(decoder, status)) {
    return EnvironmentError("malformed reply from the exchange of addresses over MPI");
  }
  if (!status.ok()) return status;
  std::vector<std::string> parts;
  while (decoder.ok() && !decoder.rest().empty()) parts.push_back(decoder.Text());
  return parts;
}

}  // namespace

Status ServeExchange(Channel& channel, bool keep_mpi) {
  const Deadline deadline = Deadline::AfterSeconds(kServeSeconds);
  LOCKSTEP_ASSIGN_OR_RETURN(const Frame request, AwaitFrame(channel, deadline));
  Decoder decoder(request.payload);
  const bool on_threads = decoder.Get<std::uint8_t>() != 0;
  const Result<std::vector<std::string>> parts =
      MpiGather(std::string(decoder.rest()), keep_mpi, on_threads);
  channel.Send(Number(FrameType::kGathered), EncodeGathered(parts));
  if (!channel.FlushUntil(deadline)) return EnvironmentError("the agent of this process is gone");
  if (!parts.ok()) return parts.status();
  if (!keep_mpi) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const Frame proceed, AwaitFrame(channel, deadline));
  LOCKSTEP_CHECK(proceed.type == Number(FrameType::kProceed), "expected the order to go on");
  return OkStatus();
}

Result<std::vector<std::string>> AskForExchange(Channel& channel, const std::string& part,
                                                bool mpi_on_threads, Signals& signals,
                                                Deadline deadline) {
  channel.Send(Number(FrameType::kGather),
               Encoder().Put(static_cast<std::uint8_t>(mpi_on_threads)).Raw(part).Take());
  while (true) {
    if (const std::optional<Frame> frame = channel.Take()) return DecodeGathered(*frame);
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
    pollfd items[] = {{channel.fd(), channel.poll_events(), 0}, {signals.fd(), POLLIN, 0}};
    poll(items, 2, deadline.RemainingMs());
    if (const int number = signals.Take().end) {
      return Terminated(fmt::format("ended by signal {} before the agents met", number));
    }
    channel.Flush();
    channel.Fill();
  }
}

}  // namespace lockstep::control::rendezvous
