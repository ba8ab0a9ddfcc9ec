// Lifetimes of workers and the rounds in them. An event either counts, or ends the round: then the
// evidence of all ranks is collected and judged, the case that it cost is lost, and new workers go
// on with the others. Samples are saved before anything is judged.
#include "bench/harness/scheduler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <ranges>

#include "bench/measure/lost_case.h"
#include "bench/measure/measurement_codec.h"
#include "bench/measure/progress_text.h"
#include "bench/measure/protocol.h"
#include "core/base/now.h"
#include "core/coordinator/lost_hosts.h"
#include "core/verdict/lost_hosts.h"

namespace lockstep::bench::harness {
namespace {

constexpr double kConnectSeconds = 120;  // connecting and touching memory, before silence counts
constexpr double kGraceSeconds = 0.3;    // for peers of a dead rank to notice by themselves
constexpr int kMostFruitless = 2;        // lifetimes without a round, one after the other
constexpr double kLookSeconds = 0.5;     // without an event, between looks for ranks that sleep
constexpr double kWarnedSeconds = 3;   // from the launcher's warning to its SIGKILL, and some more
constexpr double kFinishSeconds = 20;  // to leave, before silence counts
constexpr std::size_t kHistoryEvents = 4096;  // of each rank and lifetime, kept in the file
constexpr int kNoRank = -1;                   // whose error it is that workers were not started

// What is proved although nothing is known of silence. A stopped rank may be continued: of it, and
// of those who wait for it, only silence decides.
verdict::Judgement JudgeProved(std::vector<verdict::RankEvidence>& evidence) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  verdict::ForgiveBriefStops(evidence, kNever);
  return verdict::Judge(evidence, kNever);
}

// Whether no worker was lost but by a signal to end: a batch system sends it to all processes.
bool DiedOfTheEnd(const std::vector<verdict::RankEvidence>& evidence) {
  return std::all_of(evidence.begin(), evidence.end(), [](const verdict::RankEvidence& rank) {
    return rank.state != verdict::ProcessState::kSignalled || rank.signal == SIGTERM ||
           rank.signal == SIGINT || rank.signal == SIGHUP;
  });
}

// What another lifetime would lack, too.
std::optional<Status> LackIn(bool progressed, const std::map<int, Status>& errors) {
  if (progressed) return std::nullopt;
  for (const auto& [rank, error] : errors) {
    if (ExitCodeOf(error.code()) != ExitCode::kFailed) return error;
  }
  return std::nullopt;
}

}  // namespace

Scheduler::Scheduler(coordinator::Coordinator& coordinator,
                     const coordinator::CoordinatorOptions& options, const plan::Plan& plan,
                     measure::SampleBook& book, session::ProgressLine& progress)
    : coordinator_(coordinator),
      one_lifetime_(options.workers_own_mpi),
      plan_(plan),
      book_(book),
      progress_(progress),
      // Half of the outbox for samples: batch records and located errors need room as well.
      rounds_(plan, book, options.outbox_capacity_bytes / measure::kSampleRecordBytes / 2),
      watch_(coordinator, JudgeProved),
      silence_(coordinator, plan.deadline_seconds) {}

Result<measure::Measurement> Scheduler::Run(int repetitions) {
  for (repetition_ = 0; repetition_ < repetitions; ++repetition_) {
    if (repetition_ > 0) {
      book_.BeginRepetition();
      rounds_.BeginRepetition();
    }
    LOCKSTEP_RETURN_IF_ERROR(RunRepetition());
    if (second_pass_ && !measurement_.terminated && measurement_.interruptions.empty()) {
      rounds_.Wake(second_pass_(repetition_));
      LOCKSTEP_RETURN_IF_ERROR(RunRepetition());
    }
    std::vector<std::string> stopped;
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) stopped.push_back(rounds_.stopped_by(i));
    measurement_.stopped_by.push_back(std::move(stopped));
    if (measurement_.terminated) break;
    NoteEnd();
  }
  repetition_ = std::min(repetition_, repetitions - 1);  // whoever is lost now, is so of the last
  SaveSamples();
  // Of workers that were told to end with us, nothing is judged.
  if (alive_ && !measurement_.terminated && Finish() == Step::kInterrupted) Interrupt();
  if (alive_) EndLifetime();
  progress_.Clear();
  measurement_.stalls = stalls_.stalls();
  return std::move(measurement_);
}

