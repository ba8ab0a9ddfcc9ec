// The watcher starts the command with the preload library and a folder for segments. It reads the
// segments until the command ends, and prints each finding as soon as it is known. Where a launcher
// started one watcher a rank, that of rank 0 judges, and the others tell it what they read. The
// command keeps this process's standard streams; its exit code is passed on.
#include "watch/run/watch.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/deadline.h"
#include "core/base/print_stderr.h"
#include "core/control/codec.h"
#include "core/control/open_files.h"
#include "watch/run/command.h"
#include "watch/run/flight.h"
#include "watch/run/folder.h"
#include "watch/run/follower.h"
#include "watch/run/followers.h"
#include "watch/run/janitor.h"
#include "watch/run/jobs.h"
#include "watch/run/keeper.h"
#include "watch/run/launch.h"
#include "watch/run/reporter.h"
#include "watch/run/teller.h"
#include "watch/run/watcher_file.h"

namespace lockstep::watch::run {
namespace {

constexpr int kLookMs = 3;
constexpr int kMostLookMs = 20 * kLookMs;  // where nothing is to be confirmed
constexpr double kTermSeconds = 1.5;       // Open MPI ends ranks a second after SIGTERM
constexpr double kClearSeconds = 10;       // a launcher whose ranks are ended may clear away
constexpr int kSettledLooks = 10;          // after the last word of a rank that ended badly
constexpr double kHurrySeconds = 0.5;      // where the launcher must hear how this rank ended
constexpr double kLateSeconds = 10;  // for watchers that have not come when the command has ended

class Watcher {
 public:
  Watcher(const WatchOptions& options, Folder& folder, Command& command, control::Signals& signals,
          std::unique_ptr<Followers> followers, bool several_hosts,
          std::unique_ptr<Reporter> reporter, Flight& flight)
      : options_(options),
        folder_(folder),
        command_(command),
        signals_(signals),
        followers_(std::move(followers)),
        several_hosts_(several_hosts),
        counts_waits_(!several_hosts && reporter->counts_waits()),
        teller_(options, std::move(reporter)),
        flight_(flight) {}

  int Run();

 private:
  static std::string KeyOf(const std::string& name, int launch) {
    return fmt::format("{} {:06}", name, launch);
  }
  void Place(std::unique_ptr<Process> process);
  void ForgetThoseThatAreOver();
  void FindProcesses();
  void Look();
  int NextLookMs();
  // `looked`: since the last time, also at other watchers' processes. True where another look may
  // find something.
  bool LookAt(Job& job, bool looked);
  void LookAtEnd();
  void Kill();
  void KillRanks();
  // After the command's end: until all other watchers have told all.
  void AwaitFollowers();
  void DismissFailed();
  bool EndedWell(int rank) const;
  void LookAtFlightRecorder();
  // Where the launcher ends the launch: SIGKILL may follow.
  void Hurry();

