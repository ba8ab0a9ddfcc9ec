// The watcher starts the launcher with the preload library and a folder for segments. It reads the
// segments until the launcher ends, and prints each finding as soon as it is known. The launcher
// keeps this process's standard streams; its exit code is passed on.
#include "watch/run/watch.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <system_error>

#include "watch/run/job.h"

namespace lockstep::watch::run {
namespace {

namespace fs = std::filesystem;

constexpr int kLookMs = 3;
constexpr int kKillLooks = 10'000 / kLookMs;

std::atomic<int> signal_to_pass{0};
void NoteSignal(int number) { signal_to_pass.store(number); }

Result<fs::path> MakeFolder() {
  const char* const chosen = std::getenv("TMPDIR");
  for (const char* parent : {"/dev/shm", chosen ? chosen : "/tmp", "/tmp"}) {
    std::string path = fmt::format("{}/lockstep-watch-{}-XXXXXX", parent, getpid());
    if (mkdtemp(path.data())) return fs::path(path);
  }
  return EnvironmentError("no folder for events: make /dev/shm or /tmp writable");
}

class Watcher {
 public:
  Watcher(const WatchOptions& options, fs::path folder)
      : options_(options), folder_(std::move(folder)) {}

  Result<int> Run();

 private:
  Status Start();
  void FindSegments();
  void Look(bool over);
  void Print(const judge::Finding& finding);
  void Kill();
  void KillRanks();
  void Summarize() const;

  const WatchOptions& options_;
  fs::path folder_;
  pid_t launcher_ = -1;
  SourceLines lines_;
  std::map<std::string, std::unique_ptr<SegmentReader>> waiting_;  // until MPI_Init is over
  std::set<std::string> known_;
  std::map<std::string, std::unique_ptr<Job>> jobs_;
  int findings_ = 0;
  bool killed_ = false;
  int kill_looks_ = 0;
};

Status Watcher::Start() {
  std::vector<char*> words;
  for (const std::string& word : options_.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const char* const before = std::getenv("LD_PRELOAD");
  const std::string preload =
      options_.library + (before && *before ? ":" + std::string(before) : std::string());
  int problem[2];
  if (pipe2(problem, O_CLOEXEC) != 0) return EnvironmentError("no pipe: too many open files");
  launcher_ = fork();
  if (launcher_ == 0) {
    setenv("LD_PRELOAD", preload.c_str(), 1);
    setenv(events::kFolderVariable, folder_.c_str(), 1);
    execvp(words[0], words.data());
    const int error = errno;
    if (write(problem[1], &error, sizeof error) < 0) _exit(127);
    _exit(127);
  }
  close(problem[1]);
  int error = 0;
  const bool failed = launcher_ < 0 || read(problem[0], &error, sizeof error) > 0;
  close(problem[0]);
  if (!failed) return OkStatus();
  if (launcher_ > 0) waitpid(launcher_, nullptr, 0);
  return InvalidInput(
      fmt::format("{}: cannot be started ({})", options_.command.front(), std::strerror(error)));
}

void Watcher::FindSegments() {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string path = entry.path().string();
    if (known_.count(path) > 0) continue;
    Result<std::unique_ptr<SegmentReader>> reader = SegmentReader::Open(path);
    if (!reader.ok()) continue;
    known_.insert(path);
    waiting_[path] = std::move(*reader);
  }
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const events::Header& header = it->second->header();
    const int rank = header.rank.load(std::memory_order_acquire);
    const int size = header.size.load();
    if (rank < 0 || rank >= size) {
      ++it;
      continue;
    }
    // A rank that is there already belongs to an earlier launch of the same name.
    std::string name = header.job;
    while (jobs_.count(name) > 0 && jobs_[name]->Has(rank)) name += '+';
    auto& job = jobs_[name];
    if (!job) job = std::make_unique<Job>(size, lines_, judge::Options{options_.races});
    job->Add(rank, std::move(it->second));
    it = waiting_.erase(it);
  }
}

void Watcher::Print(const judge::Finding& finding) {
  ++findings_;
  const std::string& headline = finding.headline.text();
  const std::string details = headline == finding.text ? "" : "  " + finding.text + "\n";
  fmt::print(stderr, "lockstep watch: {}{} ({}): {}\n{}  -> {}\n", finding.hangs ? "HUNG, " : "",
             judge::NameOf(finding.cause), finding.proved ? "proved" : "suspected", headline,
             details, judge::RemedyOf(finding.cause, finding.in_group));
  if (options_.findings.empty()) return;
  std::ofstream file(options_.findings, std::ios::app);
  file << judge::NameOf(finding.cause) << '\t' << (finding.proved ? "proved" : "suspected") << '\t'
       << (finding.hangs ? "hung" : "runs") << '\t' << finding.text << '\n';
}

// The launcher ends its ranks and clears away what they shared; where it doesn't, this does.
void Watcher::Kill() {
  if (kill_looks_ == 0) kill(launcher_, SIGTERM);
  if (++kill_looks_ < kKillLooks) return;
  KillRanks();
  kill(launcher_, SIGKILL);
}

void Watcher::KillRanks() {
  for (const auto& [name, job] : jobs_) {
    for (const pid_t process : job->Processes()) kill(process, SIGKILL);
  }
}

void Watcher::Look(bool over) {
  FindSegments();
  for (const auto& [name, job] : jobs_) {
    bool hung = false;
    if (over) {
      job->Over();
    } else {
      job->Drain();
      job->LookAtProcesses(false);
      hung = job->LookForStandstill();
      job->LookForSilence(options_.silence_s);
    }
    for (const judge::Finding& finding : job->Tell()) Print(finding);
    killed_ = killed_ || (hung && options_.on_hang == "kill");
  }
  if (killed_ && !over) Kill();
}

void Watcher::Summarize() const {
  int ranks = 0;
  std::uint64_t events = 0;
  bool complete = true;
  for (const auto& [name, job] : jobs_) {
    ranks += job->size();
    events += job->events();
    complete = complete && job->complete();
  }
  if (ranks == 0) {
    fmt::print(stderr, "lockstep watch: no program of MPI, gloo or NCCL was seen\n");
  } else if (findings_ == 0) {
    fmt::print(stderr, "lockstep watch: {} ranks, {} events, no finding{}\n", ranks, events,
               complete ? "" : "; not all was watched");
  }
}

Result<int> Watcher::Run() {
  LOCKSTEP_RETURN_IF_ERROR(Start());
  struct sigaction pass = {};
  pass.sa_handler = NoteSignal;
  sigaction(SIGTERM, &pass, nullptr);
  sigaction(SIGHUP, &pass, nullptr);
  sigaction(SIGINT, &pass, nullptr);
  const int watched = static_cast<int>(syscall(SYS_pidfd_open, launcher_, 0));
  pollfd end = {watched, POLLIN, 0};
  while (poll(&end, 1, kLookMs) <= 0) {
    if (const int number = signal_to_pass.exchange(0)) {
      for (const auto& [name, job] : jobs_) job->EndsAreNoNews();
      kill(launcher_, number);
    }
    Look(false);
  }
  close(watched);
  int status = 0;
  waitpid(launcher_, &status, 0);
  Look(true);
  Summarize();
  if (killed_) {
    KillRanks();  // a launcher that is no mpirun may leave them
    return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<int> Watch(const WatchOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path folder, MakeFolder());
  const Result<int> result = Watcher(options, folder).Run();
  std::error_code error;
  fs::remove_all(folder, error);
  return result;
}

}  // namespace lockstep::watch::run
