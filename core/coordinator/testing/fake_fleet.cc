// Plays a list: see the header. What waits for nothing is there for whoever asks next; a step After
// or When holds back all that follows it.
#include "core/coordinator/testing/fake_fleet.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace lockstep::coordinator {
namespace {

// Waits in a row for which nothing came: more, and the code under test waits for ever.
constexpr int kMostIdle = 20'000;

FleetStep EventOf(FleetEventKind kind, int rank) {
  FleetStep step;
  step.event.kind = kind;
  step.event.rank = rank;
  return step;
}

}  // namespace

FleetStep Ranks(std::vector<verdict::RankEvidence> ranks) {
  FleetStep step;
  step.kind = FleetStep::Kind::kRanks;
  step.ranks = std::move(ranks);
  return step;
}

FleetStep After(double seconds) {
  FleetStep step;
  step.kind = FleetStep::Kind::kAfter;
  step.seconds = seconds;
  return step;
}

FleetStep When(std::string command) {
  FleetStep step;
  step.kind = FleetStep::Kind::kWhen;
  step.command = std::move(command);
  return step;
}

FleetStep Refused(Status status) {
  FleetStep step;
  step.kind = FleetStep::Kind::kRefused;
  step.refusal = std::move(status);
  return step;
}

FleetStep Exited(int rank, int code) {
  FleetStep step = EventOf(FleetEventKind::kExited, rank);
  step.event.exit_code = code;
  return step;
}

FleetStep Signalled(int rank, int signal) {
  FleetStep step = EventOf(FleetEventKind::kSignalled, rank);
  step.event.signal = signal;
  return step;
}

FleetStep Stopped(int rank, int signal) {
  FleetStep step = EventOf(FleetEventKind::kStopped, rank);
  step.event.signal = signal;
  return step;
}

FleetStep Of(FleetEventKind kind, int rank) { return EventOf(kind, rank); }

FleetStep Lost(int rank, verdict::Loss loss) {
  FleetStep step = EventOf(FleetEventKind::kLost, rank);
  step.loss = loss;
  return step;
}

FleetStep Said(int rank, std::uint32_t type, std::string payload) {
  FleetStep step = EventOf(FleetEventKind::kMessage, rank);
  step.event.message = {type, std::move(payload)};
  return step;
}

FleetStep Wrote(int rank, std::string bytes) {
  FleetStep step = EventOf(FleetEventKind::kData, rank);
  step.event.message.payload = std::move(bytes);
  return step;
}

FleetStep FromCompanion(int rank, std::string report) {
  FleetStep step = EventOf(FleetEventKind::kCompanion, rank);
  step.event.message.payload = std::move(report);
  return step;
}

FleetStep OfFault(int rank, std::uint32_t fault, control::FaultNews news, std::string note) {
  FleetStep step = EventOf(FleetEventKind::kFault, rank);
  step.event.message = {fault, std::move(note)};
  step.event.news = news;
  return step;
}

FakeFleet::FakeFleet(int ranks, FleetSteps steps, Name name, const std::vector<std::string>& hosts)
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

bool FakeFleet::WasCommanded(const std::string& begin) {
  for (std::size_t i = answered_; i < commands_.size(); ++i) {
    if (!commands_[i].starts_with(begin)) continue;
    answered_ = i + 1;
    return true;
  }
  return false;
}

void FakeFleet::Show(std::vector<verdict::RankEvidence> ranks) {
  for (verdict::RankEvidence& rank : ranks) {
    for (journal::JournalEvent& event : rank.journal.events) event.ticks += kBeginNs - kBeforeNs;
  }
  if (std::exchange(shown_, false)) looks_.clear();
  looks_.push_back(std::move(ranks));
}

FleetStep* FakeFleet::Reach(Deadline deadline) {
  for (; next_ < steps_.size(); ++next_) {
    FleetStep& step = steps_[next_];
    if (step.kind == FleetStep::Kind::kEvent) return &step;
    if (step.kind == FleetStep::Kind::kRefused) break;
    if (step.kind == FleetStep::Kind::kWhen && !WasCommanded(step.command)) break;
    if (step.kind == FleetStep::Kind::kRanks) Show(step.ranks);
    if (step.kind == FleetStep::Kind::kAfter) {
      if (!std::exchange(waits_, true)) until_ = Deadline::AfterSeconds(step.seconds);
      if (until_.RemainingNs() > deadline.RemainingNs()) break;
      now_ns_ += std::max<std::int64_t>(until_.RemainingNs(), 0);
      waits_ = false;
    }
  }
  now_ns_ += std::max<std::int64_t>(deadline.RemainingNs(), 0);
  return nullptr;
}

