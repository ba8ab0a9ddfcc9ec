// Failure -> abort -> rebuild -> resume, as the coordinator orders it.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/base/clock.h"
#include "core/journal/journal.h"
#include "stress/harness/conductor.h"

namespace lockstep::stress::harness {
namespace {

constexpr double kGlanceSeconds = 1;
constexpr double kEndSeconds = 10;
constexpr double kWatchResumeSeconds = 30;
// The answer of a worker comes a moment after its own deadline.
constexpr double kAnswerSeconds = 1;
// The error of a rank far away comes after those that echo it.
constexpr double kEchoSeconds = 0.2;
constexpr double kNever = std::numeric_limits<double>::infinity();

bool OnlyEchoes(const verdict::Judgement& judgement) {
  const std::vector<int>& culprits = judgement.findings.front().culprits;
  return !culprits.empty() && std::all_of(culprits.begin(), culprits.end(), [&](int rank) {
    return verdict::IsEcho(judgement.outcomes[static_cast<std::size_t>(rank)].evidence);
  });
}

}  // namespace

double StressConductor::SecondsBetween(Ticks from, Ticks to) const {
  if (from == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(static_cast<std::int64_t>(to - from)) * ns_per_tick_ * 1e-9;
}

bool StressConductor::HostsAreLost() const {
  const std::vector<verdict::RankPlace> places = coordinator_.places();
  return std::any_of(places.begin(), places.end(), [](const verdict::RankPlace& place) {
    return place.loss != verdict::Loss::kNone;
  });
}

bool StressConductor::Parked(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return Recovers() && !gone_[index] && reports_[index] && !reports_[index]->status.ok();
}

void StressConductor::OnRecoveryMessage(const coordinator::Event& event) {
  const auto rank = static_cast<std::size_t>(event.rank);
  const std::string& text = event.message.payload;
  if (event.message.type == kAbortedMessage) aborted_[rank] = std::atoi(text.c_str());
  if (event.message.type == kConnectingMessage) {
    const Result<Membership> place = DecodeMembership(text);
    if (place.ok()) places_[rank] = *place;
  }
  if (event.message.type == kConnectedMessage) {
    int generation = -1;
    unsigned long long ticks = 0;
    const int read = std::sscanf(text.c_str(), "%d %llu", &generation, &ticks);
    if (read == 2 && generation == generation_.number) connected_at_[rank] = ticks;
  }
}

bool StressConductor::TakeEventsUntil(const std::function<bool()>& done, Deadline deadline) {
  while (!done()) {
    if (deadline.Passed() || CutShort()) return false;
    Handle(coordinator_.Next(NextWake().Earlier(deadline)));
    DoDue();
  }
  return true;
}

// A process that is gone is proof enough: nobody waits until the others have noticed.
std::optional<StressConductor::Failure> StressConductor::Departed() {
  const std::vector<verdict::RankEvidence> evidence =
      Judged(coordinator_.Glance(Deadline::AfterSeconds(kGlanceSeconds)));
  verdict::Judgement judgement =
      JudgeCase(case_->scenario, options_.backend, evidence, kNever, generation_);
  if (judgement.findings.empty() || !judgement.findings.front().proved) return std::nullopt;
  const std::vector<int>& culprits = judgement.findings.front().culprits;
  const bool all_gone = std::all_of(culprits.begin(), culprits.end(), [&](int rank) {
    return gone_[static_cast<std::size_t>(rank)];
  });
  if (culprits.empty() || !all_gone) return std::nullopt;
  Ticks newest = 0;
  for (const int rank : culprits) {
    const auto& events = evidence[static_cast<std::size_t>(rank)].journal.events;
    if (!events.empty()) newest = std::max(newest, events.back().ticks);
  }
  const Ticks now = NowTicks();
  return Failure{std::move(judgement), now, SecondsBetween(newest, now)};
}

std::optional<StressConductor::Failure> StressConductor::FailureAt(
    const coordinator::Event& event, coordinator::StandstillWatch& watch) {
  if (overdue_) {
    Failure failure{*std::exchange(overdue_, std::nullopt), NowTicks(), options_.deadline_seconds};
    return failure;
  }
  coordinator::Event look = event;
  const bool again = std::exchange(look_, false);
  const bool left = event.kind == coordinator::EventKind::kExited ||
                    event.kind == coordinator::EventKind::kSignalled;
  if (again || left) {
    if (std::optional<Failure> failure = Departed()) return failure;
  }
  // A rank that gives up says so, and is then silent for good: nobody is told of it once more.
  bool parked = false;
  for (const int rank : generation_.members) parked = parked || Parked(rank);
  if (parked) look.kind = coordinator::EventKind::kQuiet;
  std::optional<coordinator::Standstill> standstill = watch.OnEvent(look);
  look_ = parked && !standstill;
  if (!standstill) return std::nullopt;
  // Whose error those tell may say so a moment later.
  if (OnlyEchoes(standstill->judgement)) {
    if (!echoes_until_) echoes_until_ = Deadline::AfterSeconds(kEchoSeconds);
    look_ = !echoes_until_->Passed();
    if (look_) return std::nullopt;
  }
  echoes_until_.reset();
  return Failure{std::move(standstill->judgement), NowTicks(), standstill->seconds_after};
}

void StressConductor::EndRank(int rank) {
  const auto index = static_cast<std::size_t>(rank);
  coordinator_.EndWorker(rank, Deadline::AfterSeconds(kEndSeconds));
  gone_[index] = true;
}

void StressConductor::Recover(const Failure& failure) {
  if (!detected_) detected_ = failure.seconds_after;
  Recovery recovery;
  recovery.mode = case_->scenario.recovery->mode;
  recovery.generation = generation_.number + 1;
  recovery.failure = failure.judgement;
  std::vector<int> survivors;
  const std::vector<int> lost = LostIn(failure.judgement, gone_);
  for (const int rank : generation_.members) {
    const auto index = static_cast<std::size_t>(rank);
    const bool finished = reports_[index] && reports_[index]->status.ok();
    const bool is_lost = std::find(lost.begin(), lost.end(), rank) != lost.end();
    if (is_lost) recovery.lost.push_back(rank);
    if (!is_lost && !finished && !gone_[index]) survivors.push_back(rank);
  }
  if (survivors.empty() || recoveries_.size() >= kMostRecoveries) {
    over_ = true;
    return;
  }
  const std::vector<verdict::RankEvidence> evidence =
      coordinator_.Glance(Deadline::AfterSeconds(kGlanceSeconds));
  std::vector<verdict::RankEvidence> to_blame;
  for (const int rank : failure.judgement.findings.front().culprits) {
    to_blame.push_back(evidence[static_cast<std::size_t>(rank)]);
  }
  recovery.detect_seconds =
      SecondsBetween(FaultTicks(to_blame, applied_at_, rebuilt_at_), failure.seen_at);
  const bool done = AbortAll(survivors, recovery) && AwaitReady(survivors, recovery) &&
                    Rebuild(survivors, recovery);
  if (done) recovery.outcome = plan::RecoveryOutcome::kResumed;
  recoveries_.push_back(std::move(recovery));
  if (done) resume_by_ = Deadline::AfterSeconds(kWatchResumeSeconds);
}

bool StressConductor::AbortAll(std::vector<int>& survivors, Recovery& recovery) {
  const int generation = generation_.number;
  const std::vector<verdict::RankEvidence> evidence =
      coordinator_.Glance(Deadline::AfterSeconds(kGlanceSeconds));
  std::vector<bool> waits;
  for (const verdict::RankEvidence& rank : evidence)
    waits.push_back(journal::OpenOperation(rank.journal).has_value());
  const Ticks ordered = NowTicks();
  const double seconds = case_->scenario.recovery->abort_deadline_seconds;
  for (const int rank : survivors) {
    coordinator_.Send(rank, {kAbortMessage, fmt::format("{}", generation)});
  }
  const auto back = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    return gone_[index] || StillStarts(evidence[index]) ||
           (aborted_[index] == generation && (!waits[index] || reports_[index]));
  };
  const bool all =
      TakeEventsUntil([&] { return std::all_of(survivors.begin(), survivors.end(), back); },
                      Deadline::AfterSeconds(seconds));
  if (!all && CutShort()) return false;
  if (!all) {
    std::vector<int> hung;
    for (const int rank : survivors) {
      if (!back(rank)) hung.push_back(rank);
    }
    RetellOutcomes(hung, recovery);
    for (const int rank : hung) EndRank(rank);
    recovery.outcome = plan::RecoveryOutcome::kAbortHung;
    recovery.finding = AbortHung(std::move(hung), seconds);
    over_ = true;
    return false;
  }
  recovery.abort_seconds = SecondsBetween(ordered, NowTicks());
  return true;
}

void StressConductor::RetellOutcomes(const std::vector<int>& ranks, Recovery& recovery) {
  if (ranks.empty()) return;
  const std::vector<verdict::RankEvidence> evidence =
      Judged(coordinator_.Glance(Deadline::AfterSeconds(kGlanceSeconds)));
  const verdict::Judgement now =
      JudgeCase(case_->scenario, options_.backend, evidence, kNever, generation_);
  for (const int rank : ranks) {
    const auto index = static_cast<std::size_t>(rank);
    recovery.failure.outcomes[index] = now.outcomes[index];
    if (!gone_[index] && now.outcomes[index].outcome == verdict::Outcome::kFinished) {
      recovery.failure.outcomes[index].outcome = verdict::Outcome::kHung;
    }
  }
}

// Who was not in the library comes when it calls it next. A rank that is only slow is not lost.
bool StressConductor::AwaitReady(std::vector<int>& survivors, Recovery& recovery) {
  const auto ready = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    return gone_[index] || reports_[index].has_value();
  };
  const bool all =
      TakeEventsUntil([&] { return std::all_of(survivors.begin(), survivors.end(), ready); },
                      Deadline::AfterSeconds(options_.deadline_seconds));
  if (!all && CutShort()) return false;
  overdue_.reset();
  std::vector<int> remaining;
  std::vector<int> lost;
  std::int64_t completed = std::numeric_limits<std::int64_t>::max();
  for (const int rank : survivors) {
    const auto index = static_cast<std::size_t>(rank);
    if (!Parked(rank)) {
      const bool finished = reports_[index] && reports_[index]->status.ok();
      if (!finished) lost.push_back(rank);
      continue;
    }
    remaining.push_back(rank);
    completed = std::min(completed, reports_[index]->completed);
  }
  RetellOutcomes(lost, recovery);
  recovery.lost.insert(recovery.lost.end(), lost.begin(), lost.end());
  survivors = remaining;
  recovery.first_iteration = survivors.empty() ? 0 : completed;
  if (!survivors.empty()) return true;
  over_ = true;
  return false;
}