Status Scheduler::RunRepetition() {
  began_ns_ = NowNs();
  countdown_ = {};
  while (!rounds_.finished()) {
    Step step = alive_ ? Step::kDone : StartLifetime();
    if (step == Step::kDone) step = RunRounds();
    if (step == Step::kDone) return OkStatus();
    const bool progressed = measured_;  // before a case is lost, which is progress as well
    if (step == Step::kTerminated) {
      OnTerminated();
    } else {
      Interrupt();
    }
    if (measurement_.terminated || coordinator::HostsAreLost(coordinator_)) {
      measurement_.terminated = true;
      rounds_.StopAll("interrupted");
      return OkStatus();
    }
    // A lifetime that could not even begin says what is missing. Of a later one that must not hide
    // what ended those before it.
    const std::optional<Status> lack = LackIn(progressed, errors_);
    if (lack && IsFirstLoss()) return *lack;
    // A library that hangs wherever it is called would cost a deadline a case.
    fruitless_ = progressed ? 0 : fruitless_ + 1;
    const bool hopeless = lack || !measured_ || fruitless_ == kMostFruitless;
    if (one_lifetime_ || hopeless) rounds_.StopAll("interrupted");
  }
  return OkStatus();
}

Scheduler::Step Scheduler::StartLifetime() {
  errors_.clear();
  measured_ = false;
  if (const Status status = coordinator_.StartWorkers(); !status.ok()) {
    if (!measurement_.interruptions.empty() && !coordinator::HostsAreLost(coordinator_)) {
      // Nobody ran, so nobody is judged: what ended the lifetimes before is the verdict.
      progress_.Notice(fmt::format("the cases that are left are not run: {}", status.message()));
      EndLifetime();
      rounds_.StopAll("interrupted");
      return Step::kDone;
    }
    errors_.emplace(kNoRank, status);
    return Step::kInterrupted;
  }
  alive_ = true;
  coordinator_.SendAll({measure::kPlanMessage, plan::PlanToJson(plan_)});
  const Step step =
      AwaitAll(measure::kReadyMessage, std::max(kConnectSeconds, 2 * plan_.deadline_seconds));
  if (step == Step::kDone && begun_) SaveSamples(/*even_none=*/true);
  return step;
}

