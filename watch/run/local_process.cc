// What /proc, the segment and its debug information say of a process of this host.
#include "watch/run/local_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/base/clock.h"
#include "core/base/file_text.h"
#include "core/base/print_stderr.h"
#include "core/base/process_stat.h"
#include "core/control/machine.h"
#include "watch/run/stacks/stacks.h"

namespace lockstep::watch::run {
namespace {

// The main thread of a process may end before the others; then it looks like a zombie.
bool HasOtherThreads(pid_t pid) {
  return NumbersIn("/proc/" + std::to_string(pid) + "/task").size() > 1;
}

std::uint64_t PidNamespace() {
  struct stat facts;
  return stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

// Numbers of another namespace are other processes here.
bool IsHere(const events::Header& header) {
  static const std::uint64_t mine = PidNamespace();
  return header.pid_namespace == 0 || mine == 0 || header.pid_namespace == mine;
}

bool IsOf(const events::Header& header, const ProcessStat& stat) {
  return header.started == 0 || stat.started == header.started;
}

bool Sleeps(char state) { return state == 'S'; }

ProcessState StateOf(const events::Header& header) {
  if (!IsHere(header)) return ProcessState::kUnknown;
  const pid_t pid = header.pid;
  const std::optional<ProcessStat> stat = StatOf(pid);
  if (stat && !IsOf(header, *stat)) return ProcessState::kGone;  // it has the number by now
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
    default:
      return Sleeps(stat->state) ? ProcessState::kSleeps : ProcessState::kRuns;
  }
}

// Of /proc/PID, or of a thread's folder there.
std::uint64_t RanNs(const std::string& folder) {
  std::ifstream file(folder + "/schedstat");
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

std::uint64_t Endings::FirstOf(const events::Header& process) {
  ReadNew();
  const auto found = std::ranges::find_if(read_, [&](const events::Ending& each) {
    const bool told =
        each.target == process.pid || each.target == -process.group || each.target == -1;
    return told && each.ended_before != process.pid;
  });
  return found == read_.end() ? 0 : found->ticks;
}

void Endings::ReadNew() {
  if (!file_.valid()) file_ = Fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file_.valid()) return;
  events::Ending next;
  while (read(file_.get(), &next, sizeof next) == sizeof next) read_.push_back(next);
}

LocalProcess::LocalProcess(std::unique_ptr<SegmentReader> reader, stacks::SourceLines& lines,
                           Endings& endings)
    : Process(NameOf(reader->header()), control::HostName()),
      reader_(std::move(reader)),
      lines_(lines),
      endings_(endings),
      started_ns_(StartedNs(reader_->header().started)),
      end_(static_cast<int>(syscall(SYS_pidfd_open, reader_->pid(), 0))) {
  if (OwnPid() == 0) end_ = Fd();  // asked after it was opened: so it is of this process
  if (IsHere(reader_->header())) return;
  PrintStderr("lockstep watch: process {} is not judged: it is in another pid namespace\n", pid());
}

pid_t LocalProcess::OwnPid() const {
  const std::optional<ProcessStat> stat = StatOf(reader_->pid());
  const bool own = stat && IsHere(reader_->header()) && IsOf(reader_->header(), *stat);
  return own ? reader_->pid() : 0;
}

void LocalProcess::NoteCalls(std::span<const events::Event> some) {
  for (const events::Event& event : some) {
    const bool left = event.phase == events::Phase::kLeave || events::HasLeft(event.phase);
    if (left) std::erase(in_calls_, event.thread);
    const bool enters = event.phase == events::Phase::kEnter;
    if (enters && std::ranges::count(in_calls_, event.thread) == 0)
      in_calls_.push_back(event.thread);
  }
}

std::vector<CallerFacts> LocalProcess::Callers(const ProcessFacts& main) const {
  std::vector<CallerFacts> callers;
  for (const std::uint16_t thread : in_calls_) {
    CallerFacts& one = callers.emplace_back(CallerFacts{thread, 0, false});
    if (thread == events::kMainThreadNumber) {
      one.ran_ns = main.ran_ns;
      one.sleeps = main.state == ProcessState::kSleeps;
      continue;
    }
    const std::int32_t number = events::CallerOf(reader_->header(), thread);
    const std::string folder = fmt::format("/proc/{}/task/{}", reader_->pid(), number);
    const std::optional<ProcessStat> stat = ReadStat(TextOf(folder + "/stat"));
    one.sleeps = stat && Sleeps(stat->state);
    one.ran_ns = RanNs(folder);
  }
  return callers;
}

std::uint64_t LocalProcess::Drain(std::uint64_t most, const Take& take) {
  return reader_->Drain(most, [&](std::span<const events::Event> some) {
    newest_ = some.back();
    NoteCalls(some);
    take(some);
  });
}

ProcessFacts LocalProcess::Look(bool over) {
  const events::Header& header = reader_->header();
  ProcessFacts facts;
  // First of all: what it wrote before it was gone counts.
  facts.state = over && IsHere(header) ? ProcessState::kGone : StateOf(header);
  facts.begun = reader_->begun();
  facts.ran_ns = RanNs(fmt::format("/proc/{}", reader_->pid()));
  facts.cut_off = header.stopped.load() != 0;
  const auto exit = static_cast<events::Exit>(header.exited.load());
  facts.exited = exit == events::Exit::kExit;
  facts.quit = exit == events::Exit::kQuit;
  facts.exit_code = header.exit_code.load();
  facts.exited_ticks = header.exited_ticks.load();
  if (facts.state == ProcessState::kGone) facts.ended_ticks = endings_.FirstOf(header);
  if (header.threads.load() != 0) facts.threads = ThreadsOfProgram(header);
  facts.callers = Callers(facts);
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
  const pid_t own = OwnPid();
  const std::string line = stacks::LineOf(lines_, reader_->header().maps, own, site);
  // Without lines of its own, and in Python: a module of Python's, or what that calls.
  const bool of_module = line.find('@') != line.npos && stacks::IsPython(own);
  if (!of_module || !MainThreadIsAt(site)) return line;
  const std::string python = Python().line;
  return python.empty() || !MainThreadIsAt(site) ? line : python;
}

bool LocalProcess::MainThreadIsAt(std::uint64_t site) const {
  return newest_.phase == events::Phase::kEnter && newest_.site == site &&
         newest_.thread == events::kMainThreadNumber && reader_->begun() == reader_->read();
}

stacks::PythonStack LocalProcess::Python() {
  const pid_t own = OwnPid();
  return own == 0 ? stacks::PythonStack() : stacks::LookAtPython(own);
}

std::string LocalProcess::Stacks() {
  const pid_t own = OwnPid();
  return own == 0 ? "" : stacks::StacksOf(own);
}

// Its number may be another process's by now. Before Linux 5.3 there is only that.
void LocalProcess::Kill() {
  if (end_.valid()) {
    syscall(SYS_pidfd_send_signal, end_.get(), SIGKILL, nullptr, 0);
    return;
  }
  if (const pid_t own = OwnPid(); own != 0) kill(own, SIGKILL);
}

void LocalProcess::Forget() { reader_->Unlink(); }

}  // namespace lockstep::watch::run
