// The coordinator's way through a benchmark: it meets the other agents, measures the host's floors
// before and after the rounds, has the kind judge what it knows, stores the run and reports it.
#include "bench/harness/lead.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "bench/measure/run_record.h"
#include "core/base/units.h"
#include "core/comm/backends.h"
#include "core/coordinator/machine_facts.h"
#include "core/verdict/lost_hosts.h"
#include "results/report/report.h"
#include "results/store/clock_records.h"
#include "results/store/partial_path.h"
#include "results/store/store.h"

namespace lockstep::bench::harness {
namespace {

constexpr double kFloorsSeconds = 0.3;
// Part of the available memory that buffers may take; the rest is for libraries and the file.
constexpr double kMemoryShare = 0.85;
// A cache-line round trip that changed by more than this says that the processors moved.
constexpr double kPlacementChange = 1.5;
// Of each GPU: half a day.
constexpr std::size_t kMostGpuSamples = 43'200;
constexpr double kReadSeconds = 2;

// How fast each rank's counter runs, in nanoseconds a tick.
std::vector<double> RatesOf(const coordinator::Coordinator& coordinator, const TickScale& ours) {
  std::vector<double> rates;
  for (int rank = 0; rank < coordinator.size(); ++rank) {
    const coordinator::HostClocks& clocks = coordinator.clocks();
    rates.push_back(clocks.shared(rank) ? ours.ns_per_tick : clocks.NsPerTick(rank));
  }
  return rates;
}

std::string CommandLineOf(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& argument : arguments) line += (line.empty() ? "" : " ") + argument;
  return line;
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

}  // namespace

Leader::Leader(const measure::Kind& kind, const BenchOptions& options,
               const BenchmarkSelection& selection, plan::Plan plan,
               const control::LaunchContext& context,
               const coordinator::CoordinatorOptions& coordinator_options,
               std::vector<std::string> arguments)
    : kind_(kind),
      options_(options),
      selection_(selection),
      plan_(std::move(plan)),
      context_(context),
      coordinator_options_(coordinator_options) {
  run_ = measure::NewRun(kind.name(), plan_);
  run_.command_line = CommandLineOf(arguments);
}

std::string Leader::OutputPath() {
  return options_.output.empty() ? results::store::DefaultRunPath(run_, "results/runs")
                                 : options_.output;
}

// Keeps the cases that the flags selected by name.
Status Leader::PlanOnHosts() {
  if (!kind_.depends_on_hosts()) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const plan::Plan all, kind_.ExpandOnHosts(options_.spec, hosts_));
  std::vector<std::size_t> selected;
  for (std::size_t i = 0; i < all.cases.size(); ++i) {
    const auto is_selected = [&](const plan::PlannedCase& one) {
      return one.name == all.cases[i].name;
    };
    if (std::any_of(plan_.cases.begin(), plan_.cases.end(), is_selected)) selected.push_back(i);
  }
  plan_ = plan::Select(all, selected);
  run_.plan_text = plan::PlanToJson(plan_);
  run_.plan_hash = plan::HashOf(plan_);
  return OkStatus();
}

// Refuses buffers that would bring the kernel's out-of-memory killer.
Status Leader::CheckMemory(const coordinator::Coordinator& coordinator) const {
  std::map<std::string, std::int64_t> ranks_on;
  for (const control::AgentInfo& agent : coordinator.agents()) ++ranks_on[agent.host];
  const double need = static_cast<double>(plan_.send_buffer_bytes) +
                      static_cast<double>(plan_.recv_buffer_bytes) +
                      static_cast<double>(plan_.memory_bytes);
  for (const control::AgentInfo& agent : coordinator.agents()) {
    const double share = static_cast<double>(agent.memory_available_bytes) * kMemoryShare /
                         static_cast<double>(ranks_on[agent.host]);
    if (need <= share) continue;
    return EnvironmentError(fmt::format(
        "rank {} on {} needs {} for its buffers and has {}; choose a smaller -e or --model, fewer "
        "options to compare, or fewer ranks a host",
        agent.rank, agent.host, FormatBytes(static_cast<std::int64_t>(std::min(need, 9e18))),
        FormatBytes(static_cast<std::int64_t>(share))));
  }
  return OkStatus();
}

// The floors of the coordinator's host, from the processors of the ranks on it.
floors::HostFloors Leader::MeasureHostFloors(const coordinator::Coordinator& coordinator) const {
  std::vector<std::vector<int>> cpus;
  for (const control::AgentInfo& agent : coordinator.agents()) {
    if (agent.boot_id == coordinator.agents().front().boot_id) cpus.push_back(agent.cpus);
  }
  return floors::MeasureFloors(cpus, kFloorsSeconds);
}