bool StressConductor::Rebuild(const std::vector<int>& survivors, Recovery& recovery) {
  const bool restart = recovery.mode == plan::RecoveryPlan::Mode::kRestart;
  const Ticks began = NowTicks();
  Generation next;
  next.number = recovery.generation;
  next.since.assign(gone_.size(), 0);
  for (const verdict::RankEvidence& rank :
       coordinator_.Glance(Deadline::AfterSeconds(kGlanceSeconds))) {
    const auto& events = rank.journal.events;
    if (!events.empty()) next.since[static_cast<std::size_t>(rank.rank)] = events.back().index;
  }
  next.members = survivors;
  for (const int rank : recovery.lost) {
    EndRank(rank);
    reports_[static_cast<std::size_t>(rank)].reset();
    if (!restart) continue;
    next.members.push_back(rank);
    next.since[static_cast<std::size_t>(rank)] = 0;
    const Status started = coordinator_.StartWorker(rank);
    if (!started.ok()) {
      cut_short_ = started.message();
      return false;
    }
    gone_[static_cast<std::size_t>(rank)] = false;
  }
  std::sort(next.members.begin(), next.members.end());
  recovery.members = next.members;
  generation_ = std::move(next);
  connected_at_.assign(gone_.size(), 0);
  places_.assign(gone_.size(), std::nullopt);
  closing_.reset();
  sighting_.reset();
  Membership membership;
  membership.generation = recovery.generation;
  membership.size = static_cast<int>(generation_.members.size());
  membership.first_iteration = recovery.first_iteration;
  membership.members = generation_.members;
  for (std::size_t i = 0; i < fired_.size(); ++i) {
    if (fired_[i]) membership.fired.push_back(static_cast<std::int64_t>(i));
  }
  for (const int rank : generation_.members) {
    const bool survived = Parked(rank);
    reports_[static_cast<std::size_t>(rank)].reset();
    coordinator_.Send(rank, survived
                                ? control::Message{kRebuildMessage, EncodeMembership(membership)}
                                : control::Message{kCaseMessage, EncodedOrder(membership)});
    ++membership.rank;
  }
  return AwaitConnected(recovery, began);
}

