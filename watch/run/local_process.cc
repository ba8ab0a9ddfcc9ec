// What /proc, the segment and its debug information say of a process of this host. A segment is
// found when its file appears, and becomes a process when its writer knows its rank.
#include "watch/run/local_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>
#include <system_error>
#include <utility>

#include "core/base/process_stat.h"
#include "core/control/machine.h"
#include "watch/run/stacks/stacks.h"

namespace lockstep::watch::run {
namespace {

namespace fs = std::filesystem;

ProcessState StateOf(pid_t pid) {
  const std::optional<ProcessStat> stat = StatOf(pid);
  switch (stat ? stat->state : 'X') {
    case 'Z':
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

ProcessName NameOf(const events::Header& header) {
  return {header.job, header.rank.load(), header.size.load(), header.threads.load() != 0};
}

}  // namespace

LocalProcess::LocalProcess(std::unique_ptr<SegmentReader> reader, stacks::SourceLines& lines)
    : Process(NameOf(reader->header()), control::HostName()),
      reader_(std::move(reader)),
      lines_(lines),
      end_(static_cast<int>(syscall(SYS_pidfd_open, reader_->pid(), 0))) {}

std::uint64_t LocalProcess::Drain(std::uint64_t most, const Take& take) {
  return reader_->Drain(most, take);
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
  return facts;
}

std::string LocalProcess::Line(std::uint64_t site) {
  if (site == 0) return Python().line;
  return stacks::LineOf(lines_, reader_->header().maps, reader_->pid(), site);
}

stacks::PythonStack LocalProcess::Python() { return stacks::LookAtPython(reader_->pid()); }

std::string LocalProcess::Stacks() { return stacks::StacksOf(reader_->pid()); }

void LocalProcess::Kill() { kill(reader_->pid(), SIGKILL); }

Result<std::unique_ptr<Folder>> Folder::Make() {
  const char* const chosen = std::getenv("TMPDIR");
  for (const char* parent : {"/dev/shm", chosen ? chosen : "/tmp", "/tmp"}) {
    std::string path = fmt::format("{}/lockstep-watch-{}-XXXXXX", parent, getpid());
    if (mkdtemp(path.data())) return std::unique_ptr<Folder>(new Folder(path));
  }
  return EnvironmentError("no folder for events: make /dev/shm or /tmp writable");
}

Folder::~Folder() { Remove(); }

void Folder::Remove() const {
  std::error_code error;
  fs::remove_all(path_, error);
}

void Folder::Abandon() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    if (entry.path().extension() == events::kSuffix) SegmentReader::Abandon(entry.path().string());
  }
  Remove();
}

std::vector<std::unique_ptr<LocalProcess>> Folder::TakeNew() {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != events::kSuffix || known_.count(path) > 0) continue;
    Result<std::unique_ptr<SegmentReader>> reader = SegmentReader::Open(path);
    if (!reader.ok()) continue;
    known_.insert(path);
    waiting_[path] = std::move(*reader);
  }
  std::vector<std::unique_ptr<LocalProcess>> fresh;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const events::Header& header = it->second->header();
    const int rank = header.rank.load(std::memory_order_acquire);
    if (rank < 0 || rank >= header.size.load()) {
      ++it;
      continue;
    }
    fresh.push_back(std::make_unique<LocalProcess>(std::move(it->second), lines_));
    it = waiting_.erase(it);
  }
  return fresh;
}

}  // namespace lockstep::watch::run
