// The life of every agent but rank 0's is one loop. It obeys the coordinator, passes on its own
// RankAgent's reports, and watches its launcher, its coordinator and its signals. The end depends
// on which ends first: dismissed, orphaned (failover.h), or told to leave.
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/agent/rank_agent.h"
#include "core/base/clock.h"
#include "core/base/now.h"
#include "core/base/print_stderr.h"
#include "core/control/frames.h"
#include "core/control/signals.h"
#include "core/control/tcp.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/coordinator_watch.h"
#include "core/coordinator/failover.h"
#include "core/coordinator/kept_records.h"
#include "core/coordinator/kill_seconds.h"
#include "core/coordinator/launcher_watch.h"
#include "core/coordinator/meet.h"

namespace lockstep::coordinator {
namespace {

// Part of the time between SIGTERM and SIGKILL in which the coordinator may still want our data;
// and what is for the failover, if that comes to nothing.
constexpr double kGraceShare = 0.75, kHurryShare = 0.6;
// Nobody ends an agent that has lost its launcher: the coordinator takes what it needs until then.
constexpr double kWithoutLauncherSeconds = 5;
constexpr std::size_t kMostKeptBytes = std::size_t{1} << 30;
constexpr std::size_t kHistoryEvents = 4096;

class Follower {
 public:
  Follower(const LaunchContext& context, const CoordinatorOptions& options)
      : context_(context),
        options_(options),
        launcher_(context),
        agent_(context, options,
               [this](FrameType type, std::string payload) { OnReport(type, payload); }) {}

  ExitCode Run() {
    Result<Joined> joined = MeetCoordinator(context_, options_, agent_, signals_);
    if (!joined.ok()) {
      agent_.End();
      // Told to end means that somebody else has failed, and says why.
      const bool told = joined.status().code() == StatusCode::kTerminated;
      if (!told) PrintStderr("{}\n", joined.status().message());
      return ExitCodeOf(joined.status().code());
    }
    control_ = std::move(joined->control);
    join_server_ = std::move(joined->server);
    secret_ = std::move(joined->secret);
    // Orders can have come together with the welcome.
    Obey();
    while (!dismissal_) {
      PollOnce();
      const bool silent = !dismissal_ && IsSilent();
      if (dismissal_) break;  // the coordinator may have ended since
      if (taken_for_lost_ || (!control_->open() && watch_.overslept())) return LeaveAlone();
      if (!control_->open()) return Orphaned(control::LossOf(*control_));
      if (leave_at_ && leave_at_->Passed()) return Leave();
      if (silent) return Orphaned(SilenceOf(*control_));
    }
    return LeaveWithCoordinator();
  }

 private:
  void OnReport(FrameType type, const std::string& payload) {
    if (type == FrameType::kData && options_.keep_data) kept_.Add(payload);
    if (control_) control_->Send(type, payload);
  }

  void PollOnce() {
    std::vector<pollfd> items = {{signals_.fd(), POLLIN, 0},
                                 {control_->fd(), control_->poll_events(), 0},
                                 {agent_.channel_fd(), agent_.poll_events(), 0},
                                 {agent_.plugin_fd(), POLLIN, 0},
                                 {launcher_.fd(), POLLIN, 0}};
    if (join_server_) join_server_->AddTo(items);
    poll(items.data(), items.size(), WakeMs());
    ServeJoinServer();
    const control::Signals::Arrived arrived = signals_.Take();
    if (arrived.end != 0 && !told_) {
      told_ = true;
      control_->Send(FrameType::kToldToEnd);
      leave_at_ = Deadline::AfterSeconds(kGraceShare * KillSeconds());
    }
    if (items[4].revents != 0) OnLauncherGone();
    if (items[2].revents != 0) agent_.OnChannel();
    if (items[3].revents != 0) agent_.OnPlugin();
    if (arrived.child) agent_.OnChildChange();
    agent_.Watch();
    control_->Flush();
    if (items[1].revents != 0) control_->Fill();
    Obey();
  }

  // Orphans may come before this agent has noticed the loss.
  void ServeJoinServer() {
    if (!join_server_) return;
    const Status served = join_server_->Serve();
    if (served.ok()) return;
    PrintStderr("rank {} cannot take the coordinator's place: {}\n", context_.rank,
                served.message());
    join_server_.reset();
  }

  int WakeMs() const {
    int wake_ms = agent_.wake_ms();
    if (leave_at_) wake_ms = leave_at_->RemainingMs();
    if (!watch_.begun()) return wake_ms;
    return wake_ms < 0 ? watch_.wake_ms() : std::min(wake_ms, watch_.wake_ms());
  }

  void OnLauncherGone() {
    launcher_.OnGone();
    control_->Send(FrameType::kLauncherGone);
    if (!leave_at_) leave_at_ = Deadline::AfterSeconds(kWithoutLauncherSeconds);
  }

  // Nothing came from the coordinator for too long. Before that it is sent something, so that its
  // kernel's acknowledgement, or the lack of it, tells a stopped process from a host that is cut
  // off.
  bool IsSilent() {
    // What came since poll(2) returned: this process may have waited for a processor meanwhile.
    control_->Fill();
    Obey();
    const Silence silence = watch_.Look(MonotonicNs(), [this] { return PeerRuns(*control_); });
    const bool doubtful = silence != Silence::kNone;
    if (doubtful && !asked_) control_->Send(FrameType::kHeartbeat);
    asked_ = doubtful;
    return silence == Silence::kLost;
  }

