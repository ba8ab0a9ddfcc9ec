// A benchmark's way through a session: every agent plans alike; the coordinator measures the host's
// floors before and after the rounds, and has the kind judge what it knows.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/floors/floors.h"
#include "bench/floors/run_floors.h"
#include "bench/harness/bench_main.h"
#include "bench/harness/failover.h"
#include "bench/harness/google_benchmark.h"
#include "bench/harness/options.h"
#include "bench/harness/scheduler.h"
#include "bench/harness/worker.h"
#include "bench/measure/kind.h"
#include "bench/measure/rounds.h"
#include "bench/measure/run_record.h"
#include "bench/plan/plan.h"
#include "core/base/print_stderr.h"
#include "core/base/status.h"
#include "core/base/units.h"
#include "core/base/wrap.h"
#include "core/comm/backends.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/machine_facts.h"
#include "results/report/report.h"
#include "results/store/run.h"
#include "session/progress_line.h"
#include "session/session.h"

namespace lockstep::bench::harness {
namespace {

// Part of the available memory that buffers may take; the rest is for libraries and the file.
constexpr double kMemoryShare = 0.85;
// When a rank was quiet for so long it is asked whether anyone can go on. Longer than in `stress`:
// an agent that looks more often takes processor time from what is measured.
constexpr double kQuietSeconds = 0.1;

// How fast each rank's counter runs, in nanoseconds a tick.
std::vector<double> RatesOf(const coordinator::Coordinator& coordinator, const TickScale& ours) {
  std::vector<double> rates;
  for (int rank = 0; rank < coordinator.size(); ++rank) {
    const coordinator::HostClocks& clocks = coordinator.clocks();
    rates.push_back(clocks.shared(rank) ? ours.ns_per_tick : clocks.NsPerTick(rank));
  }
  return rates;
}

// Asks what the backend can do by its nature, before anything is started.
Status CheckBackend(const plan::Plan& plan, const comm::Backend& backend) {
  for (const plan::PlannedCase& planned : plan.cases) {
    for (const collective::Operation& operation : planned.operations) {
      LOCKSTEP_RETURN_IF_ERROR(
          backend.capabilities().supports(comm::AsSupported(backend, operation)));
    }
  }
  return OkStatus();
}

// The processors of the ranks on the coordinator's host.
std::vector<std::vector<int>> LocalCpus(const coordinator::Coordinator& coordinator) {
  std::vector<std::vector<int>> cpus;
  for (const control::AgentInfo& agent : coordinator.agents()) {
    if (agent.boot_id == coordinator.agents().front().boot_id) cpus.push_back(agent.cpus);
  }
  return cpus;
}

std::int64_t LargestMessage(const plan::Plan& plan) {
  std::int64_t largest = 0;
  for (const plan::PlannedCase& planned : plan.cases) {
    for (const collective::Operation& operation : planned.operations) {
      largest = std::max(largest, collective::MessageBytes(operation, plan.world_size));
    }
  }
  return largest;
}

// Refuses buffers that would bring the kernel's out-of-memory killer.
Status CheckMemory(const plan::Plan& plan, const coordinator::Coordinator& coordinator) {
  std::map<std::string, std::int64_t> ranks_on;
  for (const control::AgentInfo& agent : coordinator.agents()) ++ranks_on[agent.host];
  const double need = static_cast<double>(plan.send_buffer_bytes) +
                      static_cast<double>(plan.recv_buffer_bytes) +
                      static_cast<double>(plan.memory_bytes);
  for (const control::AgentInfo& agent : coordinator.agents()) {
    const double share = static_cast<double>(agent.memory_available_bytes) * kMemoryShare /
                         static_cast<double>(ranks_on[agent.host]);
    if (need <= share) continue;
    return EnvironmentError(
        "rank {} on {} needs {} for its buffers and has {}; choose a smaller -e or --model, fewer "
        "options to compare, or fewer ranks a host",
        agent.rank, agent.host, FormatBytes(static_cast<std::int64_t>(std::min(need, 9e18))),
        FormatBytes(static_cast<std::int64_t>(share)));
  }
  return OkStatus();
}

// Events of a rank that are kept. A ring that leaves the first cache takes lines from what is
// measured, so of collectives it holds a few iterations (results/reference/measuring.md).
std::size_t JournalCapacity(const plan::Plan& plan) {
  std::size_t events = 0;  // of an iteration: three of each operation, and of a barrier
  for (const plan::PlannedCase& planned : plan.cases) {
    if (!planned.step.name.empty()) return agent::AgentOptions().journal_capacity;
    events = std::max(events, 3 * (1 + planned.operations.size()));
  }
  return std::bit_ceil(8 * events);  // eight iterations
}

// "190 cases on 2 ranks, at most 50 s".
std::string PlanText(const plan::Plan& plan, int repetitions) {
  const auto cases = std::ranges::count(plan.cases, false, &plan::PlannedCase::rests);
  std::string text = fmt::format("{} case{} on {} rank{}", cases, cases == 1 ? "" : "s",
                                 plan.world_size, plan.world_size == 1 ? "" : "s");
  if (plan.iterations) text += fmt::format(", {} iterations each", *plan.iterations);
  const double most = measure::MostSeconds(plan);
  if (std::isfinite(most)) text += fmt::format(", at most {:.3g} s", most);
  return repetitions > 1 ? fmt::format("{} times {}", repetitions, text) : text;
}

// A backend that moves data on a thread of its own needs a second processor for each rank.
void WarnOfBinding(const std::string& name, const coordinator::Coordinator& coordinator) {
  for (const control::AgentInfo& agent : coordinator.agents()) {
    if (agent.cpus.size() != 1) continue;
    PrintStderr(
        "{}: note: rank {} is bound to one processor, which gloo's transport thread must "
        "share with the caller: expect milliseconds; mpirun --bind-to none avoids it\n",
        name, agent.rank);
    return;
  }
}

// Cases that were not needed are not in the file: events of those behind them get their numbers
// there.
void Renumber(const std::vector<std::vector<std::string>>& stopped_by,
              std::vector<results::store::RankHistory>& history) {
  if (stopped_by.empty()) return;
  std::vector<std::uint32_t> number;
  std::uint32_t next = 0;
  for (const std::string& reason : stopped_by.front()) {
    number.push_back(next);
    next += reason != "not_needed";
  }
  for (results::store::RankHistory& rank : history) {
    for (journal::JournalEvent& event : rank.events) {
      if (event.case_index < number.size()) event.case_index = number[event.case_index];
    }
  }
}

class BenchSuite final : public session::Suite {
 public:
  explicit BenchSuite(measure::Kind& kind) : kind_(kind) {}