void Leader::Describe(const coordinator::Coordinator& coordinator, const floors::HostFloors& before,
                      const floors::HostFloors& after, const std::string& worker_facts) {
  run_.environment = coordinator::MachineFacts(coordinator.agents(), context_, worker_facts);
  for (const auto& [key, value] : run_.environment) {
    if (key == "software/backend_remark") fmt::print(stderr, "{}: note: {}\n", kind_.name(), value);
    if (key == "software/device") on_host_ = value == "host";
  }
  run_.floors = floors::FloorFigures(before);
  const double trip_before = before.line_round_trip_ns;
  const double trip_after = after.line_round_trip_ns;
  run_.floors.emplace_back("line_round_trip_after_ns", trip_after);
  const double ratio = std::max(trip_before / trip_after, trip_after / trip_before);
  // An unknown round trip compares as false: nothing is claimed of it.
  run_.floors.emplace_back("placement_changed", ratio > kPlacementChange ? 1 : 0);
}

void Leader::Conclude(const measure::SampleBook& book, const floors::HostFloors& floors,
                      measure::Measurement measurement) {
  for (measure::Interruption& ended : measurement.interruptions) {
    kind_.Explain(measurement.history, hosts_, ended);
  }
  run_.cases = measure::CaseRecords(plan_, book, floors, measurement);
  for (results::store::CaseRecord& record : run_.cases) record.device = on_host_ ? "host" : "cuda";
  run_.judgement = measure::LaunchJudgement(run_.cases, measurement, plan_.world_size);
  const bool measured = run_.judgement.verdict == verdict::Verdict::kPass;
  const int last = static_cast<int>(measurement.stopped_by.size()) - 1;
  kind_.Judge({plan_, hosts_, book, last}, run_);
  run_.verdict = run_.judgement.verdict;
  run_.history = std::move(measurement.history);
  Renumber(measurement.stopped_by, run_.history);
  run_.complete = !measurement.terminated;
  run_.exit_code = static_cast<int>(verdict::ExitCodeOf(run_.verdict));
  const bool well = measured && run_.judgement.findings.empty();
  run_.summary_line = well ? kind_.Describe(run_) : "";
  if (run_.summary_line.empty()) run_.summary_line = measure::SummaryLine(run_);
}

// What is left to do after this can be lost: there may be a second until all of us are killed.
void Leader::SaveSamples(const coordinator::Coordinator& coordinator, measure::SampleBook book,
                         const floors::HostFloors& floors, const measure::Measurement& so_far) {
  book.PutOnOneClock(coordinator.clocks());
  results::store::Run run = run_;
  run.environment = coordinator::MachineFacts(coordinator.agents(), context_, so_far.worker_facts);
  run.floors = floors::FloorFigures(floors);
  run.cases = measure::CaseRecords(plan_, book, floors, so_far);
  run.judgement = measure::LaunchJudgement(run.cases, so_far, plan_.world_size);
  if (run.judgement.verdict == verdict::Verdict::kPass)
    run.judgement.verdict = verdict::Verdict::kUnknown;
  run.verdict = run.judgement.verdict;
  run.complete = false;
  run.exit_code = static_cast<int>(verdict::ExitCodeOf(run.verdict));
  run.summary_line = measure::SummaryLine(run);
  if (verdict::WeAreCutOff(coordinator.places()))
    file_.MoveTo(results::store::PartialPath(OutputPath(), context_.rank));
  const std::string before = file_.path();
  file_.Save(run);
  if (file_.path() == before) return;
  fmt::print(stderr, "{}: note: results now go to {}\n", kind_.name(), file_.path());
}

