// Tracing on gloo: one process a rank, because gloo ends the process in which a message is longer
// than what waits for it. Each writes what it does before it does it, and at last how it ended.
#include "cli/trace_ddp/rank.h"

#ifdef LOCKSTEP_HAS_GLOO
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cli/trace_ddp/rank_history.h"
#include "cli/trace_ddp/rank_processes.h"
#include "core/base/temporary_folder.h"
#include "core/comm/folder_meeting.h"
#include "core/comm/forwarding_communicator.h"
#include "core/comm/gloo/gloo_communicator.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#endif

namespace lockstep::cli::trace_ddp {

#ifdef LOCKSTEP_HAS_GLOO
namespace {

constexpr double kConnectSeconds = 60;  // processes that start on a busy machine are no silence

// Says when the library is at work.
class ObservedCommunicator final : public comm::ForwardingCommunicator {
 public:
  ObservedCommunicator(std::unique_ptr<Communicator> inner, std::unique_ptr<comm::Stream> at_once,
                       HistoryWriter& history)
      : ForwardingCommunicator(std::move(inner)), at_once_(std::move(at_once)), history_(history) {}

  Status Enqueue(const comm::Operation& operation, const comm::Buffers& buffers,
                 comm::Stream& stream) override {
    stream.Enqueue([this, operation, buffers] {
      history_.OnBegin();
      Status status = inner().Enqueue(operation, buffers, *at_once_);
      history_.OnDone(status.ok());
      return status;
    });
    return stream.inline_execution() ? stream.status() : OkStatus();
  }

 private:
  std::unique_ptr<comm::Stream> at_once_;
  HistoryWriter& history_;
};

Status Sleep(std::int64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  return OkStatus();
}

struct GlooWorld {
  TracedProgram traced;
  int ranks = 0;
  comm::gloo::GlooOptions options = {};
  std::filesystem::path folder = {};  // where the ranks meet
};

// Where memory lacks there is none to say so in.
struct LastRecord {
  const RankSeat* seat = nullptr;
  std::string bytes = {};
};
LastRecord no_memory;

// Whichever thread lacks memory, of ours or of gloo. An exception would take apart what other
// threads work on, or end gloo's own.
void EndWithoutMemory() {
  no_memory.seat->Write(no_memory.bytes);
  _exit(0);
}

Status Run(const GlooWorld& world, int rank, const RankSeat& seat, HistoryWriter& history) {
  TracedRank trace;
  const auto end = [&] {
    history.OnEnd(trace);
    if (trace.status.ok()) seat.Stay();
    _exit(0);  // streams may be stuck in what they work on
  };
  comm::FolderMeeting meeting(world.folder);
  auto connected = comm::gloo::ConnectGloo(rank, world.ranks, meeting, "world", world.options,
                                           Deadline::AfterSeconds(kConnectSeconds));
  if (connected.status().code() == StatusCode::kEnvironment) return connected.status();
  if (!connected.ok()) trace.status = connected.status();
  if (!connected.ok()) end();
  device::host::HostDevice device;
  device::host::HostKernels kernels;
  ObservedCommunicator communicator(std::move(connected).value(), device.NewInlineStream(),
                                    history);
  return TraceRank(world.traced,
                   {communicator, device, kernels, Sleep, history,
                    [&](const Status& environment) {
                      if (environment.ok()) end();
                      history.OnEnvironment(environment);
                      _exit(0);
                    }},
                   trace);
}

// Ranks that finished keep their connections until all are over, as those that linger. One that
// raised leaves at once, which frees those that wait for it.
void RunRank(const GlooWorld& world, int rank, const RankSeat& seat) {
  no_memory = {&seat, EnvironmentRecord(EnvironmentError(kNoMemory))};
  std::set_new_handler(EndWithoutMemory);
  HistoryWriter history(seat);
  try {
    history.OnEnvironment(Run(world, rank, seat, history));
  } catch (const std::system_error& error) {  // of a thread, or of a file
    history.OnEnvironment(
        EnvironmentError("{}; raise ulimit -u and ulimit -v, or trace fewer ranks", error.what()));
  }
}

// How long a rank that is well may do nothing new: connecting, a call, and what the program asks
// for, with a processor for all ranks.
double PatienceSeconds(const ddp::TrainingProgram& program, int ranks, double timeout_seconds) {
  constexpr double kMostOfExponential = 40;
  double longest_us = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const ddp::LoadTime& load = program.load_us.At(rank);
    const bool open = load.kind == ddp::LoadTime::Kind::kExponential;
    const double load_us = load.mean_us * (open ? kMostOfExponential : 1) + load.spread_us;
    const std::int64_t passes = program.evaluation ? program.evaluation->inputs.At(rank) : 1;
    const double compute_us =
        program.compute_us.At(rank) * static_cast<double>(std::max<std::int64_t>(passes, 1));
    longest_us = std::max(longest_us, load_us + compute_us * ranks);
  }
  return kConnectSeconds + 2 * (timeout_seconds + longest_us * 1e-6);
}

}  // namespace

Result<TracedRanks> TraceWithGloo(const ddp::TrainingProgram& program, int ranks,
                                  double timeout_seconds) {
  GlooWorld world;
  LOCKSTEP_ASSIGN_OR_RETURN(world.traced, Prepare(program));
  world.ranks = ranks;
  world.options.timeout_seconds = timeout_seconds;
  std::error_code none;
  const TemporaryFolder folder(std::filesystem::temp_directory_path(none), "lockstep");
  if (folder.path().empty()) {
    return EnvironmentError("no folder for the ranks to meet in; set TMPDIR to one that exists");
  }
  world.folder = folder.path();
  const Limits limits = {timeout_seconds, kConnectSeconds,
                         PatienceSeconds(program, ranks, timeout_seconds)};
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<EndedRank> ended,
      RunRankProcesses(ranks, limits.patience_seconds,
                       [&](int rank, const RankSeat& seat) { RunRank(world, rank, seat); }));
  std::vector<RankHistory> histories;
  for (EndedRank& rank : ended) histories.push_back(ReadHistory(std::move(rank)));
  return Conclude(histories, limits);
}
#else
Result<TracedRanks> TraceWithGloo(const ddp::TrainingProgram&, int, double) {
  return Unsupported(
      "--backend: gloo is not part of this build; install libgloo-dev and build again, or use sim");
}
#endif

}  // namespace lockstep::cli::trace_ddp