  std::string name() const override { return kind_.name(); }
  Result<session::Plan> Prepare(const session::Launch& launch) override {
    launch_ = launch;
    LOCKSTEP_ASSIGN_OR_RETURN(const CommandLine line,
                              ParseCommandLine(kind_, launch.argc, launch.argv));
    if (!line.options) return session::Plan{ExitCode::kPass, line.text};
    options_ = *line.options;
    // Which rank is on which host is not known before they meet.
    for (int rank = 0; rank < launch.context.size; ++rank) {
      hosts_.push_back(fmt::format("{}", rank / launch.context.local_size));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const plan::Plan all, kind_.ExpandOnHosts(options_.spec, hosts_));
    LOCKSTEP_ASSIGN_OR_RETURN(backend_, comm::FindBackend("--backend", all.backend));
    LOCKSTEP_RETURN_IF_ERROR(CheckBackend(all, *backend_));
    LOCKSTEP_RETURN_IF_ERROR(Select(all, launch.context.rank == 0));
    if (selection_.listed) return session::Plan{ExitCode::kPass};
    return session::Plan{};
  }

  coordinator::CoordinatorOptions agents() const override {
    coordinator::CoordinatorOptions agents;
    agents.workers_own_mpi = backend_->uses_launcher_mpi;
    agents.mpi_on_threads = plan::CommunicatesOnThreads(plan_);
    agents.silence_deadline_seconds = options_.spec.deadline_seconds;
    agents.quiet_seconds = kQuietSeconds;
    agents.journal_capacity = JournalCapacity(plan_);
    agents.keep_data = true;
    if (!options_.gpu_samples) agents.gpu_sample_seconds = 0;
    return agents;
  }

  std::string output() const override { return options_.output; }
  results::store::Run NewRun() const override {
    results::store::Run run = measure::NewRun(name(), plan_);
    run.command_line = launch_.command_line;
    return run;
  }

