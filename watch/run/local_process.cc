// What /proc, the segment and its debug information say of a process of this host.
#include "watch/run/local_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/base/clock.h"
#include "core/base/process_stat.h"
#include "core/control/machine.h"
#include "watch/run/stacks/stacks.h"

namespace lockstep::watch::run {
namespace {

// The main thread of a process may end before the others; then it looks like a zombie.
bool HasOtherThreads(pid_t pid) {
  return NumbersIn("/proc/" + std::to_string(pid) + "/task").size() > 1;
}

ProcessState StateOf(pid_t pid) {
  const std::optional<ProcessStat> stat = StatOf(pid);
  // Without a descriptor nothing can be read, also of a process that is there.
  const bool hidden = !stat && (kill(pid, 0) == 0 || errno != ESRCH);
  if (hidden) return ProcessState::kRuns;
  switch (stat ? stat->state : 'X') {
    case 'Z':
      return HasOtherThreads(pid) ? ProcessState::kRuns : ProcessState::kGone;
    case 'X':
      return ProcessState::kGone;
    case 'T':
      return ProcessState::kStopped;
    case 'S':
      return ProcessState::kSleeps;
    default:
      return ProcessState::kRuns;
  }
}

std::uint64_t RanNs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  std::uint64_t ran = 0;
  file >> ran;
  return ran;
}

// Threads that are not MPI's.
int ThreadsOfProgram(const events::Header& header) {
  const std::vector<int> threads = NumbersIn("/proc/" + std::to_string(header.pid) + "/task");
  return static_cast<int>(std::ranges::count_if(threads, [&header](int thread) {
    return std::ranges::none_of(header.library_threads,
                                [thread](const auto& one) { return one == thread; });
  }));
}

ProcessName NameOf(const events::Header& header) {
  return {header.job, header.rank.load(), header.size.load(), header.threads.load() != 0};
}

// On MonotonicNs(), of clock ticks since boot.
std::int64_t StartedNs(std::uint64_t ticks) {
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t since_boot = boot.tv_sec * kSecond + boot.tv_nsec;
  const auto started = static_cast<std::int64_t>(ticks) * (kSecond / sysconf(_SC_CLK_TCK));
  return MonotonicNs() - since_boot + started;
}

}  // namespace

LocalProcess::LocalProcess(std::unique_ptr<SegmentReader> reader, stacks::SourceLines& lines)
    : Process(NameOf(reader->header()), control::HostName()),
      reader_(std::move(reader)),
      lines_(lines),
      started_ns_(StartedNs(reader_->header().started)),
      end_(static_cast<int>(syscall(SYS_pidfd_open, reader_->pid(), 0))) {}

std::uint64_t LocalProcess::Drain(std::uint64_t most, const Take& take) {
  return reader_->Drain(most, [&](std::span<const events::Event> some) {
    newest_ = some.back();
    take(some);
  });
}

ProcessFacts LocalProcess::Look(bool over) {
  const events::Header& header = reader_->header();
  ProcessFacts facts;
  // First of all: what it wrote before it was gone counts.
  facts.state = over ? ProcessState::kGone : StateOf(reader_->pid());
  facts.begun = reader_->begun();
  facts.ran_ns = RanNs(reader_->pid());
  facts.cut_off = header.stopped.load() != 0;
  const auto exit = static_cast<events::Exit>(header.exited.load());
  facts.exited = exit == events::Exit::kExit;
  facts.quit = exit == events::Exit::kQuit;
  facts.exit_code = header.exit_code.load();
  if (header.threads.load() != 0) facts.threads = ThreadsOfProgram(header);
  return facts;
}

bool LocalProcess::WentOn() {
  const events::Header& header = reader_->header();
  const std::uint64_t before = std::exchange(begun_when_asked_, reader_->begun());
  if (before == begun_when_asked_ || !end_.valid()) return false;
  if (header.exited.load() != 0 || header.stopped.load() != 0) return false;
  pollfd end = {end_.get(), POLLIN, 0};
  return poll(&end, 1, 0) == 0;
}

std::string LocalProcess::Line(std::uint64_t site) {
  if (site == 0) return Python().line;
  const std::string line = stacks::LineOf(lines_, reader_->header().maps, reader_->pid(), site);
  // Without lines of its own, and in Python: a module of Python's, or what that calls.
  const bool of_module = line.find('@') != line.npos && stacks::IsPython(reader_->pid());
  if (!of_module || !MainThreadIsAt(site)) return line;
  const std::string python = Python().line;
  return python.empty() || !MainThreadIsAt(site) ? line : python;
}

bool LocalProcess::MainThreadIsAt(std::uint64_t site) const {
  return newest_.phase == events::Phase::kEnter && newest_.site == site &&
         newest_.thread == events::kMainThreadNumber && reader_->begun() == reader_->read();
}

stacks::PythonStack LocalProcess::Python() { return stacks::LookAtPython(reader_->pid()); }

std::string LocalProcess::Stacks() { return stacks::StacksOf(reader_->pid()); }

// Its number may be another process's by now. Before Linux 5.3 there is only that.
void LocalProcess::Kill() {
  if (end_.valid()) {
    syscall(SYS_pidfd_send_signal, end_.get(), SIGKILL, nullptr, 0);
    return;
  }
  const std::optional<ProcessStat> stat = StatOf(pid());
  if (stat && stat->started == reader_->header().started) kill(pid(), SIGKILL);
}

void LocalProcess::Forget() { reader_->Unlink(); }

}  // namespace lockstep::watch::run
