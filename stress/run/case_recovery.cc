// A failure is recovered from in steps, each of which has a deadline: the survivors give their
// communicator up, come back from what they were in, take their places, and connect anew. What is
// lost meanwhile is a failure of its own, to be recovered from in its turn.
#include "stress/run/case_recovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/base/clock.h"
#include "core/journal/journal.h"
#include "core/verdict/rank_view.h"

namespace lockstep::stress::run {
namespace {

constexpr double kWatchResumeSeconds = 30;
// The answer of a worker comes a moment after its own deadline.
constexpr double kAnswerSeconds = 1;
// The error of a rank far away comes after those that echo it.
constexpr double kEchoSeconds = 0.2;

bool Contains(const std::vector<int>& ranks, int rank) {
  return std::ranges::count(ranks, rank) > 0;
}

bool OnlyEchoes(const verdict::Judgement& judgement) {
  const std::vector<int>& culprits = judgement.findings.front().culprits;
  return !culprits.empty() && std::ranges::all_of(culprits, [&](int rank) {
    return verdict::IsEcho(OfRank(judgement.outcomes, rank).evidence);
  });
}

}  // namespace

CaseRecovery::CaseRecovery(coordinator::Coordinator& coordinator, const CaseOptions& options,
                           CaseState& state, RanksAwaited::TakeEvents take_events)
    : coordinator_(coordinator),
      options_(options),
      state_(state),
      ranks_(coordinator, state, std::move(take_events)),
      ns_per_tick_(CalibrateTicks().ns_per_tick) {}

double CaseRecovery::SecondsBetween(Ticks from, Ticks to) const {
  if (from == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(static_cast<std::int64_t>(to - from)) * ns_per_tick_ * 1e-9;
}

bool CaseRecovery::AnyMember(bool (RankState::*is)() const) const {
  const std::vector<int>& members = state_.generation.members;
  return std::ranges::any_of(members, [&](int rank) { return (state_.ranks[rank].*is)(); });
}

void CaseRecovery::EndRank(int rank) {
  coordinator_.EndWorker(rank);
  state_.ranks[rank].gone = true;
}

void CaseRecovery::OnMessage(const coordinator::Event& event) {
  RankState& rank = state_.ranks[event.rank];
  const std::string& text = event.message.payload;
  if (event.message.type == kAbortedMessage) rank.aborted = std::atoi(text.c_str());
  if (event.message.type == kConnectingMessage) {
    if (const auto place = control::Decode<Membership>(text)) rank.place = *place;
  }
  if (event.message.type == kConnectedMessage) {
    int generation = -1;
    unsigned long long ticks = 0;
    const int read = std::sscanf(text.c_str(), "%d %llu", &generation, &ticks);
    if (read == 2 && generation == state_.generation.number) rank.connected_at = ticks;
  }
}

// A process that is gone is proof enough: nobody waits until the others have noticed.
std::optional<CaseRecovery::Failure> CaseRecovery::Departed() {
  const std::vector<verdict::RankEvidence> evidence =
      Judged(state_, kNoDeadline, coordinator_.Glance());
  verdict::Judgement judgement = ProvedBy(state_, options_, evidence);
  if (judgement.findings.empty() || !judgement.findings.front().proved) return std::nullopt;
  const std::vector<int>& culprits = judgement.findings.front().culprits;
  const bool all_gone =
      std::ranges::all_of(culprits, [&](int rank) { return state_.ranks[rank].gone; });
  if (culprits.empty() || !all_gone) return std::nullopt;
  Ticks newest = 0;
  for (const int rank : culprits) {
    const auto& events = OfRank(evidence, rank).journal.events;
    if (!events.empty()) newest = std::max(newest, events.back().ticks);
  }
  const Ticks now = NowTicks();
  return Failure{std::move(judgement), now, SecondsBetween(newest, now)};
}

std::optional<CaseRecovery::Failure> CaseRecovery::FailureAt(const coordinator::Event& event,
                                                             coordinator::StandstillWatch& watch) {
  if (mine_.silence) {
    Failure failure{*std::exchange(mine_.silence, std::nullopt), NowTicks(),
                    options_.deadline_seconds};
    return failure;
  }
  coordinator::Event look = event;
  const bool again = std::exchange(mine_.look, false);
  const bool left = event.kind == coordinator::EventKind::kExited ||
                    event.kind == coordinator::EventKind::kSignalled;
  if (again || left) {
    if (std::optional<Failure> failure = Departed()) return failure;
  }
  // A rank that gives up says so, and is then silent for good: nobody is told of it once more.
  const bool parked = AnyMember(&RankState::raised);
  if (parked) look.kind = coordinator::EventKind::kQuiet;
  std::optional<coordinator::Standstill> standstill = watch.OnEvent(look);
  mine_.look = parked && !standstill;
  if (!standstill) return std::nullopt;
  // Whose error those tell may say so a moment later.
  if (OnlyEchoes(standstill->judgement)) {
    if (!mine_.echoes_until) mine_.echoes_until = Deadline::AfterSeconds(kEchoSeconds);
    mine_.look = !mine_.echoes_until->Passed();
    if (mine_.look) return std::nullopt;
  }
  mine_.echoes_until.reset();
  return Failure{std::move(standstill->judgement), NowTicks(), standstill->seconds_after};
}

void CaseRecovery::OnEvent(const coordinator::Event& event, coordinator::StandstillWatch& watch) {
  if (const std::optional<Failure> failure = FailureAt(event, watch)) Recover(*failure);
}

std::vector<int> CaseRecovery::SurvivorsOf(const Failure& failure,
                                           cases::Recovery& recovery) const {
  std::vector<int> survivors;
  const std::vector<int> lost = cases::LostIn(
      failure.judgement, state_.ranks.Map([](const RankState& rank) { return rank.gone; }));
  for (const int rank : state_.generation.members) {
    const bool is_lost = Contains(lost, rank);
    if (is_lost) recovery.lost.push_back(rank);
    const RankState& state = state_.ranks[rank];
    if (!is_lost && !state.finished() && !state.gone) survivors.push_back(rank);
  }
  return survivors;
}

double CaseRecovery::DetectSeconds(const Failure& failure) {
  const std::vector<verdict::RankEvidence> evidence = coordinator_.Glance();
  std::vector<verdict::RankEvidence> to_blame;
  for (const int rank : failure.judgement.findings.front().culprits) {
    to_blame.push_back(OfRank(evidence, rank));
  }
  std::vector<Ticks> applied;
  for (const FaultState& fault : state_.faults) applied.push_back(fault.applied_at);
  return SecondsBetween(cases::FaultTicks(to_blame, applied, mine_.rebuilt_at), failure.seen_at);
}

void CaseRecovery::Recover(const Failure& failure) {
  if (!state_.detected_seconds) state_.detected_seconds = failure.seconds_after;
  cases::Recovery recovery;
  recovery.mode = state_.stress_case->scenario.recovery->mode;
  recovery.generation = state_.generation.number + 1;
  recovery.failure = failure.judgement;
  std::vector<int> survivors = SurvivorsOf(failure, recovery);
  if (survivors.empty() || mine_.recoveries.size() >= cases::kMostRecoveries) {
    return state_.Take(Turn::kEnded);
  }
  recovery.detect_seconds = DetectSeconds(failure);
  state_.Take(Turn::kFailureSeen);
  const bool done = AbortAll(survivors, recovery) && AwaitReady(survivors, recovery) &&
                    Rebuild(survivors, recovery);
  if (done) recovery.outcome = scenario::RecoveryOutcome::kResumed;
  mine_.recoveries.push_back(std::move(recovery));
  if (done) mine_.resume_by = Deadline::AfterSeconds(kWatchResumeSeconds);
}

bool CaseRecovery::AbortAll(const std::vector<int>& survivors, cases::Recovery& recovery) {
  const int generation = state_.generation.number;
  const std::vector<verdict::RankEvidence> evidence = coordinator_.Glance();
  std::vector<bool> waits;
  for (const verdict::RankEvidence& rank : evidence)
    waits.push_back(journal::OpenOperation(rank.journal).has_value());
  const Ticks ordered = NowTicks();
  const double seconds = state_.stress_case->scenario.recovery->abort_deadline_seconds;
  for (const int rank : survivors) {
    coordinator_.Send(rank, {kAbortMessage, fmt::format("{}", generation)});
  }
  const auto back = [&](int rank) {
    const RankState& state = state_.ranks[rank];
    return state.gone || cases::StillStarts(OfRank(evidence, rank)) ||
           (state.aborted == generation && (!OfRank(waits, rank) || state.report));
  };
  const bool all = ranks_.AwaitAll(survivors, seconds, back);
  if (!all && state_.over()) return false;
  if (!all) {
    std::vector<int> hung;
    for (const int rank : survivors) {
      if (!back(rank)) hung.push_back(rank);
    }
    RetellOutcomes(hung, recovery);
    for (const int rank : hung) EndRank(rank);
    recovery.outcome = scenario::RecoveryOutcome::kAbortHung;
    recovery.finding = cases::AbortHung(std::move(hung), seconds);
    state_.Take(Turn::kEnded);
    return false;
  }
  recovery.abort_seconds = SecondsBetween(ordered, NowTicks());
  state_.Take(Turn::kAborted);
  return true;
}

void CaseRecovery::RetellOutcomes(const std::vector<int>& ranks, cases::Recovery& recovery) {
  if (ranks.empty()) return;
  const verdict::Judgement now =
      ProvedBy(state_, options_, Judged(state_, options_.deadline_seconds, coordinator_.Glance()));
  for (const int rank : ranks) {
    verdict::RankOutcome& outcome = OfRank(recovery.failure.outcomes, rank);
    outcome = OfRank(now.outcomes, rank);
    if (!state_.ranks[rank].gone && outcome.outcome == verdict::Outcome::kFinished) {
      outcome.outcome = verdict::Outcome::kHung;
    }
  }
  std::vector<verdict::Finding>& told = recovery.failure.findings;
  for (const verdict::Finding& finding : now.findings) {
    const bool of_these =
        finding.proved && !finding.culprits.empty() &&
        std::ranges::all_of(finding.culprits, [&](int rank) { return Contains(ranks, rank); });
    // The exit of a rank may be what it all began with, although its agent had not told of it yet.
    const bool known = std::ranges::any_of(told, [&](const verdict::Finding& before) {
      return before.cause == finding.cause && before.culprits == finding.culprits;
    });
    if (of_these && !known) told.push_back(finding);
  }
}

// Who was not in the library comes when it calls it next. A rank that is only slow is not lost.
bool CaseRecovery::AwaitReady(std::vector<int>& survivors, cases::Recovery& recovery) {
  const auto ready = [&](int rank) {
    return state_.ranks[rank].gone || state_.ranks[rank].report.has_value();
  };
  const bool all = ranks_.AwaitAll(survivors, options_.deadline_seconds, ready);
  if (!all && state_.over()) return false;
  mine_.silence.reset();
  std::vector<int> remaining;
  std::vector<int> lost;
  std::int64_t completed = std::numeric_limits<std::int64_t>::max();
  for (const int rank : survivors) {
    const RankState& state = state_.ranks[rank];
    if (!state.raised()) {
      if (!state.finished()) lost.push_back(rank);
      continue;
    }
    remaining.push_back(rank);
    completed = std::min(completed, state.report->completed);
  }
  RetellOutcomes(lost, recovery);
  if (remaining.empty()) recovery.outcome = scenario::RecoveryOutcome::kRebuildFailed;
  recovery.lost.insert(recovery.lost.end(), lost.begin(), lost.end());
  survivors = remaining;
  recovery.first_iteration = survivors.empty() ? 0 : completed;
  state_.Take(survivors.empty() ? Turn::kEnded : Turn::kRanksReady);
  return !survivors.empty();
}

Status CaseRecovery::ReplaceLost(const cases::Recovery& recovery, cases::Generation& next) {
  for (const int rank : recovery.lost) {
    EndRank(rank);
    state_.ranks[rank].report.reset();
    if (recovery.mode != scenario::RecoveryPlan::Mode::kRestart) continue;
    next.members.push_back(rank);
    OfRank(next.since, rank) = 0;
    LOCKSTEP_RETURN_IF_ERROR(coordinator_.StartWorker(rank));
    state_.ranks[rank].gone = false;
  }
  return OkStatus();
}

void CaseRecovery::OrderMembers(const cases::Recovery& recovery) {
  Membership membership;
  membership.generation = recovery.generation;
  membership.size = static_cast<int>(recovery.members.size());
  membership.first_iteration = recovery.first_iteration;
  membership.members = recovery.members;
  for (std::size_t i = 0; i < state_.faults.size(); ++i) {
    if (state_.faults[i].fired) membership.fired.push_back(static_cast<std::int64_t>(i));
  }
  for (const int rank : recovery.members) {
    const bool survived = state_.Parked(rank);
    RankState& state = state_.ranks[rank];
    if (state.report) state.wrong_data.Keep(*state.report, recovery.first_iteration);
    state.report.reset();
    coordinator_.Send(
        rank, survived
                  ? control::Message{kRebuildMessage, control::Encode(membership)}
                  : control::Message{kCaseMessage, EncodedOrder(state_, options_, membership)});
    ++membership.rank;
  }
}

bool CaseRecovery::Rebuild(const std::vector<int>& survivors, cases::Recovery& recovery) {
  const Ticks began = NowTicks();
  cases::Generation next;
  next.number = recovery.generation;
  next.since.assign(static_cast<std::size_t>(state_.ranks.size()), 0);
  for (const verdict::RankEvidence& rank : coordinator_.Glance()) {
    const auto& events = rank.journal.events;
    if (!events.empty()) OfRank(next.since, rank.rank) = events.back().index;
  }
  next.members = survivors;
  const Status replaced = ReplaceLost(recovery, next);
  if (!replaced.ok()) {
    state_.CutShort(replaced.message());
    return false;
  }
  std::ranges::sort(next.members);
  recovery.members = next.members;
  state_.generation = std::move(next);
  for (RankState& rank : state_.ranks) {
    rank.connected_at = 0;
    rank.place.reset();
  }
  state_.closing_at.reset();
  state_.sighting.reset();
  OrderMembers(recovery);
  return AwaitConnected(recovery, began);
}

// A rank that takes another place than the others were told of makes a communicator of its own.
std::optional<verdict::Finding> CaseRecovery::FindWrongPlace() const {
  int expected = 0;
  const int size = static_cast<int>(state_.generation.members.size());
  for (const int rank : state_.generation.members) {
    const std::optional<Membership>& place = state_.ranks[rank].place;
    if (place && (place->rank != expected || place->size != size)) {
      return cases::WrongPlace(rank, {place->rank, place->size}, {expected, size});
    }
    ++expected;
  }
  return std::nullopt;
}

// Who did not even try is who the others waited for.
std::vector<int> CaseRecovery::NotConnected() const {
  std::vector<int> missing, absent;
  for (const int rank : state_.generation.members) {
    if (state_.ranks[rank].unconnected()) missing.push_back(rank);
    if (!state_.ranks[rank].place) absent.push_back(rank);
  }
  return absent.empty() ? missing : absent;
}

bool CaseRecovery::AwaitConnected(cases::Recovery& recovery, Ticks began) {
  const double seconds = state_.stress_case->scenario.recovery->connect_deadline_seconds;
  // Who connected may have done all it had to and left, before the agent of another tells of it.
  ranks_.AwaitAll(state_.generation.members, seconds + kAnswerSeconds, [&](int rank) {
    return state_.ranks[rank].connected() || FindWrongPlace() ||
           AnyMember(&RankState::left_unconnected);
  });
  mine_.silence.reset();  // who waits for the others to connect is silent, perhaps longer than -T
  if (!AnyMember(&RankState::unconnected) && !FindWrongPlace()) {
    for (const RankState& rank : state_.ranks) {
      mine_.rebuilt_at = std::max(mine_.rebuilt_at, rank.connected_at);
    }
    recovery.rebuild_seconds = SecondsBetween(began, mine_.rebuilt_at);
    state_.Take(Turn::kResumed);
    return true;
  }
  recovery.finding = FindWrongPlace();
  if (!recovery.finding && state_.over()) return false;
  recovery.outcome = scenario::RecoveryOutcome::kRebuildFailed;
  if (!recovery.finding && AnyMember(&RankState::lost)) {
    mine_.look = true;  // another loss, to be recovered from in its turn
    state_.Take(Turn::kLostAgain);
    return false;
  }
  if (!recovery.finding) {
    if (coordinator_.SecondsAwake() < SecondsBetween(began, NowTicks())) {
      state_.CutShort("an agent was late while ranks connected anew through it");
      return false;
    }
    recovery.finding = cases::NotConnected(NotConnected(), seconds);
  }
  state_.Take(Turn::kEnded);
  return false;
}

void CaseRecovery::LookForResume(const std::vector<journal::Journal>& journals) {
  if (mine_.resume_by->Passed()) mine_.resume_by.reset();
  const std::optional<Ticks> at = cases::ResumedAt(journals, state_.generation);
  if (!at) return;
  for (cases::Recovery& recovery : mine_.recoveries) {
    if (recovery.generation != state_.generation.number) continue;  // a later one may have failed
    recovery.resume_seconds = std::max(0.0, SecondsBetween(mine_.rebuilt_at, *at));
  }
  mine_.resume_by.reset();
}

}  // namespace lockstep::stress::run