  const WatchOptions& options_;
  Folder& folder_;
  Command& command_;
  control::Signals& signals_;
  std::unique_ptr<Followers> followers_;  // null: alone
  bool several_hosts_;
  bool counts_waits_;
  Teller teller_;
  Flight& flight_;
  Jobs jobs_;
  std::map<std::string, int> launches_;  // by the name of their job
  std::map<int, int> looks_since_end_;   // by the rank of a watcher
  bool killed_ = false;
  bool said_mixed_ = false;
  std::optional<Deadline> ranks_end_by_;     // since ranks are to be killed
  std::optional<Deadline> command_ends_by_;  // since they are
  int look_ms_ = kLookMs;
};

void Watcher::Place(std::unique_ptr<Process> process) {
  // Several launches may have one name.
  const std::string& name = process->name().job;
  for (int launch = 0; launch < launches_[name]; ++launch) {
    const auto found = jobs_.find(KeyOf(name, launch));
    if (found != jobs_.end() && found->second->CanHave(*process)) {
      return found->second->Add(std::move(process));
    }
  }
  ForgetThoseThatAreOver();
  bool mixed = false;
  for (int launch = 0; launch < launches_[name]; ++launch) {
    const auto found = jobs_.find(KeyOf(name, launch));
    if (found == jobs_.end() || !found->second->MayBeMixedWith(*process)) continue;
    found->second->Mix();
    mixed = true;
  }
  auto& job = jobs_[KeyOf(name, launches_[name]++)];
  job = std::make_unique<Job>(process->name().size,
                              judge::Options{.races = options_.races, .leaks = options_.leaks},
                              several_hosts_);
  if (counts_waits_) job->CountWaits();
  if (mixed) job->Mix();
  if (mixed && !std::exchange(said_mixed_, true)) {
    PrintStderr("lockstep watch: launches without a name run at a time: they are not judged\n");
  }
  job->Add(std::move(process));
}

// A script may start launches for days: each takes memory, descriptors and room in /dev/shm. A
// report needs them all.
void Watcher::ForgetThoseThatAreOver() {
  if (followers_ || counts_waits_) return;
  std::erase_if(jobs_, [this](const auto& each) {
    Job& job = *each.second;
    if (!job.IsOver()) return false;
    job.Over(true);
    teller_.Tell(job, false);
    teller_.Count(job);
    job.Forget();
    return true;
  });
}

// A launcher ends its ranks and clears away what they shared. A script around one need not pass
// SIGTERM on: so this ends the ranks, and leaves the script time to see that.
void Watcher::Kill() {
  if (!ranks_end_by_) {
    ranks_end_by_ = Deadline::AfterSeconds(kTermSeconds);
    if (!followers_) return command_.Signal(SIGTERM);
    followers_->Kill();
    KillRanks();
    return command_.Signal(SIGKILL);
  }
  if (followers_ || !ranks_end_by_->Passed()) return;
  if (!command_ends_by_) {
    command_ends_by_ = Deadline::AfterSeconds(kClearSeconds);
    KillRanks();
  }
  if (command_ends_by_->Passed()) command_.Signal(SIGKILL);
}

void Watcher::KillRanks() {
  for (const auto& [name, job] : jobs_) job->KillAll();
}

void Watcher::FindProcesses() {
  for (auto& process : folder_.TakeNew()) Place(std::move(process));
  if (!followers_) return;
  followers_->Serve();
  for (auto& process : followers_->TakeNew()) Place(std::move(process));
}

bool Watcher::LookAt(Job& job, bool looked) {
  if (command_.told_to_end()) job.EndsAreNoNews();
  job.Drain();
  job.LookAtProcesses(false);
  const bool hung = looked && job.LookForStandstill();
  const bool silent = looked && job.LookForSilence(options_.silence_s);
  teller_.Tell(job, hung || silent);
  killed_ = killed_ || (hung && options_.on_hang == "kill");
  return job.WantsLook() || job.IsSilent(options_.silence_s);
}

void Watcher::Look() {
  FindProcesses();
  const bool looked = !followers_ || (followers_->InRound() && followers_->EndRound());
  bool more = false;
  NoteEndsElsewhere(jobs_);
  for (const auto& [name, job] : jobs_) more = LookAt(*job, looked) || more;
  LookAgainWhereOneEnded(jobs_);
  LookAtFlightRecorder();
  teller_.Save(jobs_);
  if (followers_ && more && !followers_->InRound()) followers_->StartRound();
  if (killed_) Kill();
}

// Each look takes a processor from a rank that may want it. While ranks go on, or compute, nothing
// is to be found but ends, which wake this process.
int Watcher::NextLookMs() {
  const auto any = [&](auto what) {
    return std::ranges::any_of(jobs_, [&](const auto& each) { return (*each.second.*what)(); });
  };
  if (any(&Job::behind)) return 0;
  if (jobs_.empty() || killed_ || any(&Job::Hurries)) return look_ms_ = kLookMs;
  look_ms_ = any(&Job::Floods) ? look_ms_ / 2 : 2 * look_ms_;
  return look_ms_ = std::clamp(look_ms_, kLookMs, kMostLookMs);
}

void Watcher::LookAtFlightRecorder() {
  if (!teller_.WantsFlight()) return;
  const bool silent = std::ranges::all_of(
      jobs_, [&](const auto& each) { return each.second->QuietFor(options_.silence_s); });
  if (const auto diagnosis = flight_.Look(silent, options_.silence_s, followers_.get())) {
    teller_.TellFlight(*diagnosis);
  }
}

void Watcher::LookAtEnd() {
  FindProcesses();
  const bool all_told =
      !followers_ || (followers_->AllJoined() && followers_->AllEnded() && !followers_->AnyLost());
  NoteEndsElsewhere(jobs_);
  for (const auto& [name, job] : jobs_) {
    if (command_.told_to_end()) job->EndsAreNoNews();
    job->Over(all_told);
    teller_.Tell(*job, false);
  }
}

bool Watcher::EndedWell(int rank) const {
  for (const auto& [name, job] : jobs_) {
    if (job->Has(rank) && !job->EndedWell(rank)) return false;
  }
  return true;
}

// Their launcher must hear of it: it may have to end the others.
void Watcher::DismissFailed() {
  for (const auto& [rank, code] : followers_->Ended()) {
    if (code == 0 && EndedWell(rank)) continue;
    if (++looks_since_end_[rank] > kSettledLooks) followers_->Dismiss(rank);
  }
}

void Watcher::AwaitFollowers() {
  const bool failed = command_.ExitCode() != 0 || !EndedWell(0);
  const Deadline hurry = Deadline::AfterSeconds(kHurrySeconds);
  const Deadline late = Deadline::AfterSeconds(kLateSeconds);
  bool told_to_end = failed || command_.told_to_end();
  while (!(told_to_end && hurry.Passed())) {
    Look();
    DismissFailed();
    if (followers_->AllEnded() && (followers_->AllJoined() || late.Passed())) break;
    std::vector<pollfd> items = {{signals_.fd(), POLLIN, 0}};
    followers_->AddTo(items);
    poll(items.data(), items.size(), kLookMs);
    told_to_end = told_to_end || signals_.Take().end != 0;
  }
}

void Watcher::Hurry() {
  folder_.Remove();
  flight_.Remove();
  teller_.LastWords(jobs_);
}

int Watcher::Run() {
  while (true) {
    std::vector<pollfd> items;
    if (followers_) followers_->AddTo(items);
    for (const auto& [name, job] : jobs_) job->AddEnds(items);
    if (command_.Await(NextLookMs(), std::move(items), signals_)) break;
    Look();
    if (command_.told_to_end()) Hurry();
    command_.PassOn();
    if (followers_) DismissFailed();
  }
  if (command_.told_to_end()) folder_.Remove();  // SIGKILL may follow
  command_.ExitCode();
  if (followers_) AwaitFollowers();
  LookAtEnd();
  const int code = killed_ ? 1 : command_.ExitCode();
  teller_.Summarize(jobs_, code);
  if (followers_) followers_->DismissAll();
  if (killed_) KillRanks();  // a launcher that is no mpirun may leave them
  teller_.SaveAtEnd(jobs_, code);
  return code;
}

// The rank keeps the processors that its launcher gave it to itself.
void LeaveProcessorsToRank() {
  cpu_set_t all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
  sched_setaffinity(0, sizeof all, &all);
}

Status SaveEndpoint(const Folder& folder, const Followers& followers) {
  std::ofstream file(folder.path() / events::kEndpointFile, std::ios::binary);
  const std::string bytes = control::Encode(followers.endpoint());
  file << bytes;
  file.close();
  if (file && bytes.size() <= events::kMostEndpointBytes) return OkStatus();
  return EnvironmentError("the watchers' address cannot be written to " + folder.path().string());
}

// What stands in the way of meeting is said once, and the command runs all the same.
Result<std::unique_ptr<Followers>> FindFollowers(const Launch& launch, const Folder& folder,
                                                 control::Signals& signals) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Followers> followers,
                            Followers::Listen(launch, signals));
  if (launch.way == Launch::Way::kOverMpi) {
    LOCKSTEP_RETURN_IF_ERROR(SaveEndpoint(folder, *followers));
  }
  return followers;
}

