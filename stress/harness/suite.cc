// A stress run's way through a session: which cases, what of them is kept in the file, and what a
// successor makes of what was replicated when the coordinator is lost.
#include "stress/harness/suite.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/print_stderr.h"
#include "core/base/status.h"
#include "core/base/wrap.h"
#include "core/comm/backends.h"
#include "core/control/signals.h"
#include "core/coordinator/coordinator.h"
#include "results/store/run.h"
#include "results/store/run_file.h"
#include "results/store/save_pace.h"
#include "results/store/store.h"
#include "session/progress_line.h"
#include "session/session.h"
#include "stress/cases/assess.h"
#include "stress/cases/case_codec.h"
#include "stress/faults/fault_registry.h"
#include "stress/harness/options.h"
#include "stress/harness/record.h"
#include "stress/harness/report.h"
#include "stress/harness/run_cases.h"
#include "stress/harness/selection.h"
#include "stress/links/link_plugin.h"
#include "stress/run/worker.h"
#include "stress/simulate/sim_memory.h"
#include "stress/simulate/sim_stage.h"
#include "stress/simulate/simulate.h"

namespace lockstep::stress::harness {
namespace {

// A proof of a standstill is looked for when a rank was quiet for so long.
constexpr double kQuietSeconds = 0.01;

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
  verdict::ForgiveBriefStops(facts.evidence, options.deadline_seconds);
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

class StressSuite final : public session::Suite {
 public:
  std::string name() const override { return "lockstep-stress"; }
  // With backend sim it runs here: all ranks are in this process.
  Result<session::Plan> Prepare(const session::Launch& launch) override {
    launch_ = launch;
    LOCKSTEP_ASSIGN_OR_RETURN(const StressCommandLine line,
                              ParseStressCommandLine(launch.argc, launch.argv));
    if (!line.options) return session::Plan{ExitCode::kPass, line.text};
    options_ = *line.options;
    if (options_.list_faults) return session::Plan{ExitCode::kPass, faults::ListFaults()};
    if (options_.list) {
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, cases::DescribeCatalogue());
      return session::Plan{ExitCode::kPass, text};
    }
    outcome_.backend = options_.backend;
    cases::Selection& selected = outcome_;
    if (options_.backend != "sim") {
      LOCKSTEP_ASSIGN_OR_RETURN(selected, SelectForLaunch(options_, launch.context));
      return session::Plan{};
    }
    if (launch.context.rank != 0) return session::Plan{ExitCode::kPass};
    LOCKSTEP_ASSIGN_OR_RETURN(selected, SelectForSimulation(options_));
    LOCKSTEP_ASSIGN_OR_RETURN(const ExitCode code, Simulate());
    return session::Plan{code};
  }

  coordinator::CoordinatorOptions agents() const override {
    coordinator::CoordinatorOptions agents;
    agents.workers_own_mpi = (*comm::FindBackend("--backend", options_.backend))->uses_launcher_mpi;
    agents.silence_deadline_seconds = options_.deadline_seconds;
    agents.quiet_seconds = kQuietSeconds;
    if (!options_.gpu_samples) agents.gpu_sample_seconds = 0;
    if (std::ranges::any_of(outcome_.cases, HasLinkFaults)) {
      agents.plugin = [any = options_.allow_network_faults](int rank) {
        return links::MakeLinkPlugin(rank, any);
      };
    }
    return agents;
  }

  std::string output() const override { return options_.output; }
  results::store::Run NewRun() const override {
    return NewStressRun(options_, outcome_, launch_.command_line);
  }

  Status CheckOutputs() const override {
    return options_.verdicts.empty() ? OkStatus()
                                     : results::store::CheckWritable(options_.verdicts);
  }

  // What the system under test does is in the run; errors are of input or environment.
  Status Conduct(coordinator::Coordinator& coordinator, results::store::Run& run,
                 session::Output& output) override {
    return RunCases(
        coordinator, options_,
        // Now, because a launcher that ends us passes nothing on any more.
        [&] { output.Announce(); },
        [&] {
          if (outcome_.results.empty()) return;
          output.Save(coordinator, [&] {
            StressOutcome so_far = outcome_;
            so_far.terminated = true;
            results::store::Run kept = run;
            harness::Conclude(coordinator.agents(), launch_.context, so_far, kept);
            return kept;
          });
        },
        outcome_);
  }

  void Conclude(coordinator::Coordinator& coordinator, results::store::Run& run) override {
    harness::Conclude(coordinator.agents(), launch_.context, outcome_, run);
    const Result<const comm::Backend*> mpi = comm::FindBackend("--backend", "mpi");
    run.environment.emplace_back("software/mpi", mpi.ok() ? (*mpi)->version() : "none");
  }

  Status Report(const results::store::Run& run, const results::store::RunFile& file) override {
    const Status written = WriteVerdicts(options_.verdicts, FormatStressJson(outcome_));
    fmt::print("{}", FormatStressTable(outcome_, run));
    if (file.saved()) fmt::print("\nresult file: {}\n", OneLine(file.path()));
    return written;
  }

