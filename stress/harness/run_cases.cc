// Runs the selected cases. Where the machine lacks what every case needs, one error takes the place
// of all verdicts. A lack of one case is the outcome of that case.
#include "stress/harness/run_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "core/coordinator/lost_hosts.h"
#include "results/store/save_pace.h"
#include "session/progress_line.h"
#include "stress/cases/case_codec.h"
#include "stress/faults/fault_registry.h"
#include "stress/run/case_runner.h"
#include "stress/workloads/program_report.h"

namespace lockstep::stress::harness {
namespace {

constexpr char kProgram[] = "lockstep-stress: ";

// What a rank lacks to begin its program: of the machine (kEnvironment), or by the nature of the
// backend or device (kUnsupported).
Status LackOf(const cases::CaseResult& result, StatusCode code) {
  for (const auto& report : result.facts.reports) {
    if (!report || report->where != workloads::kWherePlatform) continue;
    if (report->status.code() == code) return report->status;
  }
  return OkStatus();
}

// Its processes are not started like those of other cases.
bool HasOwnStart(const cases::StressCase& stress_case) {
  return std::ranges::any_of(stress_case.faults, [](const faults::PlannedFault& fault) {
    return faults::SiteOf(fault.kind) == faults::FaultSite::kStart;
  });
}

cases::CaseResult NotStarted(const cases::StressCase& stress_case, const Status& why) {
  cases::CaseResult result;
  result.why = fmt::format("its ranks could not be started: {}", why.message());
  result.facts.fired.assign(stress_case.faults.size(), false);
  result.facts.notes.resize(stress_case.faults.size());
  return result;
}

struct Ran {
  cases::CaseResult result;
  Status lack;  // why nothing of it could be judged; OK: it was
};

Ran RunOne(run::CaseRunner& runner, const cases::StressCase& stress_case) {
  Result<cases::CaseResult> ran = runner.Run(stress_case);
  if (!ran.ok()) return {NotStarted(stress_case, ran.status()), ran.status()};
  cases::CaseResult result = *std::move(ran);
  Status lack = LackOf(result, StatusCode::kUnsupported);
  if (!lack.ok()) result.why = lack.message();
  // What a fault of its own took from a rank may have been judged.
  if (lack.ok() && result.verdict == verdict::Verdict::kUnknown) {
    lack = LackOf(result, StatusCode::kEnvironment);
  }
  return {std::move(result), std::move(lack)};
}

Status LeaveOut(std::size_t index, const Status& lack, StressOutcome& outcome) {
  const auto one = outcome.cases.begin() + static_cast<std::ptrdiff_t>(index);
  outcome.unmet.push_back(fmt::format("{}: {}", one->label, lack.message()));
  outcome.cases.erase(one);
  return outcome.cases.empty() ? Unsupported(outcome.unmet.front()) : OkStatus();
}

void Begin(const coordinator::Coordinator& coordinator, const StressOptions& options,
           const StressOutcome& outcome, session::ProgressLine& progress) {
  progress.Announce(fmt::format("{}{} case{} on {} ranks, each at most {:g} s", kProgram,
                                outcome.cases.size(), outcome.cases.size() == 1 ? "" : "s",
                                coordinator.size(), options.limit_seconds));
}

void Tell(std::size_t tried, const StressOutcome& outcome, const cases::StressCase& next,
          session::ProgressLine& progress) {
  const std::string text = cases::ProgressText(outcome.results.size(), outcome.cases.size(), next);
  if (cases::StaysInLog(tried, outcome.cases.size())) {
    progress.ShowStep(text, kProgram);
  } else {
    progress.Show(text);
  }
}

}  // namespace

Status RunCases(coordinator::Coordinator& coordinator, const StressOptions& options,
                std::function<void()> begun, const std::function<void()>& save,
                StressOutcome& outcome) {
  run::CaseRunner runner(coordinator, options);
  runner.SetBegun(std::move(begun));
  runner.SetSave(save);
  results::store::SavePace pace(0.05);
  session::ProgressLine progress(options.progress);
  Begin(coordinator, options, outcome, progress);
  Status first_lack;
  std::size_t lacking = 0;
  for (std::size_t tried = 0; outcome.results.size() < outcome.cases.size(); ++tried) {
    const std::size_t i = outcome.results.size();
    const cases::StressCase& stress_case = outcome.cases[i];
    Tell(tried, outcome, stress_case, progress);
    coordinator.MeasureClocks(/*thoroughly=*/false);
    auto [result, lack] = RunOne(runner, stress_case);
    coordinator.Replicate(cases::EncodeCase(tried, result));
    if (lack.code() == StatusCode::kUnsupported) {
      LOCKSTEP_RETURN_IF_ERROR(LeaveOut(i, lack, outcome));
      continue;
    }
    if (!lack.ok()) {
      // Nor could any other begin.
      if (i == 0 && !HasOwnStart(stress_case)) return lack;
      if (lacking++ == 0) first_lack = lack;
    }
    outcome.results.push_back(std::move(result));
    outcome.worker_facts = runner.worker_facts();
    // Without all agents nobody can be started again.
    outcome.terminated = runner.terminated() || coordinator::HostsAreLost(coordinator);
    if (outcome.terminated) return OkStatus();
    // A launcher that ends us may leave no time for it.
    if (lacking < outcome.results.size()) pace.Call(save);
  }
  return lacking == outcome.results.size() ? first_lack : OkStatus();
}

}  // namespace lockstep::stress::harness
