// Events of the coordinator go into the state of the case (case_state.h); after each, the evidence
// of all ranks is asked whether anyone can go on. Faults and recovery are classes of their own.
#include "stress/run/case_runner.h"

#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "core/base/now.h"
#include "core/control/records.h"
#include "core/coordinator/lost_hosts.h"
#include "core/verdict/judge.h"
#include "stress/faults/outside.h"

namespace lockstep::stress::run {
namespace {

// Peers of a process that is gone fail by themselves where the library hears of it: what they say
// belongs to the evidence. One after the other: on a busy machine that takes a moment.
constexpr double kSettleSeconds = 1;
constexpr double kSettleDeafSeconds = 0.05;
// For ranks that finished and are meant to linger.
constexpr double kClosingSeconds = 0.5;
constexpr std::size_t kHistoryEvents = 4096;  // of each rank, kept in the file
constexpr double kResumeSeconds = 0.005;      // between looks whether ranks resumed

// How long to wait for what is still to come after the proof. A rank that lingers closes nothing.
double SettleSeconds(const scenario::Scenario& scenario, const std::string& backend,
                     const verdict::Judgement& judgement) {
  const bool lingers = scenario::Lingers(scenario);
  const bool departed =
      std::ranges::any_of(judgement.outcomes, [&](const verdict::RankOutcome& rank) {
        return rank.outcome != verdict::Outcome::kHung &&
               rank.outcome != verdict::Outcome::kStopped &&
               !(lingers && rank.outcome == verdict::Outcome::kFinished);
      });
  if (!departed) return 0;
  return backend == "gloo" ? kSettleSeconds : kSettleDeafSeconds;
}

}  // namespace

CaseRunner::CaseRunner(coordinator::Coordinator& coordinator, const CaseOptions& options)
    : coordinator_(coordinator),
      options_(options),
      ns_per_tick_(CalibrateTicks().ns_per_tick),
      faults_(coordinator, state_, options.deadline_seconds),
      recovery_(coordinator, options, state_,
                [this](double seconds, const std::function<bool()>& done) {
                  return TakeEventsFor(seconds, done);
                }),
      silence_(
          coordinator, options, state_, ns_per_tick_, faults_.links(),
          [this](verdict::Judgement judgement) { recovery_.OnSilence(std::move(judgement)); }) {}

void CaseRunner::OnMessage(const coordinator::Event& event) {
  switch (event.message.type) {
    case kReportMessage: {
      auto report = Understand<workloads::ProgramReport>(event.message.payload);
      if (!report.ok()) report = workloads::ProgramReport{.status = report.status()};
      state_.ranks[event.rank].wrong_data.AddTo(*report);
      state_.ranks[event.rank].report = *std::move(report);
      return;
    }
    case kMachineMessage:
      if (worker_facts_.empty()) worker_facts_ = event.message.payload;
      return std::exchange(begun_, [] {})();
    case kFiredMessage:
      return faults_.OnFired(event.message.payload);
    default:
      return recovery_.OnMessage(event);
  }
}

bool CaseRunner::AllOver() {
  std::vector<int> leaving;
  for (int rank = 0; rank < state_.ranks.size(); ++rank) {
    if (state_.ranks[rank].gone) continue;
    if (!state_.ranks[rank].finished()) return false;
    leaving.push_back(rank);
  }
  if (leaving.empty()) return true;
  const bool lingers = scenario::Lingers(state_.stress_case->scenario);
  if (!state_.closing_at) {
    leaving_.emplace(coordinator_);
    state_.closing_at =
        Deadline::AfterSeconds(lingers ? kClosingSeconds : options_.deadline_seconds);
  }
  if (!state_.closing_at->Passed()) return false;
  if (lingers) return true;
  // A rank that leaves, and is kept from its processor or was not looked at, is not stuck.
  const double left_s = std::max(leaving_->SecondsLeft(leaving, options_.deadline_seconds),
                                 options_.deadline_seconds - coordinator_.SecondsAwake());
  state_.closing_at = Deadline::AfterSeconds(left_s);
  state_.stuck = left_s <= 0;
  return state_.stuck;
}

void CaseRunner::OnGone(int rank) {
  state_.ranks[rank].gone = true;
  // Its connections close only now.
  if (!state_.settling) return;
  Settling& settling = *state_.settling;
  settling.until = settling.until.Later(Deadline::AfterSeconds(settling.seconds));
}

void CaseRunner::Handle(const coordinator::Event& event) {
  silence_.OnEvent(event.kind);
  switch (event.kind) {
    case coordinator::EventKind::kMessage:
      return OnMessage(event);
    case coordinator::EventKind::kFault:
      return faults_.OnFault(event);
    case coordinator::EventKind::kPlugin:
      return faults_.OnPlugin(event);
    case coordinator::EventKind::kExited:
    case coordinator::EventKind::kSignalled:
      return OnGone(event.rank);
    case coordinator::EventKind::kLost:
      return state_.Take(Turn::kEnded);
    case coordinator::EventKind::kTerminate:
      terminated_ = true;
      state_.CutShort(kEndedBySignal);
      [[fallthrough]];
    case coordinator::EventKind::kWarned:
      return save_();
    case coordinator::EventKind::kData:
    case coordinator::EventKind::kQuiet:
    case coordinator::EventKind::kStopped:
    case coordinator::EventKind::kContinued:
    case coordinator::EventKind::kOverdue:
    case coordinator::EventKind::kTimeout:
      return;
  }
}

Deadline CaseRunner::NextWake() const {
  Deadline wake = faults_.NextDue(Deadline::AfterSeconds(1));
  if (state_.closing_at) wake = wake.Earlier(*state_.closing_at);
  if (const auto look = silence_.wake()) wake = wake.Earlier(*look);
  if (recovery_.looks()) wake = wake.Earlier(Deadline::AfterSeconds(kResumeSeconds));
  if (!state_.settling) return wake;
  const Settling& settling = *state_.settling;
  wake = wake.Earlier(settling.at_most);
  // Later than that, something else has to happen first.
  return settling.until.Passed() ? wake : wake.Earlier(settling.until);
}

bool CaseRunner::TakeEventsFor(double seconds, const std::function<bool()>& done) {
  Deadline deadline = Deadline::AfterSeconds(seconds);
  while (!done()) {
    if (state_.over() || IsBeyondLimit()) return false;
    if (deadline.Passed()) {
      static_cast<void>(coordinator_.Glance());  // tells who is late now
      const double awake = coordinator_.SecondsAwake();
      if (awake >= seconds) return false;
      deadline = Deadline::AfterSeconds(seconds - awake);
    }
    Handle(coordinator_.Next(NextWake().Earlier(deadline).Earlier(limit_)));
    faults_.DoDue();
  }
  return true;
}

bool CaseRunner::IsBeyondLimit() {
  if (!limit_.Passed()) return false;
  state_.CutShort(NotOverAfter(options_.limit_seconds));
  return true;
}

void CaseRunner::LookAt(const coordinator::Event& event, coordinator::StandstillWatch& watch) {
  if (state_.recovers()) {
    recovery_.OnEvent(event, watch);
    if (recovery_.watches()) {
      recovery_.LookForResume(coordinator_.Journals(kHistoryEvents));
    }
    return;
  }
  const std::optional<coordinator::Standstill> standstill = watch.OnEvent(event);
  if (!standstill) return;
  state_.detected_seconds = standstill->seconds_after;
  const double seconds =
      SettleSeconds(state_.stress_case->scenario, options_.backend, standstill->judgement);
  const Deadline until = Deadline::AfterSeconds(seconds);
  const Deadline at_most = until.Later(Deadline::AfterSeconds(options_.deadline_seconds));
  state_.settling = {seconds, until, at_most.Earlier(limit_)};
  for (const verdict::RankEvidence& rank : coordinator_.Glance()) {
    state_.settling->starved_s.push_back(rank.starved_s);
  }
  state_.Take(Turn::kProved);
}

bool CaseRunner::IsAwaitedByPeers() const {
  const bool lingers = scenario::Lingers(state_.stress_case->scenario);
  bool leaving = false, peers = false;
  for (const RankState& rank : state_.ranks) {
    if (rank.gone) continue;
    const bool stays = rank.stays_stopped || (lingers && rank.finished());
    leaving = leaving || (rank.report && !stays);
    peers = peers || !rank.report;
  }
  return leaving && peers;
}

bool CaseRunner::IsSettled() {
  if (!state_.settling) return false;
  Settling& settling = *state_.settling;
  if (settling.at_most.Passed()) return true;
  if (!settling.until.Passed()) return false;
  if (settling.seconds < kSettleSeconds) return true;  // whom no library tells of an end
  // Peers of a rank that is about to leave hear nothing before it does.
  if (IsAwaitedByPeers()) return false;
  // Nor does who gets no processor, or whose agent gets none.
  double left_s = 0;
  const std::vector<verdict::RankEvidence> evidence = coordinator_.Glance();
  for (std::size_t i = 0; i < evidence.size(); ++i) {
    const double starved_s = evidence[i].starved_s;
    left_s = std::max(left_s, starved_s - std::exchange(settling.starved_s[i], starved_s));
  }
  left_s = std::max(left_s, settling.seconds - coordinator_.SecondsAwake());
  settling.until = Deadline::AfterSeconds(left_s);
  return left_s <= 0;
}

void CaseRunner::Watch() {
  coordinator::StandstillWatch watch(
      coordinator_, [this](std::vector<verdict::RankEvidence>& evidence) {
        faults_.links().Look(evidence);
        evidence = Judged(state_, kNoDeadline, std::move(evidence));
        const verdict::Judgement judgement = ProvedBy(state_, options_, evidence);
        if (!state_.sighting) state_.sighting = SightMismatch(evidence, judgement, NowTicks());
        return judgement;
      });
  limit_ = Deadline::AfterSeconds(options_.limit_seconds);
  while (!state_.over() && !AllOver()) {
    if (IsSettled()) return;
    if (IsBeyondLimit()) return;
    coordinator::Event event = coordinator_.Next(NextWake().Earlier(limit_));
    Handle(event);
    // A program that is over may be what another one waits for, silent since long.
    const bool over =
        event.kind == coordinator::EventKind::kMessage && state_.ranks[event.rank].report;
    if (over) event.kind = coordinator::EventKind::kQuiet;
    faults_.DoDue();
    silence_.DoDue();
    if (state_.phase == Phase::kWatching) LookAt(event, watch);
  }
}

bool CaseRunner::DrainEvents() {
  bool told = false;
  for (coordinator::Event event = coordinator_.Next(Deadline::AfterNs(0));
       event.kind != coordinator::EventKind::kTimeout;
       event = coordinator_.Next(Deadline::AfterNs(0))) {
    told = told || event.kind == coordinator::EventKind::kMessage;
    if (event.kind == coordinator::EventKind::kMessage) OnMessage(event);
    if (event.kind == coordinator::EventKind::kFault) faults_.OnFault(event);
    if (event.kind == coordinator::EventKind::kTerminate) Handle(event);
  }
  return told;
}

// What a rank tells while others answer is newer than its own answer: then all are asked again.
std::vector<verdict::RankEvidence> CaseRunner::GatherEvidence() {
  const bool told = DrainEvents();
  if (const auto look = silence_.TakeLastLook(); look && !told) return *look;
  while (!terminated_) {
    std::vector<verdict::RankEvidence> evidence = coordinator_.Collect();
    if (!DrainEvents()) return evidence;
  }
  // Told to end, there is no time for stacks.
  return coordinator_.Glance();
}

cases::CaseFacts CaseRunner::Gather() {
  cases::CaseFacts facts;
  if (terminated_) {
    coordinator::AwaitLostHosts(coordinator_,
                                [this](const coordinator::Event& event) { Handle(event); });
  }
  facts.evidence = Judged(state_, options_.deadline_seconds, GatherEvidence());
  facts.places = coordinator_.places();
  facts.journals = coordinator_.Journals(kHistoryEvents);
  for (const control::AgentInfo& agent : coordinator_.agents())
    facts.hosts.push_back({agent.host, agent.boot_id});
  if (recovery_.watches()) recovery_.LookForResume(facts.journals);
  facts.recoveries = recovery_.TakeRecoveries();
  facts.generation = state_.generation;
  coordinator_.EndWorkers();
  while (coordinator_.Next(Deadline::AfterNs(0)).kind != coordinator::EventKind::kTimeout) {
  }
  // Nobody can be started again.
  terminated_ = terminated_ || coordinator::HostsAreLost(coordinator_);
  facts.reports = state_.ranks.Map([](const RankState& rank) { return rank.report; });
  for (const FaultState& fault : state_.faults) facts.fired.push_back(fault.fired);
  facts.notes = faults_.Notes();
  facts.cut_short = state_.cut_short;
  facts.detected_after_seconds = state_.detected_seconds;
  return facts;
}

Result<cases::CaseResult> CaseRunner::Run(const cases::StressCase& stress_case) {
  state_ = CaseState(stress_case, coordinator_.size());
  recovery_.Reset();
  silence_.Reset();
  faults_.Prepare();
  const std::int64_t began_ns = NowNs();
  const Status started =
      coordinator_.StartWorkers(faults::SetupsFor(stress_case.faults, coordinator_.size()));
  if (!started.ok()) DrainEvents();  // a signal to end may be why
  if (!started.ok() && !terminated_ && !coordinator::HostsAreLost(coordinator_)) return started;
  if (!started.ok()) state_.Take(Turn::kEnded);
  for (int rank = coordinator_.size() - 1; rank >= 0; --rank) {
    coordinator_.Send(
        rank, {kCaseMessage, EncodedOrder(state_, options_, {0, rank, coordinator_.size()})});
  }
  faults_.Start();
  Watch();
  cases::CaseFacts facts = Gather();
  facts.seconds = static_cast<double>(NowNs() - began_ns) * 1e-9;
  cases::CaseResult result =
      cases::Assess(stress_case, options_.backend, options_.deadline_seconds, std::move(facts));
  // A proof that the final judgement repeats was known when it was first seen.
  if (state_.sighting && Confirms(result.judgement, *state_.sighting)) {
    const auto since =
        static_cast<std::int64_t>(state_.sighting->seen_at - state_.sighting->proved_at);
    result.facts.detected_after_seconds = static_cast<double>(since) * ns_per_tick_ * 1e-9;
  }
  return result;
}

}  // namespace lockstep::stress::run
