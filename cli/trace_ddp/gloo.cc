// Tracing on gloo: one process a rank, because gloo ends the process in which a message is longer
// than what waits for it. Each writes what it calls before it calls it, and at last how it ended.
// Ranks write to files in memory, which outlive them. Every rank holds one end of a pipe until it
// is done, so the pipe's end tells that all are. Another pipe tells them to leave.
#include <fmt/core.h>

#include "cli/trace_ddp/rank.h"

#ifdef LOCKSTEP_HAS_GLOO
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/base/fd.h"
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

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> NewPipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) == 0) return Pipe{Fd(ends[0]), Fd(ends[1])};
  return EnvironmentError("no pipe for the ranks: {}; raise the limit on open files",
                          std::strerror(errno));
}

Result<Fd> NewFile() {
  Fd file(memfd_create("lockstep_rank", MFD_CLOEXEC));
  if (file.valid()) return file;
  return EnvironmentError("no file in memory for a rank: {}; raise the limit on open files",
                          std::strerror(errno));
}

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Until the other end is closed by all who hold it.
void AwaitEnd(int fd) {
  char byte = 0;
  while (true) {
    const ssize_t got = read(fd, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

std::string ContentsOf(int fd) {
  std::string text;
  char part[4096];
  for (off_t offset = 0;;) {
    const ssize_t got = pread(fd, part, sizeof(part), offset);
    if (got <= 0) return text;
    text.append(part, static_cast<std::size_t>(got));
    offset += got;
  }
}

// Of one rank, in its process.
class RankSeat {
 public:
  RankSeat(int written_fd, int here_fd, int leave_fd)
      : written_fd_(written_fd), here_fd_(here_fd), leave_fd_(leave_fd) {}
  // Kept whatever becomes of this process.
  void Write(std::string_view bytes) const { WriteAll(written_fd_, bytes); }
  // Returns when every rank came here or is gone. Once.
  void AwaitAll() const {
    close(here_fd_);
    AwaitEnd(leave_fd_);
  }

 private:
  int written_fd_;
  int here_fd_;   // the parent reads until all have closed theirs
  int leave_fd_;  // reads nothing until the parent closes its end
};

struct EndedRank {
  std::string written;  // by RankSeat::Write
  std::string errors;   // its standard error
  int exit_code = 0;
  int signal = 0;  // not 0: by which it was ended
};

struct RankProcess {
  pid_t pid = -1;
  Fd written;
  Fd errors;
};

class RankProcesses {
 public:
  ~RankProcesses() {
    for (const RankProcess& process : processes_) kill(process.pid, SIGKILL);
    while (!processes_.empty()) Reap();
  }

  Status Start(int ranks, const std::function<void(int rank, const RankSeat& seat)>& body) {
    LOCKSTEP_ASSIGN_OR_RETURN(here_, NewPipe());
    LOCKSTEP_ASSIGN_OR_RETURN(leave_, NewPipe());
    for (int rank = 0; rank < ranks; ++rank) {
      RankProcess process;
      LOCKSTEP_ASSIGN_OR_RETURN(process.written, NewFile());
      LOCKSTEP_ASSIGN_OR_RETURN(process.errors, NewFile());
      const pid_t parent = getpid();
      process.pid = fork();
      if (process.pid == 0) Be(rank, process, parent, body);
      if (process.pid < 0) {
        return EnvironmentError(
            "no process for rank {}: {}; use fewer ranks, or raise the limit on processes", rank,
            std::strerror(errno));
      }
      processes_.push_back(std::move(process));
    }
    here_.write = Fd();
    return OkStatus();
  }

  std::vector<EndedRank> AwaitEnds() {
    AwaitEnd(here_.read.get());
    leave_.write = Fd();
    std::vector<EndedRank> ended(processes_.size());
    while (!processes_.empty()) {
      const std::size_t rank = processes_.size() - 1;
      ended[rank] = Reap();
    }
    return ended;
  }

 private:
  [[noreturn]] void Be(int rank, const RankProcess& self, pid_t parent,
                       const std::function<void(int rank, const RankSeat& seat)>& body) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const rlimit no_core = {0, 0};  // its end is told, and what it said
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(self.errors.get(), STDERR_FILENO);
    here_.read = Fd();
    leave_.write = Fd();
    try {
      body(rank, RankSeat(self.written.get(), here_.write.get(), leave_.read.get()));
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      std::fflush(stderr);
      _exit(1);
    }
    _exit(0);
  }

  EndedRank Reap() {
    const RankProcess& process = processes_.back();
    int how = 0;
    while (waitpid(process.pid, &how, 0) < 0 && errno == EINTR) {
    }
    EndedRank ended = {ContentsOf(process.written.get()), ContentsOf(process.errors.get())};
    if (WIFSIGNALED(how)) ended.signal = WTERMSIG(how);
    if (WIFEXITED(how)) ended.exit_code = WEXITSTATUS(how);
    processes_.pop_back();
    return ended;
  }

  Pipe here_;
  Pipe leave_;
  std::vector<RankProcess> processes_;
};

// Forks once a rank, so no thread may run; `body` leaves without destructors. Exceptions of the
// body end its process with exit code 1 and their words among its errors. By rank; kEnvironment
// when the processes cannot be made.
Result<std::vector<EndedRank>> RunRankProcesses(
    int ranks, const std::function<void(int rank, const RankSeat& seat)>& body) {
  RankProcesses processes;
  LOCKSTEP_RETURN_IF_ERROR(processes.Start(ranks, body));
  return processes.AwaitEnds();
}

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
