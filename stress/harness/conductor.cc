#include "stress/harness/conductor.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/base/clock.h"
#include "core/base/now.h"
#include "core/verdict/standstill.h"
#include "stress/faults/outside.h"

namespace lockstep::stress::harness {
namespace {

constexpr double kCollectSeconds = 5;
constexpr double kEndSeconds = 10;
// Peers of a process that is gone fail by themselves where the library hears of it: what they say
// belongs to the evidence. One after the other: on a busy machine that takes a moment.
constexpr double kSettleSeconds = 1;
constexpr double kSettleDeafSeconds = 0.05;
// For ranks that finished and are meant to linger.
constexpr double kClosingSeconds = 0.5;
constexpr double kLossSeconds = 0.2;          // for agents of a dead host to be missed
constexpr std::size_t kHistoryEvents = 4096;  // of each rank, kept in the file
constexpr double kStillSeconds = 1;           // of a link on which nothing moves
constexpr double kResumeSeconds = 0.005;      // between looks whether ranks resumed
constexpr double kNever = std::numeric_limits<double>::infinity();

// How long to wait for what is still to come after the proof. A rank that lingers closes nothing.
double SettleSeconds(const plan::Scenario& scenario, const std::string& backend,
                     const verdict::Judgement& judgement) {
  const bool lingers = plan::Lingers(scenario);
  const bool departed = std::any_of(
      judgement.outcomes.begin(), judgement.outcomes.end(), [&](const verdict::RankOutcome& rank) {
        return rank.outcome != verdict::Outcome::kHung &&
               rank.outcome != verdict::Outcome::kStopped &&
               !(lingers && rank.outcome == verdict::Outcome::kFinished);
      });
  if (!departed) return 0;
  return backend == "gloo" ? kSettleSeconds : kSettleDeafSeconds;
}

}  // namespace

StressConductor::StressConductor(coordinator::Coordinator& coordinator,
                                 const StressOptions& options)
    : coordinator_(coordinator),
      options_(options),
      links_(coordinator),
      ns_per_tick_(CalibrateTicks().ns_per_tick) {}

void StressConductor::Reset(const StressCase& stress_case) {
  const auto ranks = static_cast<std::size_t>(coordinator_.size());
  case_ = &stress_case;
  reports_.assign(ranks, std::nullopt);
  gone_.assign(ranks, false);
  heals_.assign(ranks, false);
  fired_.assign(stress_case.faults.size(), false);
  notes_.assign(stress_case.faults.size(), "");
  due_.clear();
  settle_.reset();
  closing_.reset();
  look_again_.reset();
  echoes_until_.reset();
  detected_.reset();
  sighting_.reset();
  generation_ = Generation();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    generation_.members.push_back(static_cast<int>(rank));
  }
  recoveries_.clear();
  overdue_.reset();
  applied_at_.assign(stress_case.faults.size(), 0);
  aborted_.assign(ranks, -1);
  connected_at_.assign(ranks, 0);
  places_.assign(ranks, std::nullopt);
  resume_by_.reset();
  rebuilt_at_ = 0;
  over_ = stuck_ = look_ = false;
  cut_short_.clear();
}

std::vector<verdict::RankEvidence> StressConductor::Judged(
    std::vector<verdict::RankEvidence> evidence) const {
  evidence = AsJudged(OfGeneration(std::move(evidence), generation_), reports_, heals_, stuck_);
  // A program that raised and waits to be recovered would have left.
  for (verdict::RankEvidence& rank : evidence) {
    if (!Parked(rank.rank) || rank.state != verdict::ProcessState::kRunning) continue;
    rank.state = verdict::ProcessState::kExited;
    rank.exit_code = static_cast<int>(ExitCodeOf(StatusCode::kSystemFailed));
    rank.idle = false;
  }
  return evidence;
}

void StressConductor::Apply(std::size_t fault) {
  const faults::PlannedFault& planned = case_->faults[fault];
  if (planned.moment.kind == faults::FaultMoment::Kind::kTime) applied_at_[fault] = NowTicks();
  if (faults::IsOfLink(planned.kind)) return ApplyToLink(fault);
  if (faults::IsByAgent(planned.kind)) {
    return coordinator_.Inject(planned.rank, static_cast<std::uint32_t>(fault),
                               faults::OrderFor(planned));
  }
  coordinator_.Signal(planned.rank, faults::SignalOf(planned.kind));
  fired_[fault] = true;
  if (planned.kind != faults::FaultKind::kStop || !planned.duration_seconds) return;
  heals_[static_cast<std::size_t>(planned.rank)] = true;
  due_.push_back({Deadline::AfterSeconds(*planned.duration_seconds), fault, true});
}