  // What the system under test does is in the run; errors are of input or environment.
  Status Conduct(coordinator::Coordinator& coordinator, results::store::Run& run,
                 session::Output& output) override {
    began_ns_ = MonotonicNs();
    LOCKSTEP_RETURN_IF_ERROR(CheckBenchmarkOut(options_.benchmark_flags));
    LOCKSTEP_RETURN_IF_ERROR(PlanOnHosts(coordinator.agents(), run));
    LOCKSTEP_RETURN_IF_ERROR(CheckMemory(plan_, coordinator));
    if (plan_.backend == "gloo") WarnOfBinding(name(), coordinator);
    session::ProgressLine progress(options_.progress);
    const std::string announced =
        fmt::format("{}: {}", name(), PlanText(plan_, selection_.repetitions));
    progress.Show(announced);
    const bool crosses = backend_->capabilities().moves_data;
    floors_.emplace(LocalCpus(coordinator),
                    crosses ? std::optional(LargestMessage(plan_)) : std::nullopt);
    coordinator.TellBusy();
    before_ = floors_->Measure();
    book_.emplace(plan_.world_size, plan_.cases.size(), CalibrateTicks());
    run.origin_ticks = book_->scale().origin_ticks;
    run.ns_per_tick = book_->scale().ns_per_tick;
    book_->SetRates(RatesOf(coordinator, book_->scale()));
    Scheduler scheduler(coordinator, agents(), plan_, *book_, progress);
    // Now, because a launcher that ends us passes nothing on any more.
    // An error before that is the only line.
    scheduler.SetBegun([&] {
      progress.Announce(announced);
      output.Announce();
    });
    scheduler.SetReference([this] { return floors_->Look(); });
    scheduler.SetSave([&](const measure::Measurement& so_far) {
      output.Save(coordinator, [&] { return SoFar(coordinator, run, so_far); });
    });
    scheduler.SetSecondPass([&](int repetition) {
      return kind_.Retests({plan_, hosts_, *book_, repetition});
    });
    LOCKSTEP_ASSIGN_OR_RETURN(measurement_, scheduler.Run(selection_.repetitions));
    return OkStatus();
  }

  void Conclude(coordinator::Coordinator& coordinator, results::store::Run& run) override {
    book_->PutOnOneClock(coordinator.clocks());
    const floors::HostFloors after = measurement_.terminated ? before_ : floors_->Measure();
    Describe(coordinator, after, run);
    // What moves no data, or moves them elsewhere, is not bound by what it costs here.
    const bool bound = on_host_ && backend_->capabilities().moves_data;
    for (measure::Interruption& ended : measurement_.interruptions) {
      kind_.Explain(measurement_.history, hosts_, ended);
    }
    const std::vector<floors::HostFloors> floors =
        bound ? std::vector{before_, after} : std::vector<floors::HostFloors>{};
    run.cases = measure::CaseRecords(plan_, *book_, floors, measurement_);
    for (results::store::CaseRecord& record : run.cases) record.device = on_host_ ? "host" : "cuda";
    run.judgement = measure::LaunchJudgement(run.cases, measurement_, plan_.world_size);
    const bool measured = run.judgement.verdict == verdict::Verdict::kPass;
    const int last = static_cast<int>(measurement_.stopped_by.size()) - 1;
    kind_.Judge({plan_, hosts_, *book_, last}, run);
    run.verdict = run.judgement.verdict;
    run.history = std::move(measurement_.history);
    Renumber(measurement_.stopped_by, run.history);
    run.complete = !measurement_.terminated;
    const bool well = measured && run.judgement.findings.empty();
    run.summary_line = well ? kind_.Describe(run) : "";
    if (run.summary_line.empty()) run.summary_line = measure::SummaryLine(run, plan_);
    run.duration_seconds = SecondsSince(began_ns_);
  }

  Status Report(const results::store::Run& run, const results::store::RunFile& file) override {
    const bool display = options_.format == measure::ReportFormat::kGoogleBenchmark;
    if (options_.format == measure::ReportFormat::kNcclTests) {
      fmt::print("{}", results::report::FormatNcclTests(run));
    } else if (options_.format == measure::ReportFormat::kJsonLines) {
      fmt::print("{}", results::report::FormatJsonLines(run));
    } else if (options_.format == measure::ReportFormat::kCsv) {
      fmt::print("{}", results::report::FormatCsv(run));
    }
    Status exported = OkStatus();
    if (display || selection_.writes_file) {
      exported = ReportWithGoogleBenchmark(run, options_.benchmark_flags, display);
    }
    PrintTable(run, file);
    std::fflush(stdout);
    if (run.verdict != verdict::Verdict::kPass &&
        options_.format != measure::ReportFormat::kTable) {
      PrintStderr("{}: {}\n", name(), run.summary_line);
    }
    return exported;
  }