  ExitCode OnFailover(const coordinator::FailoverReport& failover) override {
    results::store::Run run = NewRun();
    outcome_.terminated = true;
    // Every case has workers of its own, so the newest are those of the case that ran.
    const auto current = static_cast<std::size_t>(std::max(failover.lifetime, 0));
    std::map<std::size_t, cases::CaseResult> told = ReplicatedResults(failover);
    for (std::size_t i = 0; i <= current && i < outcome_.cases.size(); ++i) {
      outcome_.results.push_back(
          told.contains(i) ? std::move(told[i])
                           : ResultFrom(failover, outcome_.cases[i], i == current, options_));
    }
    harness::Conclude(failover.agents, launch_.context, outcome_, run);
    return session::TakeOver(name(), options_.output, failover, std::move(run),
                             [this](const auto& left, const results::store::RunFile& file) {
                               return Report(left, file);
                             });
  }

  int Work(std::unique_ptr<worker::WorkerLink> link) override {
    return run::RunStressWorker(std::move(link));
  }

 private:
  Result<ExitCode> Simulate() {
    for (const cases::StressCase& stress_case : outcome_.cases) {
      LOCKSTEP_RETURN_IF_ERROR(simulate::CheckSimMemory(stress_case.scenario, options_.sim_rules));
    }
    results::store::Run run = NewRun();
    session::Output output(name(), options_.output, run);
    LOCKSTEP_RETURN_IF_ERROR(output.Check());
    LOCKSTEP_RETURN_IF_ERROR(CheckOutputs());
    outcome_.backend = fmt::format("sim_{}", comm::sim::NameOf(options_.sim_rules));
    try {
      const bool fits = SimulateCases(run, output);
      const std::size_t over = outcome_.results.size();
      harness::Conclude({}, launch_.context, outcome_, run);
      const Result<ExitCode> code =
          output.Store(run, [this](const auto& stored, const results::store::RunFile& file) {
            return Report(stored, file);
          });
      if (code.ok() && !fits) TellMemory(over, output);
      return code;
    } catch (const std::bad_alloc&) {
      if (saved_ == 0) return simulate::SimOutOfMemory();
      TellMemory(saved_, output);
      return ExitCode::kEnvironment;
    }
  }

  void TellMemory(std::size_t kept, const session::Output& output) const {
    PrintStderr("{}: {}; {} holds {} of {} cases\n", name(), simulate::SimOutOfMemory().message(),
                OneLine(output.file().path()), kept, outcome_.cases.size());
  }

  // A file takes memory, too, and there may be none for it in the end.
  void SaveSimulated(const results::store::Run& run, session::Output& output) {
    try {
      StressOutcome so_far = outcome_;
      so_far.terminated = true;
      results::store::Run kept = run;
      harness::Conclude({}, launch_.context, so_far, kept);
      if (output.Save(std::move(kept))) saved_ = outcome_.results.size();
    } catch (const std::bad_alloc&) {  // what was saved before stands
    }
  }

  // A signal to end cuts the case short that runs; what is over is kept. So it is where memory ends
  // (false): what the case took is free again.
  bool SimulateCases(const results::store::Run& run, session::Output& output) {
    results::store::SavePace pace(0.05);
    session::ProgressLine progress(options_.progress);
    control::Signals signals;
    for (const cases::StressCase& stress_case : outcome_.cases) {
      progress.Show(
          cases::ProgressText(outcome_.results.size(), outcome_.cases.size(), stress_case));
      // Results of earlier cases take memory, too.
      if (!outcome_.results.empty() &&
          !simulate::CheckSimMemory(stress_case.scenario, options_.sim_rules).ok()) {
        outcome_.terminated = true;
        return false;
      }
      // Of the machine's time: that of the ranks is virtual.
      const std::int64_t began_ns = MonotonicNs();
      const auto why_end = [&] {
        outcome_.terminated = outcome_.terminated || signals.Take().end != 0;
        if (outcome_.terminated) return std::string(run::kEndedBySignal);
        const bool over = SecondsSince(began_ns) >= options_.limit_seconds;
        return over ? run::NotOverAfter(options_.limit_seconds) : "";
      };
      try {
        outcome_.results.push_back(simulate::Simulate(stress_case, options_.sim_rules,
                                                      options_.deadline_seconds, why_end));
      } catch (const std::bad_alloc&) {
        if (outcome_.results.empty()) throw;
        outcome_.terminated = true;
        return false;
      }
      if (outcome_.terminated) break;
      pace.Call([&] { SaveSimulated(run, output); });
    }
    progress.Clear();
    return true;
  }

  session::Launch launch_;
  StressOptions options_;
  StressOutcome outcome_;
  std::size_t saved_ = 0;  // cases of a simulation
};

}  // namespace

int StressMain(int argc, char** argv) {
  StressSuite suite;
  return session::Main(suite, argc, argv);
}

}  // namespace lockstep::stress::harness