// The rank that waits for it goes on when it is in force; it has fired when traffic met it.
void StressConductor::ApplyToLink(std::size_t fault) {
  const faults::PlannedFault& planned = case_->faults[fault];
  links_.Apply(fault, [this, fault] {
    const faults::PlannedFault& applied = case_->faults[fault];
    if (applied.moment.kind == faults::FaultMoment::Kind::kTime) return;
    coordinator_.Send(applied.rank, {kAppliedMessage, ""});
  });
  if (!planned.duration_seconds) return;
  due_.push_back({Deadline::AfterSeconds(*planned.duration_seconds), fault, true});
}

void StressConductor::DoDue() {
  for (std::size_t i = 0; i < due_.size();) {
    if (!due_[i].at.Passed()) {
      ++i;
      continue;
    }
    const Due due = due_[i];
    due_.erase(due_.begin() + static_cast<std::ptrdiff_t>(i));
    const faults::PlannedFault& fault = case_->faults[due.fault];
    const auto rank = static_cast<std::size_t>(fault.rank);
    if (due.heal && faults::IsOfLink(fault.kind)) {
      links_.Heal(due.fault);
    } else if (due.heal) {
      heals_[rank] = false;
      coordinator_.Signal(fault.rank, SIGCONT);
      if (fault.moment.kind != faults::FaultMoment::Kind::kTime) {
        coordinator_.Send(fault.rank, {kAppliedMessage, ""});
      }
    } else if (!gone_[rank]) {
      Apply(due.fault);
    }
  }
}

void StressConductor::OnMessage(const coordinator::Event& event) {
  const auto rank = static_cast<std::size_t>(event.rank);
  if (event.message.type == kReportMessage) {
    Result<ProgramReport> report = DecodeReport(event.message.payload);
    if (!report.ok()) report = ProgramReport{.status = report.status()};
    reports_[rank] = *std::move(report);
    return;
  }
  if (event.message.type == kMachineMessage) {
    if (worker_facts_.empty()) worker_facts_ = event.message.payload;
    return;
  }
  if (event.message.type != kFiredMessage) return OnRecoveryMessage(event);
  const auto fault = static_cast<std::size_t>(std::atoll(event.message.payload.c_str()));
  if (fault >= fired_.size()) return;  // a worker is under test and not believed
  const faults::PlannedFault& planned = case_->faults[fault];
  fired_[fault] =
      fired_[fault] || !(faults::IsOfLink(planned.kind) || faults::IsByAgent(planned.kind));
  if (faults::SiteOf(planned.kind) != faults::FaultSite::kOutside) return;
  if (planned.moment.kind != faults::FaultMoment::Kind::kTime) Apply(fault);
}

// An agent tells what it did; only then it fired, and the program goes on.
void StressConductor::OnFault(const coordinator::Event& event) {
  const auto fault = static_cast<std::size_t>(event.message.type);
  if (fault >= fired_.size() || event.news == control::FaultNews::kHealed) return;
  const faults::PlannedFault& planned = case_->faults[fault];
  fired_[fault] = event.news == control::FaultNews::kApplied;
  notes_[fault] = event.message.payload;
  const bool waited_for = faults::SiteOf(planned.kind) == faults::FaultSite::kOutside &&
                          planned.moment.kind != faults::FaultMoment::Kind::kTime;
  if (waited_for) coordinator_.Send(planned.rank, {kAppliedMessage, ""});
}

bool StressConductor::AllOver() {
  bool all_gone = true;
  for (std::size_t rank = 0; rank < gone_.size(); ++rank) {
    if (gone_[rank]) continue;
    if (!reports_[rank] || !reports_[rank]->status.ok()) return false;
    all_gone = false;
  }
  if (all_gone) return true;
  const bool lingers = plan::Lingers(case_->scenario);
  if (!closing_) {
    closing_ = Deadline::AfterSeconds(lingers ? kClosingSeconds : options_.deadline_seconds);
  }
  stuck_ = !lingers && closing_->Passed();
  return closing_->Passed();
}

