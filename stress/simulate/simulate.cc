// Plays a case stage by stage: after a failure that is to be recovered from, the next stage has the
// members that are left. Its facts are judged as those of real ranks are.
#include "stress/simulate/simulate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/journal/journal.h"
#include "core/journal/purpose.h"
#include "stress/cases/recovery.h"
#include "stress/simulate/sim_stage.h"
#include "stress/workloads/program_report.h"

namespace lockstep::stress::simulate {
namespace {

// Stages of one case, each the recovery from the one before. Virtual time begins anew in each, so
// recoveries have no times.
class SimulatedCase {
 public:
  SimulatedCase(const cases::StressCase& stress_case, comm::sim::SimRules rules,
                double deadline_seconds, const WhyEnd& why_end)
      : why_end_(why_end),
        case_(stress_case),
        backend_(fmt::format("sim_{}", comm::sim::NameOf(rules))),
        rules_(rules),
        deadline_seconds_(deadline_seconds),
        stage_{&stress_case, stress_case.faults} {
    const auto ranks = static_cast<std::size_t>(stress_case.scenario.ranks);
    facts_.fired.assign(stress_case.faults.size(), false);
    facts_.reports.resize(ranks);
    facts_.journals.resize(ranks);
    wrong_data_.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      stage_.members.push_back(static_cast<int>(rank));
    }
    generation_.members = stage_.members;
    generation_.since.assign(ranks, 0);
  }

  cases::CaseResult Run() {
    const std::int64_t began_ns = MonotonicNs();
    while (RunOne()) {
    }
    facts_.generation = generation_;
    facts_.seconds = SecondsSince(began_ns);
    return cases::Assess(case_, backend_, deadline_seconds_, std::move(facts_));
  }

 private:
  // Whether another stage follows.
  bool RunOne() {
    StageEnd end = RunStage(stage_, rules_, deadline_seconds_, facts_.fired, [this] {
      facts_.cut_short = why_end_();
      return !facts_.cut_short.empty();
    });
    if (!end.complete && facts_.cut_short.empty()) {
      facts_.cut_short = "the simulation did not come to an end";
    }
    facts_.fired = end.fired;
    Keep(end);
    if (stage_.generation > 0 && !Connected(end)) return false;
    return facts_.cut_short.empty() && case_.scenario.recovery && Recover(end);
  }

  void Keep(const StageEnd& end) {
    const std::size_t ranks = facts_.reports.size();
    std::vector<verdict::RankEvidence> evidence(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      evidence[rank].rank = static_cast<int>(rank);
      facts_.reports[rank].reset();
    }
    for (std::size_t i = 0; i < stage_.members.size(); ++i) {
      const auto rank = static_cast<std::size_t>(stage_.members[i]);
      evidence[rank] = end.evidence[i];
      facts_.reports[rank] = end.reports[i];
      if (end.reports[i]) wrong_data_[rank].AddTo(*facts_.reports[rank]);
      Append(end.evidence[i].journal, facts_.journals[rank]);
    }
    facts_.evidence = cases::AsJudged(cases::OfGeneration(std::move(evidence), generation_),
                                      facts_.reports, std::vector<bool>(ranks), false);
  }

  // The stages of a rank one after the other, each in the time of its own.
  static void Append(const journal::Journal& stage, journal::Journal& all) {
    const journal::JournalEvent last =
        all.events.empty() ? journal::JournalEvent() : all.events.back();
    for (journal::JournalEvent event : stage.events) {
      event.index += last.index;
      event.ticks += last.ticks;
      all.events.push_back(event);
    }
    all.missed += stage.missed;
  }

  // What became of the recovery that this stage was to be the end of.
  bool Connected(const StageEnd& end) {
    cases::Recovery& recovery = facts_.recoveries.back();
    recovery.outcome = scenario::RecoveryOutcome::kRebuildFailed;
    std::vector<int> absent;
    bool gone = false;
    for (std::size_t i = 0; i < stage_.members.size(); ++i) {
      if (!end.connected[i]) absent.push_back(stage_.members[i]);
      gone = gone || (end.gone[i] && !end.connected[i]);
      if (!end.wrong_membership[i] || end.connected[i]) continue;
      recovery.finding = cases::WrongPlace(
          stage_.members[i], {stage_.members[i], static_cast<int>(facts_.reports.size())},
          {static_cast<int>(i), static_cast<int>(stage_.members.size())});
      return false;
    }
    // Another loss, to be recovered from in its turn.
    if (gone) return true;
    if (absent.empty()) {
      recovery.outcome = scenario::RecoveryOutcome::kResumed;
      return true;
    }
    recovery.finding =
        cases::NotConnected(std::move(absent), case_.scenario.recovery->connect_deadline_seconds);
    return false;
  }