Scheduler::Step Scheduler::RunRounds() {
  while (!rounds_.finished()) {
    const double elapsed = static_cast<double>(NowNs() - began_ns_) * 1e-9;
    const measure::Round round = rounds_.Next(elapsed);
    if (round.batches.empty()) {
      rounds_.StopForTime();
      return Step::kDone;
    }
    LookAtMachine();
    coordinator_.SendAll({measure::kRoundMessage, measure::EncodeRound(round)});
    const Step step = AwaitAll(measure::kRoundDoneMessage, 86'400);
    if (step != Step::kDone) return step;
    measured_ = true;
    stalls_.RoundDone();
    rounds_.Close();
    newest_ = round.batches.back().case_index;
    SaveIfWarned();
    save_pace_.Call([this] { SaveSamples(); });  // the workers sleep
    TellProgress();
  }
  return Step::kDone;
}

// While the workers sleep.
void Scheduler::LookAtMachine() {
  coordinator_.MeasureClocks(/*thoroughly=*/false);
  if (reference_) book_.NoteCrossing(reference_());
}

void Scheduler::TellProgress() {
  const double elapsed = static_cast<double>(NowNs() - began_ns_) * 1e-9;
  measure::Progress progress{.repetition = repetition_,
                             .cases = plan_.cases.size(),
                             .visited = rounds_.visited(),
                             .done = plan_.cases.size() - rounds_.running(),
                             .seconds_left = countdown_.Say(rounds_.SecondsToGo(elapsed))};
  if (newest_) {
    progress.newest = plan_.cases[*newest_].name;
    progress.newest_ns = book_.Current(*newest_).so_far_ns();
  }
  progress_.ShowIfDue(measure::ProgressText(progress));
}

Scheduler::Step Scheduler::AwaitAll(measure::MessageType type, double seconds) {
  const Deadline deadline = Deadline::AfterSeconds(seconds);
  silence_.Reset();
  int arrived = 0;
  while (arrived < coordinator_.size()) {
    const double wait = silence_.pending() ? 0 : kLookSeconds;
    const coordinator::Event event =
        coordinator_.Next(deadline.Earlier(Deadline::AfterSeconds(wait)));
    if (silence_.OnEvent(event.kind)) return Step::kInterrupted;
    if (event.kind == coordinator::EventKind::kTimeout && !deadline.Passed()) {
      SaveIfWarned();
      if (type == measure::kRoundDoneMessage && !silence_.pending()) {
        TellProgress();
        stalls_.Look(coordinator_.Collect(), repetition_);
      }
      continue;
    }
    if (const std::optional<Step> step = Handle(event)) return *step;
    if (event.kind != coordinator::EventKind::kMessage || event.message.type != type) continue;
    if (type == measure::kReadyMessage && event.rank == 0) {
      measurement_.worker_facts = event.message.payload;
    }
    ++arrived;
  }
  return Step::kDone;
}

// What a worker reports before it leaves.
bool Scheduler::KeepError(const coordinator::Event& event) {
  if (event.message.type != measure::kErrorMessage) return false;
  errors_.emplace(event.rank, measure::DecodeError(event.message.payload));
  return true;
}

std::optional<Scheduler::Step> Scheduler::InterruptedIf(bool so) {
  return so ? std::optional(Step::kInterrupted) : std::nullopt;
}

std::optional<Scheduler::Step> Scheduler::Handle(const coordinator::Event& event) {
  switch (event.kind) {
    case coordinator::EventKind::kMessage:
      return InterruptedIf(KeepError(event));
    case coordinator::EventKind::kData:
      book_.Add(event.rank, event.message.payload);
      return std::nullopt;
    case coordinator::EventKind::kQuiet:
      return InterruptedIf(watch_.OnEvent(event).has_value());
    case coordinator::EventKind::kStopped:  // it may be continued: silence decides
    case coordinator::EventKind::kContinued:
      TellOfStop(event);
      return std::nullopt;
    case coordinator::EventKind::kTerminate:
      return Step::kTerminated;
    case coordinator::EventKind::kWarned:
      warned_until_ = Deadline::AfterSeconds(kWarnedSeconds);
      SaveSamples(/*even_none=*/true);
      return std::nullopt;
    case coordinator::EventKind::kOverdue:
      return std::nullopt;
    case coordinator::EventKind::kExited:
    case coordinator::EventKind::kSignalled:
    case coordinator::EventKind::kLost:
    case coordinator::EventKind::kTimeout:
    case coordinator::EventKind::kPlugin:  // nobody asked for a plugin or a fault
    case coordinator::EventKind::kFault:
      return Step::kInterrupted;
  }
  LOCKSTEP_CHECK(false, "an EventKind that is not in the table");
  return Step::kInterrupted;
}

void Scheduler::TellOfStop(const coordinator::Event& event) {
  const std::string who =
      fmt::format("rank {} (host {})", event.rank,
                  coordinator_.agents()[static_cast<std::size_t>(event.rank)].host);
  if (event.kind == coordinator::EventKind::kContinued) {
    progress_.Notice(fmt::format("{} was continued; the run goes on", who));
    return;
  }
  progress_.Notice(
      fmt::format("{} was stopped by signal {}: all others wait for it; continue it (kill -CONT), "
                  "or its case fails after {} s of silence (-T)",
                  who, event.signal, plan_.deadline_seconds));
}

// Peers of a dead rank often fail by themselves a moment later; what they say belongs to the
// evidence.
bool Scheduler::ToldToEndInGrace() {
  const Deadline deadline = Deadline::AfterSeconds(kGraceSeconds);
  while (!deadline.Passed()) {
    const coordinator::Event event = coordinator_.Next(deadline);
    if (Handle(event) == Step::kTerminated) return true;
    if (event.kind == coordinator::EventKind::kTimeout) return false;
  }
  return false;
}

void Scheduler::SaveSamples(bool even_none) {
  for (const coordinator::Event& data : coordinator_.TakeData()) {
    book_.Add(data.rank, data.message.payload);
  }
  if (!save_ || (book_.empty() && !even_none)) return;
  if (begun_) std::exchange(begun_, {})();
  measure::Measurement so_far = measurement_;
  if (std::ssize(so_far.stopped_by) < book_.repetitions()) {
    std::vector<std::string>& stopped = so_far.stopped_by.emplace_back();
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
      const bool rows = book_.Current(i).complete_rows() > 0;
      const std::string& known = rounds_.stopped_by(i);
      stopped.push_back(!known.empty() ? known : rows ? "interrupted" : "not_run");
    }
  }
  progress_.Clear();
  save_(so_far);
}

