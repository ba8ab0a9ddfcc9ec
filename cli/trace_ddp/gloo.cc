// Tracing on gloo: one process a rank, because gloo ends the process in which a message is longer
// than what waits for it. Each writes what it calls before it calls it, and at last how it ended.
#include <fmt/core.h>

#include "cli/trace_ddp/rank.h"

#ifdef LOCKSTEP_HAS_GLOO
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "cli/trace_ddp/rank_processes.h"
#include "core/base/temporary_folder.h"
#include "core/comm/folder_meeting.h"
#include "core/comm/gloo/gloo_communicator.h"
#include "core/control/codec.h"
#include "core/control/records.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"

// Records are read by the program that wrote them.
template <>
inline constexpr bool lockstep::control::kTravelsAsBytes<lockstep::collective::Operation> = true;
template <>
inline constexpr bool lockstep::control::kTravelsAsBytes<lockstep::ddp::Section> = true;
template <>
inline constexpr bool lockstep::control::kTravelsAsBytes<lockstep::journal::Annotation> = true;
#endif

namespace lockstep::cli::trace_ddp {

#ifdef LOCKSTEP_HAS_GLOO
namespace {

constexpr double kConnectSeconds = 60;  // processes that start on a busy machine are no silence

// What a record holds.
enum class Record : char { kSection = 's', kCall = 'c', kEnd = 'e', kEnvironment = 'x' };

class RecordWriter final : public ddp::EngineObserver {
 public:
  explicit RecordWriter(const RankSeat& seat) : seat_(seat) {}

  void OnCollective(const collective::Operation& operation,
                    const journal::Annotation& annotation) override {
    Write(Record::kCall, operation, annotation);
  }
  void OnSection(const ddp::Section& section) override { Write(Record::kSection, section); }
  void OnPhase(journal::Phase) override {}
  void OnEnd(const TracedRank& trace) { Write(Record::kEnd, trace.status, trace.tensors); }
  void OnEnvironment(const Status& status) { Write(Record::kEnvironment, status); }

 private:
  template <typename... Parts>
  void Write(const Parts&... parts) {
    control::Encoder record;
    record(parts...);
    seat_.Write(record.Take());
  }

  const RankSeat& seat_;
};

template <typename T>
T Get(control::Decoder& decoder) {
  T part;
  decoder(part);
  return part;
}

// What gloo said before it ended the process: the last line of it.
std::string LastWords(std::string_view errors) {
  while (errors.ends_with('\n')) errors.remove_suffix(1);
  std::string_view line = errors.substr(errors.rfind('\n') + 1);  // npos + 1 is 0
  constexpr std::string_view kWhat = "  what():  ";
  if (line.starts_with(kWhat)) line.remove_prefix(kWhat.size());
  return std::string(line.empty() ? "it said nothing" : line);
}

// An error is of the environment.
Status ReadRank(const EndedRank& ended, TracedRank& trace) {
  TraceRecorder recorder(trace);
  bool told = false;
  for (control::Decoder decoder(ended.written); !decoder.rest().empty() && decoder.ok();) {
    const auto kind = decoder.Get<Record>();
    if (kind == Record::kSection) recorder.OnSection(Get<ddp::Section>(decoder));
    if (kind == Record::kEnvironment) return Get<Status>(decoder);
    if (kind == Record::kEnd) decoder(trace.status, trace.tensors);
    told = told || kind == Record::kEnd;
    if (kind != Record::kCall) continue;
    const auto operation = Get<collective::Operation>(decoder);
    recorder.OnCollective(operation, Get<journal::Annotation>(decoder));
  }
  if (told) return OkStatus();
  const std::string how = ended.signal == 0 ? fmt::format("exit code {}", ended.exit_code)
                                            : fmt::format("SIG{}", sigabbrev_np(ended.signal));
  trace.status = SystemFailed("crashed: {} in or after {}: {}", how, DescribeLastCall(trace),
                              LastWords(ended.errors));
  return OkStatus();
}

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

// Ranks that finished keep their connections until all are over, as those that linger. One that
// raised leaves at once, which frees those that wait for it.
void RunRank(const GlooWorld& world, int rank, const RankSeat& seat) {
  RecordWriter writer(seat);
  comm::FolderMeeting meeting(world.folder);
  auto connected = comm::gloo::ConnectGloo(rank, world.ranks, meeting, "world", world.options,
                                           Deadline::AfterSeconds(kConnectSeconds));
  if (!connected.ok()) return writer.OnEnvironment(connected.status());
  device::host::HostDevice device;
  device::host::HostKernels kernels;
  TracedRank trace;
  const Status status = TraceRank(world.traced,
                                  {**connected, device, kernels, Sleep, writer,
                                   [&] {
                                     writer.OnEnd(trace);
                                     if (trace.status.ok()) seat.AwaitAll();
                                     _exit(0);  // streams may be stuck in what they work on
                                   }},
                                  trace);
  writer.OnEnvironment(status);
}

// gloo tells a wait that lasted too long like any error; only its words differ.
bool IsTimeout(const Status& status) {
  return status.code() == StatusCode::kDeadlineExceeded ||
         status.message().find("Timed out") != std::string::npos;
}

}  // namespace

Result<TracedRanks> TraceWithGloo(const ddp::TrainingProgram& program, int ranks,
                                  double timeout_seconds) {
  GlooWorld world;
  LOCKSTEP_ASSIGN_OR_RETURN(world.traced, Prepare(program));
  world.traced.program.deadline_seconds = 2 * timeout_seconds;  // gloo's own limit is told first
  world.ranks = ranks;
  world.options.timeout_seconds = timeout_seconds;
  std::error_code none;
  const TemporaryFolder folder(std::filesystem::temp_directory_path(none), "lockstep");
  if (folder.path().empty()) {
    return EnvironmentError("no folder for the ranks to meet in; set TMPDIR to one that exists");
  }
  world.folder = folder.path();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<EndedRank> ended,
      RunRankProcesses(ranks, [&](int rank, const RankSeat& seat) { RunRank(world, rank, seat); }));
  TracedRanks traces(ended.size());
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    TracedRank& trace = traces[rank];
    LOCKSTEP_RETURN_IF_ERROR(ReadRank(ended[rank], trace));
    if (!IsTimeout(trace.status)) continue;
    trace.waits = fmt::format("{} after {} s; last: {}", trace.status.message(), timeout_seconds,
                              DescribeLastCall(trace));
  }
  return traces;
}
#else
Result<TracedRanks> TraceWithGloo(const ddp::TrainingProgram&, int, double) {
  return Unsupported(
      "--backend: gloo is not part of this build; install libgloo-dev and build again, or use sim");
}
#endif

}  // namespace lockstep::cli::trace_ddp