  ExitCode OnFailover(const coordinator::FailoverReport& failover) override {
    results::store::Run run = NewRun();
    // An agent that knows of nobody knows no hosts either.
    const bool hosts_known =
        std::ranges::count(failover.agents, "", &control::AgentInfo::host) == 0;
    if (hosts_known) static_cast<void>(PlanOnHosts(failover.agents, run));
    ConcludeAfter(failover, plan_, selection_.repetitions, launch_.context, run,
                  [&](const measure::SampleBook& book) {
                    kind_.Judge({plan_, hosts_, book, book.repetitions() - 1}, run);
                  });
    run.duration_seconds = SecondsSince(began_ns_);
    return session::TakeOver(name(), options_.output, failover, std::move(run),
                             [&](const auto& left, const results::store::RunFile& file) {
                               if (failover.whole) PrintTable(left, file);
                               return OkStatus();
                             });
  }

  int Work(std::unique_ptr<worker::WorkerLink> link) override { return RunWorker(kind_, *link); }

 private:
  Status Select(const plan::Plan& all, bool prints) {
    LOCKSTEP_ASSIGN_OR_RETURN(selection_,
                              SelectCases(launch_.argv[0], all, options_.benchmark_flags, prints));
    if (!selection_.listed) plan_ = plan::Select(all, selection_.cases);
    return OkStatus();
  }

  // Plans anew what depends on which ranks are on which host.
  Status PlanOnHosts(const std::vector<control::AgentInfo>& agents, results::store::Run& run) {
    for (const control::AgentInfo& agent : agents) {
      hosts_[static_cast<std::size_t>(agent.rank)] = agent.host;
    }
    if (!kind_.depends_on_hosts()) return OkStatus();
    LOCKSTEP_ASSIGN_OR_RETURN(const plan::Plan all, kind_.ExpandOnHosts(options_.spec, hosts_));
    LOCKSTEP_RETURN_IF_ERROR(Select(all, /*prints=*/false));
    run.plan_text = plan::PlanToJson(plan_);
    run.plan_hash = plan::HashOf(plan_);
    return OkStatus();
  }

  void Describe(const coordinator::Coordinator& coordinator, const floors::HostFloors& after,
                results::store::Run& run) {
    run.environment =
        coordinator::MachineFacts(coordinator.agents(), launch_.context, measurement_.worker_facts);
    for (const auto& [key, value] : run.environment) {
      if (key == "software/backend_remark") PrintStderr("{}: note: {}\n", name(), value);
      if (key == "software/device") on_host_ = value == "host";
    }
    run.floors = floors_->Figures(before_, after);
  }

  void PrintTable(const results::store::Run& run, const results::store::RunFile& file) const {
    if (options_.format != measure::ReportFormat::kTable) return;
    fmt::print("{}",
               results::report::FormatTable(run, options_.wide ? results::report::Columns::kAll
                                                               : results::report::Columns::kFew));
    if (file.saved()) fmt::print("\nresult file: {}\n", OneLine(file.path()));
  }

  // All samples, as they came, with nothing judged.
  results::store::Run SoFar(const coordinator::Coordinator& coordinator, results::store::Run run,
                            const measure::Measurement& measurement) const {
    measure::SampleBook book = *book_;
    book.PutOnOneClock(coordinator.clocks());
    run.environment =
        coordinator::MachineFacts(coordinator.agents(), launch_.context, measurement.worker_facts);
    run.floors = floors::FloorFigures(before_);
    run.cases = measure::CaseRecords(plan_, book, {before_}, measurement);
    run.judgement = measure::LaunchJudgement(run.cases, measurement, plan_.world_size);
    if (run.judgement.verdict == verdict::Verdict::kPass)
      run.judgement.verdict = verdict::Verdict::kUnknown;
    run.verdict = run.judgement.verdict;
    run.complete = false;
    run.duration_seconds = SecondsSince(began_ns_);
    run.summary_line = measure::SummaryLine(run, plan_);
    return run;
  }

  measure::Kind& kind_;
  session::Launch launch_;
  BenchOptions options_;
  BenchmarkSelection selection_;
  const comm::Backend* backend_ = nullptr;
  plan::Plan plan_;
  std::vector<std::string> hosts_;         // one a rank, once the agents have met
  std::int64_t began_ns_ = MonotonicNs();  // the program, and then its measuring
  std::optional<floors::RunFloors> floors_;
  floors::HostFloors before_;  // the rounds
  std::optional<measure::SampleBook> book_;
  measure::Measurement measurement_;
  bool on_host_ = true;  // the buffers are; as the workers say
};

}  // namespace

int BenchMain(measure::Kind& kind, int argc, char** argv) {
  BenchSuite suite(kind);
  return session::Main(suite, argc, argv);
}

}  // namespace lockstep::bench::harness
