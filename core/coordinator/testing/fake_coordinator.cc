// Plays a list: see the header. What waits for nothing is there for whoever asks next; a step After
// or When holds back all that follows it.
#include "core/coordinator/testing/fake_coordinator.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace lockstep::coordinator {
namespace {

// Waits in a row for which nothing came: more, and the code under test waits for ever.
constexpr int kMostIdle = 20'000;

ScriptStep EventOf(EventKind kind, int rank) {
  ScriptStep step;
  step.event.kind = kind;
  step.event.rank = rank;
  return step;
}

}  // namespace

ScriptStep Ranks(std::vector<verdict::RankEvidence> ranks) {
  ScriptStep step;
  step.kind = ScriptStep::Kind::kRanks;
  step.ranks = std::move(ranks);
  return step;
}

ScriptStep After(double seconds) {
  ScriptStep step;
  step.kind = ScriptStep::Kind::kAfter;
  step.seconds = seconds;
  return step;
}

ScriptStep When(std::string command) {
  ScriptStep step;
  step.kind = ScriptStep::Kind::kWhen;
  step.command = std::move(command);
  return step;
}

ScriptStep Refused(Status status) {
  ScriptStep step;
  step.kind = ScriptStep::Kind::kRefused;
  step.refusal = std::move(status);
  return step;
}

ScriptStep Late() {
  ScriptStep step;
  step.kind = ScriptStep::Kind::kLate;
  return step;
}

ScriptStep Exited(int rank, int code) {
  ScriptStep step = EventOf(EventKind::kExited, rank);
  step.event.exit_code = code;
  return step;
}

ScriptStep Signalled(int rank, int signal) {
  ScriptStep step = EventOf(EventKind::kSignalled, rank);
  step.event.signal = signal;
  return step;
}

ScriptStep Stopped(int rank, int signal) {
  ScriptStep step = EventOf(EventKind::kStopped, rank);
  step.event.signal = signal;
  return step;
}

ScriptStep Of(EventKind kind, int rank) { return EventOf(kind, rank); }

ScriptStep Lost(int rank, verdict::Loss loss) {
  ScriptStep step = EventOf(EventKind::kLost, rank);
  step.loss = loss;
  return step;
}

ScriptStep Said(int rank, std::uint32_t type, std::string payload) {
  ScriptStep step = EventOf(EventKind::kMessage, rank);
  step.event.message = {type, std::move(payload)};
  return step;
}

ScriptStep Wrote(int rank, std::string bytes) {
  ScriptStep step = EventOf(EventKind::kData, rank);
  step.event.message.payload = std::move(bytes);
  return step;
}

ScriptStep FromPlugin(int rank, std::string report) {
  ScriptStep step = EventOf(EventKind::kPlugin, rank);
  step.event.message.payload = std::move(report);
  return step;
}

ScriptStep OfFault(int rank, std::uint32_t fault, control::FaultNews news, std::string note) {
  ScriptStep step = EventOf(EventKind::kFault, rank);
  step.event.message = {fault, std::move(note)};
  step.event.news = news;
  return step;
}

FakeCoordinator::FakeCoordinator(int ranks, Script steps, Name name,
                                 const std::vector<std::string>& hosts)
    : steps_(std::move(steps)), name_(std::move(name)), until_(Deadline::AfterNs(0)) {
  std::vector<verdict::RankEvidence> nothing(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string host = hosts.empty() ? "node0" : hosts[static_cast<std::size_t>(rank)];
    control::AgentInfo& agent = agents_.emplace_back();
    agent.rank = rank;
    agent.host = host;
    agent.boot_id = host;
    places_.push_back({host, verdict::Loss::kNone});
    clocks_.Add(rank, host, host);
    nothing[static_cast<std::size_t>(rank)].rank = rank;
  }
  looks_ = {nothing};
}

bool FakeCoordinator::WasCommanded(const std::string& begin) {
  for (std::size_t i = answered_; i < commands_.size(); ++i) {
    if (!commands_[i].starts_with(begin)) continue;
    answered_ = i + 1;
    return true;
  }
  return false;
}

void FakeCoordinator::Show(std::vector<verdict::RankEvidence> ranks) {
  for (verdict::RankEvidence& rank : ranks) {
    for (journal::JournalEvent& event : rank.journal.events) event.ticks += kBeginNs - kBeforeNs;
  }
  if (std::exchange(shown_, false)) looks_.clear();
  looks_.push_back(std::move(ranks));
  shown_ns_ = now_ns_;
}

