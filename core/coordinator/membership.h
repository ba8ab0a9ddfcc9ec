// Who belongs to the launch, how each agent is reached, and who is lost.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <vector>

#include "core/agent/rank_agent.h"
#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/control/channel.h"
#include "core/control/frames.h"
#include "core/control/heartbeat_monitor.h"
#include "core/control/roster.h"
#include "core/control/signals.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/launcher_watch.h"

namespace lockstep::coordinator {

using control::FrameType;

// What happened and was not taken yet.
class EventQueue {
 public:
  void Push(Event event) { events_.push_back(std::move(event)); }
  void Push(EventKind kind, int rank, int exit_code = 0, int signal = 0, Message message = {}) {
    Push(Event{kind, rank, std::move(message), exit_code, signal});
  }
  void PushTerminate(int signal) { events_.push_front({EventKind::kTerminate, 0, {}, 0, signal}); }
  bool empty() const { return events_.empty(); }
  const Event& front() const { return events_.front(); }
  Event Take();
  std::vector<Event> TakeData();
  // What was still to be told of a rank's process.
  void DropWorker(int rank);

 private:
  std::deque<Event> events_;
};

class Membership {
 public:
  // What others make of a report; false: no such report is known.
  using Report = std::function<bool(int rank, FrameType, const std::string& payload)>;

  Membership(const LaunchContext& context, const CoordinatorOptions& options, EventQueue& events,
             Report report);

  Status Meet();

  int size() const { return context_.size; }
  auto ranks() const { return std::views::iota(0, size()); }
  const std::vector<AgentInfo>& agents() const { return agents_; }
  const TickScale& scale() const { return agent_.scale(); }
  std::vector<verdict::RankPlace> places() const;
  bool lost(int rank) const { return At(rank).lost; }
  Loss loss(int rank) const { return At(rank).loss; }
  bool terminating() const { return terminating_; }  // the coordinator was told to end

  // The followers first: they work while our own agent does.
  void OrderAll(FrameType type, const std::string& payload);
  void Order(int rank, FrameType type, const std::string& payload = {});
  template <typename F>
  void OrderAll(const F& order) {
    OrderAll(F::kType, control::Encode(order));
  }
  template <typename F>
  void Order(int rank, const F& order) {
    Order(rank, F::kType, control::Encode(order));
  }

  // Questions have numbers; an answer tells that of its question.
  std::uint64_t NewRequest() { return ++request_; }
  std::uint64_t newest_request() const { return request_; }
  void NoteAnswer(int rank, std::uint64_t request) { At(rank).answered = request; }
  bool Answered(int rank, std::uint64_t request) const {
    return !At(rank).lost && At(rank).answered >= request;
  }
  // Polls until `done` holds for every rank that is not lost; false at the deadline.
  bool Await(Deadline deadline, const std::function<bool(int rank)>& done);
  // Polls until each has answered or is lost. Whoever works on its answer may wait for a processor:
  // only the silence that heartbeats bound is a loss. Told to end, it waits for a moment only.
  void AwaitAnswers(std::uint64_t request, std::optional<int> only = {});

  void PollOnce(Deadline deadline);
  // For what takes a millisecond as a rule.
  void NoteWait(std::int64_t ns);
  double SecondsAwake() const;  // Coordinator's
  // It did not answer a question before the end, nor heartbeats before that.
  void Suspect(int rank);
  void LoseSilent(int rank);
  // Of an agent that was told to end: we were not, however long we waited for it.
  void NoteToldAlone(int rank) { At(rank).told_alone = true; }

  void Replicate(const std::string& record);
  void TellBusy();  // Coordinator's
  void Rest();      // likewise
  void Dismiss(ExitCode code);

 private:
  struct Member {
    std::optional<control::Channel> channel;  // none: the coordinator's own rank
    bool lost = false;
    Loss loss = Loss::kNone;       // how; kLauncher, kTold: not lost, but will be
    bool told_alone = false;       // kTold: and we were not
    Loss suspected = Loss::kNone;  // it did not answer in time
    std::int64_t heard_ns = 0;     // awake time (HeartbeatMonitor) of its newest frame
    std::uint64_t answered = 0;    // number of the newest question
  };
  Member& At(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  const Member& At(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  void SendRoster(const std::vector<control::Contact>& contacts);
  void ReadMember(int rank);
  void ReadMembers(const pollfd* items);  // of the followers, in order
  void OnReport(int rank, FrameType type, const std::string& payload);
  void Lose(int rank, Loss loss);
  void OnLauncherGone(int rank);
  void OnToldToEnd(int rank);
  void KeepHeartbeats();
  void OrderRest(double seconds);

  const LaunchContext context_;
  const CoordinatorOptions options_;
  EventQueue& events_;
  const Report report_;
  control::Signals signals_;
  LauncherWatch launcher_;
  std::optional<control::HeartbeatMonitor> heartbeats_;
  agent::RankAgent agent_;
  std::vector<Member> members_;
  std::vector<AgentInfo> agents_;
  std::vector<int> candidates_;  // for our place, ascending
  std::uint64_t request_ = 0;
  bool terminating_ = false;
  bool busy_ = false;                         // until the next poll
  std::int64_t polled_ns_ = 0;                // when the newest poll was over; 0: none was
  std::optional<std::int64_t> late_ns_ = {};  // when somebody was late
};

}  // namespace lockstep::coordinator
