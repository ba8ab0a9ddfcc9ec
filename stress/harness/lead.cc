// Runs the selected cases one after the other, keeps the file up to date, and prints the report. A
// successor that takes over a lost coordinator ends here, too.
#include "stress/harness/lead.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "core/comm/backends.h"
#include "core/verdict/lost_hosts.h"
#include "core/verdict/outcome.h"
#include "results/store/clock_records.h"
#include "results/store/partial_path.h"
#include "results/store/run_file.h"
#include "results/store/save_pace.h"
#include "results/store/store.h"
#include "stress/cases/assess.h"
#include "stress/cases/case_codec.h"
#include "stress/harness/progress.h"
#include "stress/harness/record.h"
#include "stress/harness/report.h"
#include "stress/run/case_runner.h"
#include "stress/simulate/sim_memory.h"
#include "stress/simulate/sim_stage.h"
#include "stress/simulate/simulate.h"

namespace lockstep::stress::harness {
namespace {

// Of each GPU: half a day.
constexpr std::size_t kMostGpuSamples = 43'200;
constexpr double kReadSeconds = 2;

Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.flush();
  if (file) return OkStatus();
  return EnvironmentError(
      fmt::format("--json: '{}' could not be written; check the directory and its space", path));
}

// What this machine lacks: for any case (kEnvironment: it is told once, in place of verdicts), or
// for this one (kUnsupported).
Status LackOf(const cases::CaseResult& result, StatusCode code) {
  for (const auto& report : result.facts.reports) {
    if (!report || report->where != cases::kWherePlatform) continue;
    if (report->status.code() == code) return report->status;
  }
  return OkStatus();
}

Status RunCases(coordinator::Coordinator& coordinator, const StressOptions& options,
                const std::function<void()>& save, StressOutcome& outcome) {
  run::CaseRunner runner(coordinator, options);
  runner.SetSave(save);
  results::store::SavePace pace(0.05);
  StressProgress progress(options.progress);
  std::size_t tried = 0;
  for (std::size_t i = 0; i < outcome.cases.size(); ++tried) {
    const cases::StressCase& stress_case = outcome.cases[i];
    progress.Show(outcome.results.size(), outcome.cases.size(), stress_case.label);
    coordinator.MeasureClocks(/*thoroughly=*/false);
    LOCKSTEP_ASSIGN_OR_RETURN(cases::CaseResult result, runner.Run(stress_case));
    LOCKSTEP_RETURN_IF_ERROR(LackOf(result, StatusCode::kEnvironment));
    const Status unmet = LackOf(result, StatusCode::kUnsupported);
    if (!unmet.ok()) {
      result.why = unmet.message();
      coordinator.Replicate(cases::EncodeCase(tried, result));
      outcome.unmet.push_back(fmt::format("{}: {}", stress_case.label, unmet.message()));
      outcome.cases.erase(outcome.cases.begin() + static_cast<std::ptrdiff_t>(i));
      if (outcome.cases.empty()) return Unsupported(outcome.unmet.front());
      continue;
    }
    ++i;
    outcome.results.push_back(std::move(result));
    coordinator.Replicate(cases::EncodeCase(tried, outcome.results.back()));
    outcome.terminated = runner.terminated();
    outcome.worker_facts = runner.worker_facts();
    if (outcome.terminated) break;
    pace.Call(save);  // a launcher that ends us may leave no time for it
  }
  return OkStatus();
}

// Faults of processes, machines and links are nothing that a simulation could show.
Status LeaveOutWhatNeedsProcesses(cases::Selection& selection) {
  std::string first;
  std::erase_if(selection.cases, [&](const cases::StressCase& stress_case) {
    const auto needs = std::find_if(
        stress_case.faults.begin(), stress_case.faults.end(),
        [](const faults::PlannedFault& fault) {
          return faults::IsByAgent(fault.kind) || faults::IsOfLink(fault.kind) ||
                 fault.moment.kind ==
                     faults::FaultMoment::Kind::kConnect ||  // of a library that connects
                 fault.moment.kind ==
                     faults::FaultMoment::Kind::kAbort;  // ... and is told to abort
        });
    if (needs == stress_case.faults.end()) return false;
    if (first.empty()) first = faults::NameOf(needs->kind);
    selection.skipped.push_back(stress_case.scenario.name);
    return true;
  });
  if (!selection.cases.empty()) return OkStatus();
  return Unsupported(fmt::format(
      "--backend=sim: the fault '{}' needs real processes; run it with mpirun and another backend",
      first));
}

// The file and the screen; a file that is not where it should be is an error after both.
Result<ExitCode> StoreAndReport(const StressOptions& options, results::store::Run& run,
                                results::store::RunFile& file, const StressOutcome& outcome) {
  const Status stored = file.Store(run);
  const Status written =
      options.json.empty() ? OkStatus() : WriteText(options.json, FormatStressJson(outcome));
  fmt::print("{}", FormatStressTable(outcome, run));
  if (file.saved()) fmt::print("\nresult file: {}\n", file.path());
  std::fflush(stdout);
  LOCKSTEP_RETURN_IF_ERROR(stored);
  LOCKSTEP_RETURN_IF_ERROR(written);
  return verdict::ExitCodeOf(run.verdict);
}

std::map<std::size_t, cases::CaseResult> ReplicatedResults(
    const coordinator::FailoverReport& failover) {
  std::map<std::size_t, cases::CaseResult> results;
  for (const std::string& record : failover.replicated) {
    if (auto replicated = cases::DecodeCase(record)) {
      results[replicated->index] = std::move(replicated->result);
    }
  }
  return results;
}

// Of a case that ran when the coordinator was lost, or of one before it that it had no time to tell
// of.
cases::CaseResult ResultFrom(const coordinator::FailoverReport& failover,
                             const cases::StressCase& stress_case, bool current,
                             const StressOptions& options) {
  cases::CaseFacts facts;
  const std::size_t ranks = failover.evidence.size();
  facts.reports.resize(ranks);
  facts.fired.assign(stress_case.faults.size(), false);
  facts.notes.resize(stress_case.faults.size());
  facts.journals.resize(ranks);
  facts.evidence = failover.evidence;
  if (current) {
    facts.journals = failover.journals;
    facts.places = failover.places;
    return cases::Assess(stress_case, options.backend, options.deadline_seconds, std::move(facts));
  }
  cases::CaseResult result;
  result.why = "it was judged, but by the coordinator, which is lost";
  for (const verdict::RankEvidence& rank : facts.evidence) {
    result.judgement.outcomes.emplace_back().rank = rank.rank;
  }
  result.facts = std::move(facts);
  return result;
}

std::string OutputPath(const StressOptions& options, const results::store::Run& run) {
  return options.output.empty() ? results::store::DefaultRunPath(run, "results/runs")
                                : options.output;
}

// Asked before anything runs.
Status CheckOutputs(const StressOptions& options, const results::store::RunFile& file) {
  LOCKSTEP_RETURN_IF_ERROR(file.Check());
  return options.json.empty() ? OkStatus() : results::store::CheckWritable(options.json);
}

}  // namespace