// A rank is silent beyond the deadline. As long as another one does something, it may come: only
// when all are silent for so long is that held against anyone.
void StressConductor::OnOverdue() {
  // Who is stopped for longer than the deadline is stopped.
  heals_.assign(heals_.size(), false);
  const std::vector<verdict::RankEvidence> evidence =
      Judged(coordinator_.Glance(Deadline::AfterSeconds(kCollectSeconds)));
  for (const verdict::RankEvidence& rank : evidence) {
    if (rank.state != verdict::ProcessState::kRunning || rank.idle) continue;
    if (rank.seconds_silent < options_.deadline_seconds) return;
  }
  // Nor is anyone silent whose bytes still move. A glance tells of them only if links are watched.
  const bool told =
      std::any_of(evidence.begin(), evidence.end(),
                  [](const verdict::RankEvidence& rank) { return !rank.sockets.empty(); });
  links_.Look(told ? evidence : coordinator_.Collect(Deadline::AfterSeconds(kCollectSeconds)));
  if (links_.Moved(kStillSeconds)) {
    look_again_ = Deadline::AfterSeconds(kStillSeconds / 2);
    return;
  }
  const verdict::Judgement judgement = JudgeCase(case_->scenario, options_.backend, evidence,
                                                 options_.deadline_seconds, generation_);
  if (judgement.findings.empty()) return;
  if (Recovers()) {
    overdue_ = judgement;
    return;
  }
  const auto since = static_cast<std::int64_t>(NowTicks() - verdict::NewestTicks(evidence));
  if (!detected_) detected_ = static_cast<double>(since) * ns_per_tick_ * 1e-9;
  over_ = true;
}

void StressConductor::Handle(const coordinator::Event& event) {
  switch (event.kind) {
    case coordinator::EventKind::kMessage:
      return OnMessage(event);
    case coordinator::EventKind::kFault:
      return OnFault(event);
    case coordinator::EventKind::kPlugin:
      if (const auto met = links_.OnReport(event.rank, event.message.payload)) fired_[*met] = true;
      return;
    case coordinator::EventKind::kExited:
    case coordinator::EventKind::kSignalled:
      gone_[static_cast<std::size_t>(event.rank)] = true;
      return;
    case coordinator::EventKind::kLost:
      over_ = true;
      return;
    case coordinator::EventKind::kOverdue:
      return OnOverdue();
    case coordinator::EventKind::kTerminate:
      terminated_ = true;
      cut_short_ = "ended by a signal";
      [[fallthrough]];
    case coordinator::EventKind::kWarned:
      return save_();
    case coordinator::EventKind::kData:
    case coordinator::EventKind::kQuiet:
    case coordinator::EventKind::kStopped:
    case coordinator::EventKind::kContinued:
    case coordinator::EventKind::kTimeout:
      return;
  }
}

Deadline StressConductor::NextWake() const {
  Deadline wake = Deadline::AfterSeconds(1);
  for (const Due& due : due_) wake = wake.Earlier(due.at);
  if (closing_) wake = wake.Earlier(*closing_);
  if (look_again_) wake = wake.Earlier(*look_again_);
  if (resume_by_ || look_ || overdue_) wake = wake.Earlier(Deadline::AfterSeconds(kResumeSeconds));
  return settle_ ? wake.Earlier(*settle_) : wake;
}

std::string StressConductor::EncodedOrder(const Membership& membership) const {
  CaseOrder order = {case_->scenario.origin, case_->text, case_->scenario.ranks, options_.backend,
                     case_->seed};
  order.membership = membership;
  return EncodeOrder(order);
}

void StressConductor::Watch() {
  coordinator::StandstillWatch watch(
      coordinator_, [this](std::vector<verdict::RankEvidence>& evidence) {
        links_.Look(evidence);
        evidence = Judged(std::move(evidence));
        const verdict::Judgement judgement =
            JudgeCase(case_->scenario, options_.backend, evidence, kNever, generation_);
        if (!sighting_) sighting_ = SightMismatch(evidence, judgement, NowTicks());
        return judgement;
      });
  const Deadline limit = Deadline::AfterSeconds(options_.limit_seconds);
  while (!over_ && cut_short_.empty() && !AllOver()) {
    if (settle_ && settle_->Passed()) return;
    if (limit.Passed()) {
      cut_short_ = fmt::format("not over after {} s (--limit)", options_.limit_seconds);
      return;
    }
    coordinator::Event event = coordinator_.Next(NextWake().Earlier(limit));
    Handle(event);
    // A program that is over may be what another one waits for, silent since long.
    const bool over = event.kind == coordinator::EventKind::kMessage &&
                      reports_[static_cast<std::size_t>(event.rank)];
    if (over) event.kind = coordinator::EventKind::kQuiet;
    DoDue();
    if (look_again_ && look_again_->Passed()) {
      look_again_.reset();
      OnOverdue();
    }
    if (settle_ || CutShort()) continue;
    if (Recovers()) {
      if (const std::optional<Failure> failure = FailureAt(event, watch)) Recover(*failure);
      if (resume_by_)
        LookForResume(coordinator_.Journals(kHistoryEvents, Deadline::AfterSeconds(1)));
      continue;
    }
    const std::optional<coordinator::Standstill> standstill = watch.OnEvent(event);
    if (!standstill) continue;
    detected_ = standstill->seconds_after;
    settle_ = Deadline::AfterSeconds(
        SettleSeconds(case_->scenario, options_.backend, standstill->judgement));
  }
}

