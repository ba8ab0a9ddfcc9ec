// Tracing on gloo: one process a rank, because gloo ends the process in which a message is longer
// than what waits for it. Each writes what it calls before it calls it, and at last how it ended.
#include <fmt/core.h>

#include "cli/trace_ddp/rank.h"

#ifdef LOCKSTEP_HAS_GLOO
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>

#include "cli/trace_ddp/rank_processes.h"
#include "core/base/temporary_folder.h"
#include "core/comm/folder_meeting.h"
#include "core/comm/gloo/gloo_communicator.h"
#include "core/control/codec.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#endif

namespace lockstep::cli::trace_ddp {

#ifdef LOCKSTEP_HAS_GLOO
namespace {

// What a record holds; both ends are this program.
enum class Record : char { kSection = 's', kCall = 'c', kEnd = 'e', kEnvironment = 'x' };

template <typename T>
control::Encoder& PutBytes(control::Encoder& encoder, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return encoder.Raw({reinterpret_cast<const char*>(&value), sizeof(value)});
}

template <typename T>
T GetBytes(control::Decoder& decoder) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  const std::string_view bytes = decoder.Raw(sizeof(value));
  if (decoder.ok()) std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

class RecordWriter final : public ddp::EngineObserver {
 public:
  explicit RecordWriter(const RankSeat& seat) : seat_(seat) {}

  void OnCollective(const collective::Operation& operation,
                    const journal::Annotation& annotation) override {
    control::Encoder record = Begin(Record::kCall);
    PutBytes(PutBytes(record, operation), annotation);
    seat_.Write(record.Take());
  }
  void OnSection(const ddp::Section& section) override {
    control::Encoder record = Begin(Record::kSection);
    PutBytes(record, section);
    seat_.Write(record.Take());
  }
  void OnPhase(journal::Phase) override {}

  void OnEnd(const TracedRank& trace) {
    control::Encoder record = Begin(Record::kEnd);
    PutStatus(record, trace.status);
    record.Put(static_cast<std::uint32_t>(trace.tensors.size()));
    for (const FinalTensor& tensor : trace.tensors) {
      record.Text(tensor.name);
      PutValues(record, tensor.values);
      record.Put(tensor.gradient.has_value());
      if (tensor.gradient) PutValues(record, *tensor.gradient);
    }
    seat_.Write(record.Take());
  }
  void OnEnvironment(const Status& status) {
    control::Encoder record = Begin(Record::kEnvironment);
    PutStatus(record, status);
    seat_.Write(record.Take());
  }

 private:
  static control::Encoder Begin(Record kind) {
    control::Encoder record;
    record.Put(static_cast<char>(kind));
    return record;
  }
  static void PutStatus(control::Encoder& record, const Status& status) {
    record.Put(static_cast<int>(status.code())).Text(status.message());
  }
  static void PutValues(control::Encoder& record, const std::vector<double>& values) {
    record.Put(static_cast<std::uint32_t>(values.size()));
    for (const double value : values) record.Put(value);
  }

  const RankSeat& seat_;
};

Status GetStatus(control::Decoder& decoder) {
  const auto code = static_cast<StatusCode>(decoder.Get<int>());
  return Status(code, decoder.Text());
}

std::vector<double> GetValues(control::Decoder& decoder) {
  std::vector<double> values;
  for (auto left = decoder.Get<std::uint32_t>(); left > 0 && decoder.ok(); --left) {
    values.push_back(decoder.Get<double>());
  }
  return values;
}

void GetEnd(control::Decoder& decoder, TracedRank& trace) {
  trace.status = GetStatus(decoder);
  for (auto left = decoder.Get<std::uint32_t>(); left > 0 && decoder.ok(); --left) {
    FinalTensor tensor;
    tensor.name = decoder.Text();
    tensor.values = GetValues(decoder);
    if (decoder.Get<bool>()) tensor.gradient = GetValues(decoder);
    trace.tensors.push_back(std::move(tensor));
  }
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
    const auto kind = static_cast<Record>(decoder.Get<char>());
    if (kind == Record::kSection) recorder.OnSection(GetBytes<ddp::Section>(decoder));
    if (kind == Record::kEnvironment) return GetStatus(decoder);
    if (kind == Record::kEnd) GetEnd(decoder, trace);
    told = told || kind == Record::kEnd;
    if (kind != Record::kCall) continue;
    const auto operation = GetBytes<collective::Operation>(decoder);
    recorder.OnCollective(operation, GetBytes<journal::Annotation>(decoder));
  }
  if (told) return OkStatus();
  const std::string how = ended.signal == 0 ? fmt::format("exit code {}", ended.exit_code)
                                            : fmt::format("SIG{}", sigabbrev_np(ended.signal));
  trace.status = SystemFailed(fmt::format("crashed: {} in or after {}: {}", how,
                                          DescribeLastCall(trace), LastWords(ended.errors)));
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
                                           Deadline::AfterSeconds(world.options.timeout_seconds));
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