ScriptStep* FakeCoordinator::Reach(Deadline deadline) {
  for (; next_ < steps_.size(); ++next_) {
    ScriptStep& step = steps_[next_];
    if (step.kind == ScriptStep::Kind::kEvent) return &step;
    if (step.kind == ScriptStep::Kind::kRefused) break;
    if (step.kind == ScriptStep::Kind::kWhen && !WasCommanded(step.command)) break;
    if (step.kind == ScriptStep::Kind::kRanks) Show(step.ranks);
    if (step.kind == ScriptStep::Kind::kLate) late_ns_ = now_ns_;
    if (step.kind == ScriptStep::Kind::kAfter) {
      if (!std::exchange(waits_, true)) until_ = Deadline::AfterSeconds(step.seconds);
      if (until_.RemainingNs() > deadline.RemainingNs()) break;
      now_ns_ += std::max<std::int64_t>(until_.RemainingNs(), 0);
      waits_ = false;
    }
  }
  now_ns_ += std::max<std::int64_t>(deadline.RemainingNs(), 0);
  return nullptr;
}

Event FakeCoordinator::Next(Deadline deadline) {
  const ScriptStep* const step = Reach(deadline);
  shown_ = true;
  if (step == nullptr) {
    LOCKSTEP_CHECK(++idle_ < 2 * kMostIdle, "nothing ends this run");
    if (idle_ != kMostIdle) return Event{};
    Note("nothing that is listed ends this run");
    return Of(EventKind::kTerminate).event;
  }
  HearOfLosses();
  ++next_;
  return step->event;
}

void FakeCoordinator::HearOfLosses() {
  for (std::size_t i = next_; i < steps_.size(); ++i) {
    const ScriptStep& step = steps_[i];
    if (step.kind == ScriptStep::Kind::kAfter || step.kind == ScriptStep::Kind::kWhen) return;
    if (step.loss == verdict::Loss::kNone) continue;
    places_[static_cast<std::size_t>(step.event.rank)].loss = step.loss;
  }
}

std::vector<verdict::RankEvidence> FakeCoordinator::Glance() {
  HearOfLosses();
  std::vector<verdict::RankEvidence> look = looks_.front();
  for (verdict::RankEvidence& rank : look)
    rank.seconds_silent += static_cast<double>(now_ns_ - shown_ns_) * 1e-9;
  if (looks_.size() > 1) looks_.erase(looks_.begin());
  return look;
}

std::vector<verdict::RankEvidence> FakeCoordinator::Collect() {
  Note("collect");
  return Glance();
}

std::vector<journal::Journal> FakeCoordinator::Journals(std::size_t) {
  std::vector<journal::Journal> journals;
  for (const verdict::RankEvidence& rank : looks_.front()) journals.push_back(rank.journal);
  return journals;
}

std::vector<Event> FakeCoordinator::TakeData() {
  std::vector<Event> data;
  for (std::size_t i = next_; i < steps_.size(); ++i) {
    const ScriptStep::Kind kind = steps_[i].kind;
    if (kind != ScriptStep::Kind::kEvent && kind != ScriptStep::Kind::kRanks) break;
    if (kind == ScriptStep::Kind::kRanks || steps_[i].event.kind != EventKind::kData) continue;
    data.push_back(steps_[i].event);
    steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(i--));
  }
  return data;
}

Status FakeCoordinator::Start(std::string command) {
  Note(std::move(command));
  Reach(Deadline::AfterNs(0));
  if (next_ >= steps_.size() || steps_[next_].kind != ScriptStep::Kind::kRefused) return OkStatus();
  Status refusal = steps_[next_++].refusal;
  HearOfLosses();
  return refusal;
}

Status FakeCoordinator::StartWorkers(const std::vector<control::WorkerSetup>& setups) {
  ++lifetime_;
  std::string command = "start";
  for (std::size_t rank = 0; rank < setups.size(); ++rank) {
    if (!setups[rank].empty()) command += fmt::format(", rank {} set up", rank);
  }
  return Start(std::move(command));
}

Status FakeCoordinator::StartWorker(int rank) { return Start(fmt::format("start {}", rank)); }

void FakeCoordinator::MeasureClocks(bool thoroughly) { Note(thoroughly ? "all clocks" : "clocks"); }

void FakeCoordinator::Send(int rank, const control::Message& message) {
  Note(fmt::format("send {} {}", rank, name_(message)));
}

void FakeCoordinator::SendAll(const control::Message& message) { Note("send * " + name_(message)); }

void FakeCoordinator::Signal(int rank, int signal) {
  Note(fmt::format("signal {} {}", rank, signal));
}

void FakeCoordinator::Inject(int rank, std::uint32_t fault, const control::AgentFault& order) {
  Note(fmt::format("inject {} fault {}: kind {} amount {} for {} s", rank, fault,
                   static_cast<int>(order.kind), order.amount, order.duration_seconds));
}

void FakeCoordinator::SendToPlugin(int rank, const std::string& order) {
  Note(fmt::format("plugin {} {}", rank, order));
}

void FakeCoordinator::EndWorkers() { Note("end"); }

void FakeCoordinator::EndWorker(int rank) { Note(fmt::format("end {}", rank)); }

bool FakeCoordinator::AwaitExits(Deadline deadline) {
  Note("await exits");
  for (int left = 0; left < size(); ++left, ++next_) {
    const ScriptStep* const step = Reach(deadline);
    if (step == nullptr || step->event.kind != EventKind::kExited) return false;
  }
  return true;
}

}  // namespace lockstep::coordinator
