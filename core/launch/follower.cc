// The life of every agent but rank 0's.
#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "core/launch/fleet.h"
#include "core/launch/meet.h"
#include "core/launch/protocol.h"
#include "core/launch/rank_agent.h"
#include "core/launch/signals.h"

namespace lockstep {
namespace {

constexpr std::uint32_t Number(FrameType type) { return static_cast<std::uint32_t>(type); }
// mpirun sends SIGKILL a second after SIGTERM; until then the coordinator may still want our data.
constexpr double kGraceSeconds = 0.75;
constexpr std::size_t kMostKeptBytes = std::size_t{1} << 30;

class Follower {
 public:
  Follower(const LaunchContext& context, const FleetOptions& options)
      : context_(context),
        options_(options),
        agent_(context, options,
               [this](FrameType type, std::string payload) { OnReport(type, payload); }) {}

  ExitCode Run() {
    Result<Channel> control = MeetCoordinator(context_, options_, agent_, signals_);
    if (!control.ok()) {
      agent_.End();
      // Told to end means that somebody else has failed, and says why.
      const bool told = control.status().code() == StatusCode::kTerminated;
      if (!told) fmt::print(stderr, "{}\n", control.status().message());
      return ExitCodeOf(control.status().code());
    }
    control_ = std::move(control).value();
    // Orders can have come together with the welcome.
    Obey();
    while (!dismissed_) {
      PollOnce();
      if (!control_->open() || (leave_at_ && leave_at_->Passed())) return Orphaned();
    }
    return LeaveWithCoordinator();
  }

 private:
  void OnReport(FrameType type, const std::string& payload) {
    if (type == FrameType::kData && options_.on_orphaned &&
        kept_.size() + payload.size() <= kMostKeptBytes) {
      kept_ += payload;
    }
    if (control_) control_->Send(Number(type), payload);
  }

  void PollOnce() {
    pollfd items[] = {{signals_.fd(), POLLIN, 0},
                      {control_->fd(), control_->poll_events(), 0},
                      {agent_.channel_fd(), agent_.poll_events(), 0},
                      {agent_.companion_fd(), POLLIN, 0}};
    int wake_ms = agent_.wake_ms();
    if (leave_at_) wake_ms = leave_at_->RemainingMs();
    poll(items, 4, wake_ms);
    const Signals::Arrived arrived = signals_.Take();
    if (arrived.end != 0 && !leave_at_) leave_at_ = Deadline::AfterSeconds(kGraceSeconds);
    if (items[2].revents != 0) agent_.OnChannel();
    if (items[3].revents != 0) agent_.OnCompanion();
    if (arrived.child) agent_.OnChildChange();
    agent_.Watch();
    control_->Flush();
    if (items[1].revents != 0) control_->Fill();
    Obey();
  }

  void Obey() {
    while (std::optional<Frame> order = control_->Take()) {
      if (order->type == Number(FrameType::kDismiss)) {
        dismissed_ = true;
        return;
      }
      agent_.Obey(*order);
    }
  }

  ExitCode Orphaned() {
    agent_.End();
    const RankEvidence evidence = agent_.Evidence(Deadline::AfterSeconds(0.1));
    if (options_.on_orphaned) options_.on_orphaned(kept_, evidence);
    fmt::print(stderr, "rank {} leaves because {}\n", context_.rank,
               leave_at_ ? "it was told to end" : "the coordinator (rank 0) is gone");
    return ExitCode::kEnvironment;
  }

  // The launcher should see the coordinator's exit code first: it is that of the launch.
  ExitCode LeaveWithCoordinator() {
    agent_.End();
    control_->Send(Number(FrameType::kDismissed), {});
    const Deadline deadline = Deadline::AfterSeconds(3);
    while (control_->open() && !deadline.Passed()) {
      pollfd item{control_->fd(), control_->poll_events(), 0};
      poll(&item, 1, deadline.RemainingMs());
      control_->Flush();
      control_->Fill();
    }
    const timespec moment{0, 50'000'000};
    nanosleep(&moment, nullptr);
    return ExitCode::kPass;
  }

  const LaunchContext context_;
  const FleetOptions options_;
  Signals signals_;
  RankAgent agent_;
  std::optional<Channel> control_;
  std::optional<Deadline> leave_at_;
  bool dismissed_ = false;
  std::string kept_;  // all outbox bytes of this rank, for on_orphaned
};

}  // namespace

ExitCode Follow(const LaunchContext& context, const FleetOptions& options) {
  return Follower(context, options).Run();
}

}  // namespace lockstep
