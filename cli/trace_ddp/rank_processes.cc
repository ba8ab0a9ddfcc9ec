// Ranks write to files in memory, which outlive them. Every rank holds one end of a pipe until it
// is done, so the pipe's end tells that all are. Then they are killed: what they had to say is
// written. While they write they are well, however slow.
#include "cli/trace_ddp/rank_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "core/base/fd.h"
#include "core/base/print_stderr.h"
#include "core/base/process_stat.h"

namespace lockstep::cli::trace_ddp {
namespace {

constexpr int kLookMs = 100;

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
  // Threads write at once, and Linux does not lock the offset of such a file for a write.
  if (file.valid() && fcntl(file.get(), F_SETFL, O_APPEND) == 0) return file;
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

off_t SizeOf(const Fd& file) {
  struct stat status = {};
  return fstat(file.get(), &status) == 0 ? status.st_size : 0;
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

  std::vector<EndedRank> AwaitEnds(double patience_seconds) {
    const bool all_done = AwaitAll(patience_seconds);
    std::vector<EndedRank> ended(processes_.size());
    std::vector<char> states;
    for (const RankProcess& process : processes_) {
      const std::optional<ProcessStat> stat = StatOf(process.pid);
      states.push_back(stat ? stat->state : '?');
      kill(process.pid, SIGKILL);  // one that is ending keeps its exit code
    }
    while (!processes_.empty()) {
      const std::size_t rank = processes_.size() - 1;
      ended[rank] = Reap();
      if (!all_done && ended[rank].signal == SIGKILL && states[rank] != 'Z') {
        ended[rank].state = states[rank];
      }
    }
    return ended;
  }

 private:
  // True: all are done. False: nobody wrote for so many looks. Looks count, not the clock: while
  // the machine sleeps, or this process is stopped with its ranks, there are none.
  bool AwaitAll(double patience_seconds) {
    pollfd here = {here_.read.get(), 0, 0};
    off_t written = -1;
    for (double left_ms = 0; poll(&here, 1, kLookMs) <= 0; left_ms -= kLookMs) {
      const off_t now = Written();
      if (now != written) left_ms = patience_seconds * 1000;
      if (left_ms <= 0) return false;
      written = now;
    }
    return true;
  }
  off_t Written() const {
    off_t bytes = 0;
    for (const RankProcess& process : processes_) bytes += SizeOf(process.written);
    return bytes;
  }
  [[noreturn]] void Be(int rank, const RankProcess& self, pid_t parent,
                       const std::function<void(int rank, const RankSeat& seat)>& body) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const rlimit no_core = {0, 0};  // its end is told, and what it said
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(self.errors.get(), STDERR_FILENO);
    here_.read = Fd();
    try {
      body(rank, RankSeat(self.written.get(), here_.write.get()));
    } catch (const std::exception& error) {
      PrintStderr("{}\n", error.what());
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
  std::vector<RankProcess> processes_;
};

}  // namespace

void RankSeat::Write(std::string_view bytes) const { WriteAll(written_fd_, bytes); }

void RankSeat::Stay() const {
  close(here_fd_);
  while (true) pause();
}

Result<std::vector<EndedRank>> RunRankProcesses(
    int ranks, double patience_seconds,
    const std::function<void(int rank, const RankSeat& seat)>& body) {
  RankProcesses processes;
  LOCKSTEP_RETURN_IF_ERROR(processes.Start(ranks, body));
  return processes.AwaitEnds(patience_seconds);
}

}  // namespace lockstep::cli::trace_ddp