  bool Recover(const StageEnd& end) {
    verdict::Judgement failure =
        cases::JudgeCase(case_.scenario, backend_, facts_.evidence, deadline_seconds_, generation_);
    if (failure.findings.empty() || facts_.recoveries.size() >= cases::kMostRecoveries)
      return false;
    std::vector<bool> gone(facts_.reports.size(), true);
    for (std::size_t i = 0; i < stage_.members.size(); ++i) {
      gone[static_cast<std::size_t>(stage_.members[i])] = end.gone[i];
    }
    cases::Recovery recovery;
    recovery.mode = case_.scenario.recovery->mode;
    recovery.generation = stage_.generation + 1;
    const std::vector<int> lost = cases::LostIn(failure, gone);
    recovery.failure = std::move(failure);
    SimStage next = stage_;
    next.generation = recovery.generation;
    next.members.clear();
    next.first_iteration = std::numeric_limits<std::int64_t>::max();
    std::vector<int> hung;
    for (std::size_t i = 0; i < stage_.members.size(); ++i) {
      const int rank = stage_.members[i];
      const bool is_lost = std::ranges::count(lost, rank) > 0;
      const auto& report = end.reports[i];
      const bool finished = report && report->status.ok();
      if (is_lost) recovery.lost.push_back(rank);
      if (is_lost || finished || end.gone[i]) continue;
      next.members.push_back(rank);
      next.first_iteration =
          std::min(next.first_iteration, CompletedBy(report, end.evidence[i].journal));
      if (end.abort_hangs[i]) hung.push_back(rank);
    }
    if (next.members.empty()) return false;
    recovery.first_iteration = next.first_iteration;
    if (!hung.empty()) {
      recovery.outcome = scenario::RecoveryOutcome::kAbortHung;
      recovery.finding =
          cases::AbortHung(std::move(hung), case_.scenario.recovery->abort_deadline_seconds);
      facts_.recoveries.push_back(std::move(recovery));
      return false;
    }
    Rebuild(std::move(next), std::move(recovery));
    return true;
  }

  void Rebuild(SimStage next, cases::Recovery recovery) {
    const bool restart = recovery.mode == scenario::RecoveryPlan::Mode::kRestart;
    if (restart) {
      next.members.insert(next.members.end(), recovery.lost.begin(), recovery.lost.end());
      std::ranges::sort(next.members);
    }
    next.restarted.clear();
    for (const int rank : next.members) {
      next.restarted.push_back(std::ranges::count(recovery.lost, rank) > 0);
    }
    for (std::size_t i = 0; i < facts_.fired.size(); ++i) {
      if (facts_.fired[i]) next.faults[i].rank = -1;
    }
    for (const int rank : next.members) {
      const auto& report = facts_.reports[static_cast<std::size_t>(rank)];
      if (!report) continue;
      wrong_data_[static_cast<std::size_t>(rank)].Keep(*report, recovery.first_iteration);
    }
    recovery.members = next.members;
    generation_.number = next.generation;
    generation_.members = next.members;
    facts_.recoveries.push_back(std::move(recovery));
    stage_ = std::move(next);
  }

  // Iterations of a survivor. One that waits for ever is in the one after those.
  static std::int64_t CompletedBy(const std::optional<workloads::ProgramReport>& report,
                                  const journal::Journal& journal) {
    if (report) return report->completed;
    const std::optional<journal::JournalEvent> open = journal::OpenOperation(journal);
    return open ? std::max(0, journal::UnpackAnnotation(open->value).iteration) : 0;
  }

  const WhyEnd& why_end_;
  const cases::StressCase& case_;
  std::string backend_;
  comm::sim::SimRules rules_;
  double deadline_seconds_;
  SimStage stage_;
  cases::Generation generation_;
  cases::CaseFacts facts_;
  std::vector<workloads::WrongDataKept> wrong_data_;  // by rank, of the stages before
};

}  // namespace

cases::CaseResult Simulate(const cases::StressCase& stress_case, comm::sim::SimRules rules,
                           double deadline_seconds, const WhyEnd& why_end) {
  return SimulatedCase(stress_case, rules, deadline_seconds, why_end).Run();
}

}  // namespace lockstep::stress::simulate