// Ranks of several hosts have several clocks.
Result<std::unique_ptr<Reporter>> MakeReporter(const WatchOptions& options, bool several_hosts) {
  auto reporter = std::make_unique<Reporter>(options);
  if (!reporter->wanted()) return reporter;
  if (several_hosts && options.report) {
    PrintStderr("lockstep watch: no report: waits are counted on one host only\n");
  }
  LOCKSTEP_RETURN_IF_ERROR(reporter->Check());
  return reporter;
}

// What the preload library is told beside the folder, and PyTorch of its Flight Recorder.
Flight::Variables VariablesOf(const WatchOptions& options, const Launch& launch,
                              const Flight& flight) {
  Flight::Variables variables = flight.variables();
  if (launch.way == Launch::Way::kOverMpi) variables.emplace_back(events::kMeetVariable, "1");
  if (options.report) variables.emplace_back(events::kTimesVariable, "1");
  return variables;
}

// This process becomes the command. Returns where that cannot be started.
Status RunUnwatched(const std::vector<std::string>& words, const Status& why) {
  PrintStderr("lockstep watch: {} is not watched: {}\n", words.front(), why.message());
  return Command::Become(words);
}

}  // namespace

Result<int> Watch(const WatchOptions& options) {
  const Result<std::unique_ptr<Folder>> made = Folder::Make();
  if (!made.ok()) return RunUnwatched(options.command, made.status());
  Folder* const folder = made->get();
  Launch launch;
  Result<Launch> found = FindLaunch();
  Status problem = found.status();
  if (found.ok()) launch = std::move(found).value();
  control::RaiseOpenFiles();  // a descriptor a rank
  Command command(found.ok() && launch.context.launcher != "none");
  control::Signals signals;
  const bool many = launch.way != Launch::Way::kAlone;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Keeper> keeper, Keeper::Make());
  if (many) {
    const std::optional<int> code = keeper->Fork(launch.context.rank, *folder, signals);
    if (code) return *code;
  } else {
    LeaveJanitor(*folder);
  }
  std::unique_ptr<Followers> followers;
  if (many && launch.context.rank == 0) {
    Result<std::unique_ptr<Followers>> listening = FindFollowers(launch, *folder, signals);
    problem = listening.status();
    if (listening.ok()) followers = std::move(listening).value();
  }
  if (!problem.ok()) {
    PrintStderr("lockstep watch: other ranks are not watched: {}\n", problem.message());
  }
  std::unique_ptr<Reporter> reporter;
  if (launch.context.rank == 0 || !many) {
    LOCKSTEP_ASSIGN_OR_RETURN(reporter, MakeReporter(options, !launch.context.single_host()));
  }
  Publish(folder->path(), options.command);
  Flight flight;
  const Flight::Variables variables = VariablesOf(options, launch, flight);
  LOCKSTEP_RETURN_IF_ERROR(command.Start(options.command, options.library, folder->path().string(),
                                         variables, keeper->command()));
  if (many) LeaveProcessorsToRank();
  if (many && launch.context.rank != 0) {
    return Follow(launch, *folder, command, signals, flight);
  }
  return Watcher(options, *folder, command, signals, std::move(followers),
                 !launch.context.single_host(), std::move(reporter), flight)
      .Run();
}

}  // namespace lockstep::watch::run