// A rank that takes another place than the others were told of makes a communicator of its own.
std::optional<verdict::Finding> StressConductor::FindWrongPlace() const {
  int expected = 0;
  const int size = static_cast<int>(generation_.members.size());
  for (const int rank : generation_.members) {
    const std::optional<Membership>& place = places_[static_cast<std::size_t>(rank)];
    if (place && (place->rank != expected || place->size != size)) {
      return WrongPlace(rank, {place->rank, place->size}, {expected, size});
    }
    ++expected;
  }
  return std::nullopt;
}

bool StressConductor::AwaitConnected(Recovery& recovery, Ticks began) {
  const auto members_are = [&](const auto& test) {
    return std::all_of(generation_.members.begin(), generation_.members.end(),
                       [&](int rank) { return test(static_cast<std::size_t>(rank)); });
  };
  const auto connected = [&] {
    return members_are([&](std::size_t rank) { return connected_at_[rank] > 0; });
  };
  const double seconds = case_->scenario.recovery->connect_deadline_seconds;
  TakeEventsUntil(
      [&] {
        return connected() || FindWrongPlace() ||
               !members_are([&](std::size_t rank) { return !gone_[rank]; });
      },
      Deadline::AfterSeconds(seconds + kAnswerSeconds));
  overdue_.reset();  // who waits for the others to connect is silent, perhaps for longer than -T
  if (connected() && !FindWrongPlace()) {
    for (const Ticks ticks : connected_at_) rebuilt_at_ = std::max(rebuilt_at_, ticks);
    recovery.rebuild_seconds = SecondsBetween(began, rebuilt_at_);
    return true;
  }
  recovery.finding = FindWrongPlace();
  if (!recovery.finding && CutShort()) return false;
  if (!recovery.finding && !members_are([&](std::size_t rank) { return !gone_[rank]; })) {
    look_ = true;  // another loss, to be recovered from in its turn
    return false;
  }
  // Who did not even try is who the others waited for.
  std::vector<int> missing, absent;
  for (const int rank : generation_.members) {
    const auto index = static_cast<std::size_t>(rank);
    if (connected_at_[index] == 0) missing.push_back(rank);
    if (!places_[index]) absent.push_back(rank);
  }
  if (!recovery.finding) {
    recovery.finding = NotConnected(std::move(absent.empty() ? missing : absent), seconds);
  }
  over_ = true;
  return false;
}

void StressConductor::LookForResume(const std::vector<journal::Journal>& journals) {
  if (resume_by_->Passed()) resume_by_.reset();
  const std::optional<Ticks> at = ResumedAt(journals, generation_);
  if (!at) return;
  for (Recovery& recovery : recoveries_) {
    if (recovery.generation != generation_.number) continue;  // a later one may have failed since
    recovery.resume_seconds = std::max(0.0, SecondsBetween(rebuilt_at_, *at));
  }
  resume_by_.reset();
}

}  // namespace lockstep::stress::harness
