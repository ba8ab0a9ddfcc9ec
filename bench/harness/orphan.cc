#include "bench/harness/orphan.h"

#include <fmt/format.h>

#include <cstdio>

#include "bench/harness/run_record.h"
#include "bench/harness/sample_book.h"
#include "bench/harness/summarize.h"
#include "core/verdict/judge.h"
#include "results/store/store.h"

namespace lockstep {
namespace {

std::string PartialPath(const Run& run, const std::string& output, int rank) {
  std::string path = output.empty() ? DefaultRunPath(run, "results/runs") : output;
  if (path.ends_with(".h5")) path.resize(path.size() - 3);
  return fmt::format("{}-rank{}-partial.h5", path, rank);
}

// Evidence of a launch of which one rank is known.
std::vector<RankEvidence> AllLostBut(const RankEvidence& own, int ranks) {
  std::vector<RankEvidence> evidence(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    evidence[static_cast<std::size_t>(rank)].rank = rank;
    evidence[static_cast<std::size_t>(rank)].state = ProcessState::kLost;
  }
  evidence[static_cast<std::size_t>(own.rank)] = own;
  return evidence;
}

// This rank's ticks as nanoseconds since its first sample.
TickScale ScaleFrom(const std::string& outbox_bytes) {
  TickScale scale = CalibrateTicks();
  RecordHandlers handlers;
  bool first = true;
  handlers.sample = [&](const SampleRecord& record) {
    if (first) scale.origin_ticks = record.entry;
    first = false;
  };
  handlers.batch = [](const BatchRecord&) {};
  handlers.wrong = [](const WrongRecord&) {};
  handlers.parts = [](const PartsRecord&) {};
  ForEachRecord(outbox_bytes, handlers);
  return scale;
}

CaseRecord PartialCase(const Plan& plan, std::size_t index, const SampleBook& book) {
  const CaseBook& rows = book.Book(0, index);
  CaseRecord record = RecordOf(plan, index, 0);
  record.samples = SamplesOf(rows, book.scale());
  record.parts = PartsOf(rows, plan.cases[index]);
  record.wrong = rows.wrong;
  const std::string stopped_by = record.samples.iterations() > 0 ? "interrupted" : "not_run";
  record.summary =
      Summarize(rows, plan.cases[index], plan, HostFloors{}, book.scale().ns_per_tick, stopped_by);
  SummarizeParts(plan.cases[index], plan, record);
  return record;
}

}  // namespace

OrphanSaver::OrphanSaver(const BenchInfo& info, const BenchOptions& options,
                         const LaunchContext& context, Plan plan)
    : name_(info.name), output_(options.output), rank_(context.rank), plan_(std::move(plan)) {}

void OrphanSaver::operator()(const std::string& outbox_bytes, const RankEvidence& evidence) const {
  SampleBook book(plan_.world_size, plan_.cases.size(), ScaleFrom(outbox_bytes));
  book.Add(rank_, outbox_bytes);
  Run run = NewRun(name_, plan_);
  run.complete = false;
  run.verdict = Verdict::kUnknown;
  run.exit_code = static_cast<int>(ExitCode::kEnvironment);
  run.ns_per_tick = book.scale().ns_per_tick;
  run.origin_ticks = book.scale().origin_ticks;
  for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
    run.cases.push_back(PartialCase(plan_, i, book));
  }
  run.history.push_back({rank_, 0, evidence.journal.missed, evidence.journal.events});
  run.judgement = Judge(AllLostBut(evidence, plan_.world_size), plan_.deadline_seconds);
  run.summary_line =
      fmt::format("rank {}'s agent saved its own part: the coordinator is lost", rank_);
  const std::string path = PartialPath(run, output_, rank_);
  const Status stored = WriteRun(run, path);
  fmt::print(stderr, "{}: the coordinator (rank 0's agent) is lost; {}\n", name_,
             stored.ok() ? "rank " + std::to_string(rank_) + "'s samples are in " + path
                         : stored.message());
}

}  // namespace lockstep
