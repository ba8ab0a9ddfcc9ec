// A measurement as the scheduler sees it, without ranks: the list of the fake coordinator is all
// that happens. The text is what tests compare.
#include "bench/harness/testing/schedule.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "bench/harness/scheduler.h"
#include "bench/measure/measurement_codec.h"
#include "bench/measure/run_record.h"
#include "bench/measure/sample_book.h"
#include "bench/plan/plan.h"
#include "bench/plan/testing/doubling.h"
#include "gtest/gtest.h"
#include "session/progress_line.h"

namespace lockstep::bench::harness {
namespace {

plan::Plan PlanOf(const BenchScript& script) {
  plan::BenchSpec spec;
  spec.backend = "gloo";
  spec.iterations = script.iterations;
  spec.warmup = 0;
  spec.time_budget_seconds = script.time_budget_seconds;
  spec.deadline_seconds = 5;
  return plan::Doubling(spec, 2, script.cases);
}

std::string TextOf(const control::Message& message) {
  if (message.type == measure::kPlanMessage) return "plan";
  if (message.type == measure::kFinishMessage) return "finish";
  const measure::Round round = measure::DecodeRound(message.payload).value();
  std::string text = fmt::format("round {}:", round.number);
  std::map<std::uint32_t, std::string> cases;
  for (const measure::Batch& batch : round.batches) {
    cases[batch.case_index] =
        fmt::format(" {}x{}+{}", batch.case_index, batch.warmup, batch.iterations);
  }
  for (const auto& [index, batch] : cases) text += batch;
  return text;
}

// With what is replicated in words, or without it.
std::vector<std::string> Readable(const std::vector<std::string>& commands, bool replicated) {
  constexpr std::string_view kReplicate = "replicate ";
  std::vector<std::string> readable;
  for (const std::string& command : commands) {
    if (!command.starts_with(kReplicate)) {
      readable.push_back(command);
    } else if (replicated) {
      const auto known = measure::DecodeMeasurement(command.substr(kReplicate.size()));
      std::string text = "replicate";
      for (const measure::RepetitionEnd& end : known.value().ends) {
        text +=
            fmt::format(" {} rounds with {} wrong;", end.rounds, end.data.front().wrong_elements);
      }
      readable.push_back(text + fmt::format(" {} losses", known->interruptions.size()));
    }
  }
  return readable;
}

// Several in a row that are the same make one line.
std::string TextOf(const std::vector<std::string>& commands, bool all) {
  std::string text;
  for (std::size_t i = 0, times = 0; i < commands.size(); ++i) {
    ++times;
    if (i + 1 < commands.size() && commands[i + 1] == commands[i]) continue;
    text += times > 1 ? fmt::format("{} ({} times)\n", commands[i], times) : commands[i] + "\n";
    times = 0;
  }
  const std::string usual = "start\nsend * plan\nbegun\nsave not_run 0, not_run 0\nclocks\n";
  return !all && text.starts_with(usual) ? text.substr(usual.size()) : text;
}

std::string TextOf(const verdict::Judgement& judgement) {
  std::vector<std::string_view> outcomes;
  for (const verdict::RankOutcome& rank : judgement.outcomes)
    outcomes.push_back(verdict::NameOf(rank.outcome));
  std::string text =
      fmt::format("{}: {}", verdict::NameOf(judgement.verdict), fmt::join(outcomes, ","));
  for (const verdict::Finding& finding : judgement.findings) {
    text += fmt::format("; {} of {}, {}", finding.cause.name(), fmt::join(finding.culprits, ","),
                        finding.proved ? "proved" : "suspected");
  }
  return text;
}

std::string TextOf(const plan::Plan& plan, const measure::Measurement& measurement,
                   const measure::SampleBook& book) {
  const std::vector<results::store::CaseRecord> cases =
      measure::CaseRecords(plan, book, {}, measurement);
  std::string text = TextOf(measure::LaunchJudgement(cases, measurement, 2)) + "\n";
  for (std::size_t i = 0; i < measurement.stopped_by.size(); ++i) {
    text += fmt::format("repetition {}:", i);
    for (std::size_t k = 0; k < measurement.stopped_by[i].size(); ++k) {
      const measure::CaseBook& of_case = book.Book(static_cast<int>(i), k);
      text += fmt::format(" {} {}", measurement.stopped_by[i][k], of_case.complete_rows());
      if (of_case.wrong_elements > 0) text += fmt::format(" with {} wrong", of_case.wrong_elements);
    }
    text += "\n";
  }
  for (const measure::Interruption& cut : measurement.interruptions) {
    text += fmt::format("lifetime {} of repetition {} lost {}: {}\n", cut.lifetime, cut.repetition,
                        cut.case_index ? fmt::format("case {}", *cut.case_index) : "no case",
                        TextOf(cut.judgement));
  }
  for (const measure::Stall& stall : measurement.stalls) {
    text += fmt::format("rank {} stalled in case {}\n", stall.rank, stall.case_index);
  }
  if (measurement.terminated) text += "told to end\n";
  return text;
}

}  // namespace

std::string Schedule(const BenchScript& script, coordinator::Script steps) {
  const auto name = [](const control::Message& message) { return TextOf(message); };
  coordinator::FakeCoordinator coordinator(2, std::move(steps), name, script.hosts);
  coordinator::CoordinatorOptions options;
  options.workers_own_mpi = script.own_mpi;
  const plan::Plan plan = PlanOf(script);
  measure::SampleBook book(2, plan.cases.size(), TickScale{});
  session::ProgressLine progress(false);
  Scheduler scheduler(coordinator, options, plan, book, progress);
  scheduler.SetBegun([&] { coordinator.Note("begun"); });
  scheduler.SetSave([&](const measure::Measurement& so_far) {
    const std::vector<std::string>& stopped = so_far.stopped_by.back();
    std::string saved;
    for (std::size_t i = 0; i < stopped.size(); ++i) {
      saved += fmt::format("{} {} {}", i > 0 ? "," : "", stopped[i],
                           book.Current(static_cast<int>(i)).complete_rows());
    }
    coordinator.Note("save" + saved);
  });
  if (script.second_pass) {
    scheduler.SetSecondPass([&](int repetition) {
      coordinator.Note(fmt::format("second pass of repetition {}", repetition));
      return std::vector<std::size_t>{};
    });
  }
  testing::internal::CaptureStderr();
  const Result<measure::Measurement> measurement = scheduler.Run(script.repetitions);
  std::string text = testing::internal::GetCapturedStderr();
  text += TextOf(Readable(coordinator.commands(), script.replicated), script.all_commands);
  text +=
      measurement.ok() ? TextOf(plan, *measurement, book) : measurement.status().message() + "\n";
  const std::size_t usual = 2 * static_cast<std::size_t>(coordinator.lifetime() + 1);
  if (measurement.ok() && (script.all_commands || measurement->history.size() != usual)) {
    text += fmt::format("{} journals, facts {}\n", measurement->history.size(),
                        measurement->worker_facts);
  }
  if (coordinator.left() > 0) text += fmt::format("{} steps were not taken\n", coordinator.left());
  return text;
}

coordinator::ScriptStep Ready(int rank) {
  return coordinator::Said(rank, measure::kReadyMessage, fmt::format("{{of {}}}", rank));
}

coordinator::ScriptStep RoundDone(int rank) {
  return coordinator::Said(rank, measure::kRoundDoneMessage);
}

coordinator::ScriptStep Failed(int rank, const Status& status) {
  return coordinator::Said(rank, measure::kErrorMessage, measure::EncodeError(status));
}

coordinator::ScriptStep Sampled(int rank, std::uint32_t case_index, int count, std::int64_t wrong) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const auto entry = static_cast<Ticks>(coordinator::FakeCoordinator::kBeginNs + i * 20'000);
    AppendTo(bytes, measure::SampleRecord{case_index, 0, entry, entry + 10'000});
  }
  AppendTo(bytes, measure::BatchRecord{case_index, 0, 1'000'000, count, wrong,
                                       static_cast<std::uint32_t>(count)});
  return coordinator::Wrote(rank, bytes);
}

coordinator::Script BothReady() { return {coordinator::When("send * plan"), Ready(0), Ready(1)}; }

coordinator::Script Did(const std::vector<std::uint32_t>& cases, int count) {
  coordinator::Script steps;
  for (const int rank : {0, 1}) {
    for (const std::uint32_t i : cases) coordinator::Append(steps, Sampled(rank, i, count));
    coordinator::Append(steps, RoundDone(rank));
  }
  return steps;
}

coordinator::Script BothDid(const std::vector<std::uint32_t>& cases, int count) {
  return coordinator::Steps(coordinator::When("send * round"), Did(cases, count));
}

coordinator::Script BothLeft() {
  return {coordinator::When("send * finish"), coordinator::Exited(0, 0), coordinator::Exited(1, 0)};
}

verdict::History Connects(int rank) { return verdict::History(rank).In(journal::Phase::kConnect); }

verdict::History Measures(std::uint32_t case_index, int rank) {
  return verdict::History(rank)
      .Case(case_index)
      .In(journal::Phase::kMeasure)
      .Enters(verdict::AllReduce());
}

}  // namespace lockstep::bench::harness