FleetEvent FakeFleet::Next(Deadline deadline) {
  const FleetStep* const step = Reach(deadline);
  shown_ = true;
  if (step == nullptr) {
    LOCKSTEP_CHECK(++idle_ < 2 * kMostIdle, "nothing ends this run");
    if (idle_ != kMostIdle) return FleetEvent{};
    Note("nothing that is listed ends this run");
    return Of(FleetEventKind::kTerminate).event;
  }
  HearOfLosses();
  ++next_;
  return step->event;
}

void FakeFleet::HearOfLosses() {
  for (std::size_t i = next_; i < steps_.size(); ++i) {
    const FleetStep& step = steps_[i];
    if (step.kind == FleetStep::Kind::kAfter || step.kind == FleetStep::Kind::kWhen) return;
    if (step.loss == verdict::Loss::kNone) continue;
    places_[static_cast<std::size_t>(step.event.rank)].loss = step.loss;
  }
}

std::vector<verdict::RankEvidence> FakeFleet::Glance(Deadline) {
  HearOfLosses();
  std::vector<verdict::RankEvidence> look = looks_.front();
  if (looks_.size() > 1) looks_.erase(looks_.begin());
  return look;
}

std::vector<verdict::RankEvidence> FakeFleet::Collect(Deadline deadline) {
  Note("collect");
  return Glance(deadline);
}

std::vector<journal::Journal> FakeFleet::Journals(std::size_t, Deadline) {
  std::vector<journal::Journal> journals;
  for (const verdict::RankEvidence& rank : looks_.front()) journals.push_back(rank.journal);
  return journals;
}

std::vector<FleetEvent> FakeFleet::TakeData(Deadline) {
  std::vector<FleetEvent> data;
  for (std::size_t i = next_; i < steps_.size(); ++i) {
    const FleetStep::Kind kind = steps_[i].kind;
    if (kind != FleetStep::Kind::kEvent && kind != FleetStep::Kind::kRanks) break;
    if (kind == FleetStep::Kind::kRanks || steps_[i].event.kind != FleetEventKind::kData) continue;
    data.push_back(steps_[i].event);
    steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(i--));
  }
  return data;
}

Status FakeFleet::Start(std::string command) {
  Note(std::move(command));
  Reach(Deadline::AfterNs(0));
  if (next_ >= steps_.size() || steps_[next_].kind != FleetStep::Kind::kRefused) return OkStatus();
  Status refusal = steps_[next_++].refusal;
  HearOfLosses();
  return refusal;
}

Status FakeFleet::StartWorkers(const std::vector<control::WorkerSetup>& setups) {
  ++lifetime_;
  std::string command = "start";
  for (std::size_t rank = 0; rank < setups.size(); ++rank) {
    if (!setups[rank].empty()) command += fmt::format(", rank {} set up", rank);
  }
  return Start(std::move(command));
}

Status FakeFleet::StartWorker(int rank) { return Start(fmt::format("start {}", rank)); }

void FakeFleet::MeasureClocks(bool thoroughly) { Note(thoroughly ? "all clocks" : "clocks"); }

void FakeFleet::Send(int rank, const control::Message& message) {
  Note(fmt::format("send {} {}", rank, name_(message)));
}

void FakeFleet::SendAll(const control::Message& message) { Note("send * " + name_(message)); }

void FakeFleet::Signal(int rank, int signal) { Note(fmt::format("signal {} {}", rank, signal)); }

void FakeFleet::Inject(int rank, std::uint32_t fault, const control::AgentFault& order) {
  Note(fmt::format("inject {} fault {}: kind {} amount {} for {} s", rank, fault,
                   static_cast<int>(order.kind), order.amount, order.duration_seconds));
}

void FakeFleet::SendToCompanion(int rank, const std::string& order) {
  Note(fmt::format("companion {} {}", rank, order));
}

void FakeFleet::EndWorkers(Deadline) { Note("end"); }

void FakeFleet::EndWorker(int rank, Deadline) { Note(fmt::format("end {}", rank)); }

bool FakeFleet::AwaitExits(Deadline deadline) {
  Note("await exits");
  for (int left = 0; left < size(); ++left, ++next_) {
    const FleetStep* const step = Reach(deadline);
    if (step == nullptr || step->event.kind != FleetEventKind::kExited) return false;
  }
  return true;
}

}  // namespace lockstep::coordinator
