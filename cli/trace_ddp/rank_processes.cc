// Ranks write to files in memory, which outlive them. Every rank holds one end of a pipe until it
// is done, so the pipe's end tells that all are. Another pipe tells them to leave.
#include "cli/trace_ddp/rank_processes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "core/base/fd.h"
#include "core/base/print_stderr.h"

namespace lockstep::cli::trace_ddp {
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
  Pipe leave_;
  std::vector<RankProcess> processes_;
};

}  // namespace

void RankSeat::Write(std::string_view bytes) const { WriteAll(written_fd_, bytes); }

void RankSeat::AwaitAll() const {
  close(here_fd_);
  AwaitEnd(leave_fd_);
}

Result<std::vector<EndedRank>> RunRankProcesses(
    int ranks, const std::function<void(int rank, const RankSeat& seat)>& body) {
  RankProcesses processes;
  LOCKSTEP_RETURN_IF_ERROR(processes.Start(ranks, body));
  return processes.AwaitEnds();
}

}  // namespace lockstep::cli::trace_ddp