Result<ExitCode> LeadSimulation(const StressOptions& options, cases::Selection selection,
                                const control::LaunchContext& context,
                                const std::string& command_line) {
  LOCKSTEP_RETURN_IF_ERROR(LeaveOutWhatNeedsProcesses(selection));
  for (const cases::StressCase& stress_case : selection.cases) {
    LOCKSTEP_RETURN_IF_ERROR(simulate::CheckSimMemory(stress_case.scenario, options.sim_rules));
  }
  results::store::Run run = NewStressRun(options, selection, command_line);
  results::store::RunFile file(OutputPath(options, run));
  LOCKSTEP_RETURN_IF_ERROR(CheckOutputs(options, file));
  StressOutcome outcome;
  outcome.backend = fmt::format("sim_{}", comm::sim::NameOf(options.sim_rules));
  outcome.cases = std::move(selection.cases);
  outcome.skipped = std::move(selection.skipped);
  outcome.unmet = std::move(selection.unmet);
  {
    StressProgress progress(options.progress);
    for (const cases::StressCase& stress_case : outcome.cases) {
      progress.Show(outcome.results.size(), outcome.cases.size(), stress_case.label);
      try {
        outcome.results.push_back(
            simulate::Simulate(stress_case, options.sim_rules, options.deadline_seconds));
      } catch (const std::bad_alloc&) {
        return simulate::SimOutOfMemory();
      }
    }
  }
  Conclude({}, context, outcome, run);
  return StoreAndReport(options, run, file, outcome);
}