void Scheduler::SaveIfWarned() {
  if (warned_until_ && !warned_until_->Passed()) SaveSamples();
}

void Scheduler::OnTerminated() {
  measurement_.terminated = true;
  SaveSamples(/*even_none=*/true);
  const bool lost = coordinator::AwaitLostHosts(
      coordinator_, [this](const coordinator::Event& event) { Handle(event); });
  if (lost) Interrupt();
}

void Scheduler::Interrupt() {
  progress_.Clear();
  SaveSamples();
  measure::Interruption interruption{.repetition = repetition_,
                                     .lifetime = coordinator_.lifetime()};
  std::optional<coordinator::SilentLook::Look> look = silence_.TakeLook();
  const bool told = !look && !measurement_.terminated && ToldToEndInGrace();
  measurement_.terminated = measurement_.terminated || told;
  // Told to end, there is no time for stacks.
  if (!look) look = measurement_.terminated ? coordinator_.Glance() : coordinator_.Collect();
  std::vector<verdict::RankEvidence>& evidence = *look;
  if (told && !coordinator::HostsAreLost(coordinator_) && DiedOfTheEnd(evidence))
    return EndLifetime();
  for (verdict::RankEvidence& rank : evidence) {
    if (const auto error = errors_.find(rank.rank); error != errors_.end()) {
      rank.error = error->second.message();
    }
  }
  verdict::ForgiveBriefStops(evidence, plan_.deadline_seconds);
  stalls_.Interrupted(evidence);
  interruption.judgement = verdict::Judge(evidence, plan_.deadline_seconds);
  verdict::NameLostHosts(coordinator_.places(), evidence, interruption.judgement);
  interruption.case_index = measure::LostCase(evidence, interruption.judgement);
  EndLifetime();
  if (interruption.case_index) {
    rounds_.Lose(*interruption.case_index);
    measured_ = true;
  }
  coordinator_.Replicate(measure::EncodeMeasurement({.interruptions = {interruption}}));
  measurement_.interruptions.push_back(std::move(interruption));
}

void Scheduler::NoteEnd() {
  measure::RepetitionEnd end{.rounds = rounds_.begun()};
  for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
    const measure::CaseBook& book = book_.Current(i);
    const auto located = book.wrong | std::views::take(16);  // they name the ranks
    end.data.push_back({book.checked, book.wrong_elements, {located.begin(), located.end()}});
  }
  coordinator_.Replicate(measure::EncodeMeasurement(
      {.stopped_by = {measurement_.stopped_by.back()}, .ends = {std::move(end)}}));
}

void Scheduler::EndLifetime() {
  KeepHistory();
  coordinator_.EndWorkers();
  // What was on its way when the workers ended.
  for (;;) {
    const coordinator::Event event = coordinator_.Next(Deadline::AfterNs(0));
    if (event.kind == coordinator::EventKind::kTimeout) break;
    if (event.kind == coordinator::EventKind::kData) book_.Add(event.rank, event.message.payload);
  }
  alive_ = false;
}

Scheduler::Step Scheduler::Finish() {
  KeepHistory();
  coordinator_.SendAll({measure::kFinishMessage, ""});
  const double seconds = kFinishSeconds + plan_.deadline_seconds;
  const bool left = coordinator_.AwaitExits(Deadline::AfterSeconds(seconds));
  if (left) alive_ = false;
  return left ? Step::kDone : Step::kInterrupted;
}

void Scheduler::KeepHistory() {
  const std::vector<journal::Journal> journals = coordinator_.Journals(kHistoryEvents);
  for (std::size_t rank = 0; rank < journals.size(); ++rank) {
    measurement_.history.push_back({static_cast<int>(rank), coordinator_.lifetime(),
                                    journals[rank].missed, journals[rank].events});
  }
}

}  // namespace lockstep::bench::harness