void StressConductor::AwaitLosses() {
  const Deadline deadline = Deadline::AfterSeconds(kLossSeconds);
  while (!HostsAreLost() && !deadline.Passed()) Handle(coordinator_.Next(deadline));
}

CaseFacts StressConductor::Gather() {
  CaseFacts facts;
  if (terminated_) AwaitLosses();
  // Told to end, there is no time for stacks.
  const Deadline collect = Deadline::AfterSeconds(kCollectSeconds);
  facts.evidence = terminated_ ? coordinator_.Glance(collect) : coordinator_.Collect(collect);
  facts.places = coordinator_.places();
  facts.journals = coordinator_.Journals(kHistoryEvents, Deadline::AfterSeconds(kCollectSeconds));
  // What ranks told before this moment belongs to the evidence.
  for (coordinator::Event event = coordinator_.Next(Deadline::AfterNs(0));
       event.kind != coordinator::EventKind::kTimeout;
       event = coordinator_.Next(Deadline::AfterNs(0))) {
    if (event.kind == coordinator::EventKind::kMessage) OnMessage(event);
    if (event.kind == coordinator::EventKind::kFault) OnFault(event);
    if (event.kind == coordinator::EventKind::kTerminate) Handle(event);
  }
  facts.evidence = Judged(std::move(facts.evidence));
  for (const control::AgentInfo& agent : coordinator_.agents())
    facts.hosts.push_back({agent.host, agent.boot_id});
  if (resume_by_) LookForResume(facts.journals);
  facts.recoveries = std::move(recoveries_);
  facts.generation = generation_;
  coordinator_.EndWorkers(Deadline::AfterSeconds(kEndSeconds));
  while (coordinator_.Next(Deadline::AfterNs(0)).kind != coordinator::EventKind::kTimeout) {
  }
  // Nobody can be started again.
  terminated_ = terminated_ || HostsAreLost();
  facts.reports = std::move(reports_);
  facts.fired = std::move(fired_);
  facts.notes = std::move(notes_);
  for (std::size_t i = 0; i < facts.notes.size(); ++i) {
    if (facts.notes[i].empty()) facts.notes[i] = links_.NoteOf(i);
  }
  facts.cut_short = std::move(cut_short_);
  facts.detected_after_seconds = detected_;
  return facts;
}

Result<CaseResult> StressConductor::Run(const StressCase& stress_case) {
  Reset(stress_case);
  links_.Begin(stress_case.faults, stress_case.seed);
  const std::int64_t began_ns = NowNs();
  const Status started =
      coordinator_.StartWorkers(faults::SetupsFor(stress_case.faults, coordinator_.size()));
  if (!started.ok() && !HostsAreLost()) return started;
  over_ = !started.ok();
  for (int rank = coordinator_.size() - 1; rank >= 0; --rank) {
    coordinator_.Send(rank, {kCaseMessage, EncodedOrder({0, rank, coordinator_.size()})});
  }
  for (std::size_t i = 0; i < stress_case.faults.size(); ++i) {
    const faults::PlannedFault& fault = stress_case.faults[i];
    const bool by_clock = faults::SiteOf(fault.kind) == faults::FaultSite::kOutside &&
                          fault.moment.kind == faults::FaultMoment::Kind::kTime;
    if (faults::SiteOf(fault.kind) == faults::FaultSite::kStart) Apply(i);
    if (by_clock) due_.push_back({Deadline::AfterSeconds(fault.moment.seconds), i, false});
  }
  Watch();
  CaseFacts facts = Gather();
  facts.seconds = static_cast<double>(NowNs() - began_ns) * 1e-9;
  CaseResult result =
      Assess(stress_case, options_.backend, options_.deadline_seconds, std::move(facts));
  // A proof that the final judgement repeats was known when it was first seen.
  if (sighting_ && Confirms(result.judgement, *sighting_)) {
    const auto since = static_cast<std::int64_t>(sighting_->seen_at - sighting_->proved_at);
    result.facts.detected_after_seconds = static_cast<double>(since) * ns_per_tick_ * 1e-9;
  }
  return result;
}

}  // namespace lockstep::stress::harness