  void Obey() {
    while (std::optional<control::Frame> order = control_->Take()) {
      watch_.Hear(MonotonicNs());
      switch (static_cast<FrameType>(order->type)) {
        case FrameType::kDismiss:
          dismissal_ = CodeOfDismissal(order->payload);
          return;
        case FrameType::kTakenForLost:
          taken_for_lost_ = true;
          return;
        case FrameType::kHeartbeat:
          control_->Send(order->type, {});
          break;
        case FrameType::kRoster:
          TakeRoster(order->payload);
          break;
        case FrameType::kReplicated:
          replicated_.push_back(order->payload);
          break;
        case FrameType::kRest:
          TakeRest(order->payload);
          break;
        default:
          agent_.Obey(*order);
      }
    }
  }

  void TakeRest(const std::string& payload) {
    const auto rest = control::Decode<control::RestOrder>(payload);
    LOCKSTEP_CHECK(rest.has_value(), "the coordinator's rest");
    watch_.Rest(rest->seconds);
  }

  void TakeRoster(const std::string& payload) {
    std::optional<control::Roster> roster = control::Decode<control::Roster>(payload);
    LOCKSTEP_CHECK(roster.has_value(), "the coordinator's roster");
    roster_ = *std::move(roster);
    const bool candidate = std::ranges::any_of(
        roster_.candidates, [&](const Contact& contact) { return contact.rank == context_.rank; });
    if (!candidate) join_server_.reset();
    watch_.Begin(roster_.lost_seconds, MonotonicNs());
    control::SetTcpOptions(control_->fd(), roster_.lost_seconds);
  }

  // Who saw what comes first: only then workers are ended.
  ExitCode Orphaned(Loss loss) {
    // A launcher that is gone may still have told us to end.
    if (signals_.Take().end != 0) told_ = true;
    // Whoever ends the launch may have ended the coordinator first.
    if ((loss == Loss::kClosed || loss == Loss::kReset) && (told_ || leave_at_)) loss = Loss::kGone;
    // Before all have met nothing has begun, and nothing is known of the others.
    if (!watch_.begun()) {
      agent_.End();
      if (!told_) {
        PrintStderr(
            "rank {}: the coordinator (rank 0) ended before the agents met; see its "
            "messages\n",
            context_.rank);
      }
      return ExitCode::kEnvironment;
    }
    const double hurry_seconds = kHurryShare * KillSeconds();
    FailoverPart own;
    own.lifetime = agent_.lifetime();
    own.evidence = agent_.Evidence(Deadline::AfterSeconds(told_ ? 0.05 : 1), !told_);
    // Whom the coordinator had ended before it was lost itself did nothing wrong.
    if (agent_.ended()) {
      own.evidence.state = verdict::ProcessState::kRunning;
      own.evidence.idle = true;
    }
    own.journal = agent_.ReadJournal(kHistoryEvents);
    agent_.End();
    own.data_cut = kept_.cut();
    own.data = kept_.Take();
    own.replicated = std::move(replicated_);
    if (control_->open()) control_->Send(FrameType::kTakenForLost);
    control_->Close();
    PrintStderr("rank {}: the coordinator (rank 0) is {}\n", context_.rank,
                loss == Loss::kClosed || loss == Loss::kGone ? "gone" : "not heard of any more");
    return Failover(context_, roster_, secret_, join_server_.get(), signals_, loss, hurry_seconds,
                    told_)
        .Run(std::move(own), options_.on_failover);
  }

  // Others have judged, and written the file.
  ExitCode LeaveAlone() {
    agent_.End();
    PrintStderr("rank {} leaves because {}, and the others went on without it\n", context_.rank,
                taken_for_lost_ ? "nothing was heard of it" : "it was stopped");
    return ExitCode::kEnvironment;
  }

  // The coordinator is there, but time is up.
  ExitCode Leave() {
    agent_.End();
    PrintStderr("rank {} leaves because {}\n", context_.rank,
                told_ ? "it was told to end" : "the launcher's daemon on its host is gone");
    return ExitCode::kEnvironment;
  }

  // The launcher should see the coordinator's end first: it names the rank. Which end it sees first
  // is not sure on a busy host, so all have one exit code.
  ExitCode LeaveWithCoordinator() {
    agent_.End();
    control_->Send(FrameType::kDismissed);
    const Deadline deadline = Deadline::AfterSeconds(3);
    while (control_->open() && !deadline.Passed()) control_->MoveOn(deadline);
    SleepNs(50'000'000);
    return *dismissal_;
  }

  const LaunchContext context_;
  const CoordinatorOptions options_;
  control::Signals signals_;
  LauncherWatch launcher_;
  agent::RankAgent agent_;
  std::optional<Channel> control_;
  std::unique_ptr<control::rendezvous::JoinServer> join_server_;  // where orphans join
  std::string secret_;
  control::Roster roster_;
  CoordinatorWatch watch_;
  bool asked_ = false;  // since it was heard of last
  bool told_ = false;   // to end, by a signal
  std::optional<Deadline> leave_at_;
  std::optional<ExitCode> dismissal_;
  bool taken_for_lost_ = false;  // the coordinator lives, and says so
  std::vector<std::string> replicated_;
  KeptRecords kept_{kMostKeptBytes};  // the first outbox bytes of this rank
};

}  // namespace

ExitCode Follow(const LaunchContext& context, const CoordinatorOptions& options) {
  return Follower(context, options).Run();
}

}  // namespace lockstep::coordinator