Result<ExitCode> LeadStress(const StressOptions& options, cases::Selection selection,
                            const control::LaunchContext& context,
                            const coordinator::CoordinatorOptions& coordinator_options,
                            const std::string& command_line) {
  results::store::Run run = NewStressRun(options, selection, command_line);
  results::store::RunFile file(OutputPath(options, run));
  LOCKSTEP_RETURN_IF_ERROR(CheckOutputs(options, file));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<coordinator::Coordinator> coordinator,
                            coordinator::Coordinator::Open(context, coordinator_options));
  StressOutcome outcome;
  outcome.backend = options.backend;
  outcome.cases = std::move(selection.cases);
  outcome.skipped = std::move(selection.skipped);
  outcome.unmet = std::move(selection.unmet);
  // The cases that are over. What is left to do can be lost.
  const auto save = [&] {
    if (outcome.results.empty()) return;
    StressOutcome so_far = outcome;
    so_far.terminated = true;
    results::store::Run kept = run;
    Conclude(coordinator->agents(), context, so_far, kept);
    if (verdict::WeAreCutOff(coordinator->places())) {
      file.MoveTo(results::store::PartialPath(OutputPath(options, run), context.rank));
    }
    const bool first = !file.saved();
    file.Save(kept);
    if (first) fmt::print(stderr, "stress: note: results go to {}\n", file.path());
  };
  const Status ran = RunCases(*coordinator, options, save, outcome);
  if (!ran.ok()) {
    coordinator->Dismiss();
    return ran;
  }
  coordinator->MeasureClocks(/*thoroughly=*/true);
  run.gpu_samples = journal::PlaceSamples(
      coordinator->ReadGpus(kMostGpuSamples, Deadline::AfterSeconds(kReadSeconds)));
  run.logs = coordinator->TakeLogs();
  coordinator->Rest();
  results::store::AddClocks(coordinator->clocks(), run);
  Conclude(coordinator->agents(), context, outcome, run);
  const Result<const comm::Backend*> mpi = comm::FindBackend("--backend", "mpi");
  run.environment.emplace_back("software/mpi", mpi.ok() ? (*mpi)->version() : "none");
  if (verdict::WeAreCutOff(coordinator->places())) {
    file.MoveTo(results::store::PartialPath(OutputPath(options, run), context.rank));
  }
  Result<ExitCode> code = StoreAndReport(options, run, file, outcome);
  coordinator->Dismiss();
  return code;
}

ExitCode SucceedStress(const StressOptions& options, const cases::Selection& selection,
                       const control::LaunchContext& context, const std::string& command_line,
                       const coordinator::FailoverReport& failover) {
  results::store::Run run = NewStressRun(options, selection, command_line);
  StressOutcome outcome;
  outcome.backend = options.backend;
  outcome.cases = selection.cases;
  outcome.skipped = selection.skipped;
  outcome.terminated = true;
  // Every case has workers of its own, so the newest are those of the case that ran.
  const auto current = static_cast<std::size_t>(std::max(failover.lifetime, 0));
  std::map<std::size_t, cases::CaseResult> told = ReplicatedResults(failover);
  for (std::size_t i = 0; i <= current && i < outcome.cases.size(); ++i) {
    outcome.results.push_back(told.contains(i)
                                  ? std::move(told[i])
                                  : ResultFrom(failover, outcome.cases[i], i == current, options));
  }
  Conclude(failover.agents, context, outcome, run);
  results::store::RunFile file(OutputPath(options, run));
  if (!failover.whole) file.MoveTo(results::store::PartialPath(file.path(), failover.successor));
  fmt::print(stderr,
             "stress: the coordinator (rank 0's agent) is lost; rank {}'s agent took its place\n",
             failover.successor);
  const Result<ExitCode> code = StoreAndReport(options, run, file, outcome);
  if (!file.older().empty()) {
    fmt::print(stderr, "stress: note: what the coordinator had stored is in {}\n", file.older());
  }
  if (code.ok()) return *code;
  fmt::print(stderr, "stress: {}\n", code.status().message());
  return ExitCodeOf(code.status().code());
}

}  // namespace lockstep::stress::harness