Result<ExitCode> Leader::StoreAndReport() {
  const Status stored = file_.Store(run_);
  switch (options_.format) {
    case measure::ReportFormat::kTable:
      fmt::print("{}", results::report::FormatTable(run_));
      break;
    case measure::ReportFormat::kNcclTests:
      fmt::print("{}", results::report::FormatNcclTests(run_));
      break;
    case measure::ReportFormat::kJsonLines:
      fmt::print("{}", results::report::FormatJsonLines(run_));
      break;
    case measure::ReportFormat::kGoogleBenchmark:
      break;
  }
  const bool display = options_.format == measure::ReportFormat::kGoogleBenchmark;
  if (display || selection_.writes_file) {
    ReportWithGoogleBenchmark(run_, options_.benchmark_flags, display);
  }
  if (file_.saved() && options_.format == measure::ReportFormat::kTable) {
    fmt::print("\nresult file: {}\n", file_.path());
  }
  std::fflush(stdout);
  if (run_.verdict != verdict::Verdict::kPass && options_.format != measure::ReportFormat::kTable) {
    fmt::print(stderr, "{}: {}\n", kind_.name(), run_.summary_line);
  }
  // The figures are on the screen; that they are not where they should be is an error all the same.
  if (!stored.ok()) return stored;
  return verdict::ExitCodeOf(run_.verdict);
}

// A backend that moves data on a thread of its own needs a second processor for each rank.
void Leader::WarnOfBinding(const coordinator::Coordinator& coordinator) const {
  if (plan_.backend != "gloo") return;
  for (const control::AgentInfo& agent : coordinator.agents()) {
    if (agent.cpus.size() != 1) continue;
    fmt::print(stderr,
               "{}: note: rank {} is bound to one processor, which gloo's transport thread must "
               "share with the caller: expect milliseconds; mpirun --bind-to none avoids it\n",
               kind_.name(), agent.rank);
    return;
  }
}

Result<ExitCode> Leader::Measure(coordinator::Coordinator& coordinator) {
  const std::int64_t began_ns = MonotonicNs();
  for (const control::AgentInfo& agent : coordinator.agents()) hosts_.push_back(agent.host);
  LOCKSTEP_RETURN_IF_ERROR(PlanOnHosts());
  LOCKSTEP_RETURN_IF_ERROR(CheckMemory(coordinator));
  WarnOfBinding(coordinator);
  const floors::HostFloors floors = MeasureHostFloors(coordinator);
  measure::SampleBook book(plan_.world_size, plan_.cases.size(), CalibrateTicks());
  run_.origin_ticks = book.scale().origin_ticks;
  run_.ns_per_tick = book.scale().ns_per_tick;
  book.SetRates(RatesOf(coordinator, book.scale()));
  Progress progress(options_.progress);
  Scheduler scheduler(coordinator, coordinator_options_, plan_, book, progress);
  // Now, because a launcher that ends us passes nothing on any more.
  scheduler.SetBegun([&] {
    progress.Notice(fmt::format("{}: note: results go to {}", kind_.name(), file_.path()));
  });
  scheduler.SetSave(
      [&](const measure::Measurement& so_far) { SaveSamples(coordinator, book, floors, so_far); });
  scheduler.SetSecondPass([&](int repetition) {
    return kind_.Retests({plan_, hosts_, book, repetition});
  });
  LOCKSTEP_ASSIGN_OR_RETURN(measure::Measurement measurement,
                            scheduler.Run(selection_.repetitions));
  coordinator.MeasureClocks(/*thoroughly=*/true);
  run_.gpu_samples = journal::PlaceSamples(
      coordinator.ReadGpus(kMostGpuSamples, Deadline::AfterSeconds(kReadSeconds)));
  run_.logs = coordinator.TakeLogs();
  coordinator.Rest();
  if (verdict::WeAreCutOff(coordinator.places()))
    file_.MoveTo(results::store::PartialPath(OutputPath(), context_.rank));
  book.PutOnOneClock(coordinator.clocks());
  results::store::AddClocks(coordinator.clocks(), run_);
  const floors::HostFloors after = measurement.terminated ? floors : MeasureHostFloors(coordinator);
  Describe(coordinator, floors, after, measurement.worker_facts);
  // What moves no data, or moves them elsewhere, is not bound by what it costs here.
  const bool bound =
      on_host_ && (*comm::FindBackend("--backend", plan_.backend))->capabilities().moves_data;
  Conclude(book, bound ? floors : floors::HostFloors{}, std::move(measurement));
  run_.duration_seconds = static_cast<double>(MonotonicNs() - began_ns) * 1e-9;
  return StoreAndReport();
}

Result<ExitCode> Leader::Run() {
  file_ = results::store::RunFile(OutputPath());
  LOCKSTEP_RETURN_IF_ERROR(file_.Check());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<coordinator::Coordinator> coordinator,
                            coordinator::Coordinator::Open(context_, coordinator_options_));
  coordinator->Replicate(results::store::IdentityOf(run_));
  Result<ExitCode> code = Measure(*coordinator);
  coordinator->Dismiss();
  return code;
}

}  // namespace lockstep::bench::harness
