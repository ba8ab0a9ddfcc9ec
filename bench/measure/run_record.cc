// From the samples and interruptions of a measurement to the records, verdicts and sentences of a
// run. The figures are summarize.h's, the findings of hangs are core/verdict's.
#include "bench/measure/run_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/measure/arrivals.h"
#include "bench/measure/precision.h"
#include "bench/measure/summarize.h"
#include "bench/measure/visit_figure.h"
#include "core/base/run_id.h"
#include "core/base/utc.h"
#include "core/verdict/wording.h"

namespace lockstep::bench::measure {
namespace {

std::string WrongMessage(const results::store::WrongResult& wrong, const plan::PlannedCase& planned,
                         std::int64_t wrong_elements) {
  const collective::Operation& operation =
      planned.operations[static_cast<std::size_t>(wrong.operation)];
  const std::string where =
      wrong.iteration < 0 ? "a warm-up iteration" : fmt::format("iteration {}", wrong.iteration);
  return fmt::format(
      "rank {} received wrong data in {} ({}): element {} in {} is {}, expected {}; {} wrong "
      "elements in all",
      wrong.rank, planned.name, collective::Describe(operation), wrong.element, where, wrong.got,
      wrong.expected, wrong_elements);
}

verdict::Headline WrongHeadline(const std::vector<int>& culprits, const CaseBook& book,
                                const plan::PlannedCase& planned) {
  const results::store::WrongResult& first = book.wrong.front();
  return verdict::Headline(fmt::format("{} received wrong data in {}",
                                       verdict::FormatRanks(culprits), planned.name))
      .Add(fmt::format(": element {} is {}, expected {}", first.element, first.got, first.expected))
      .Add(fmt::format("; {} wrong elements in all", book.wrong_elements));
}

verdict::Finding CorruptionOf(const CaseBook& book, const plan::PlannedCase& planned) {
  verdict::Finding finding{.cause = verdict::Cause::kDataCorruption, .proved = true};
  for (const results::store::WrongResult& wrong : book.wrong) {
    if (std::ranges::find(finding.culprits, wrong.rank) == finding.culprits.end()) {
      finding.culprits.push_back(wrong.rank);
    }
  }
  finding.message =
      book.wrong.empty()  // a worker tells where of a bounded number, all repetitions together
          ? fmt::format("{} wrong elements in {}; its ranks have told of others before where",
                        book.wrong_elements, planned.name)
          : WrongMessage(book.wrong.front(), planned, book.wrong_elements);
  finding.headline = book.wrong.empty() ? verdict::Headline::Of(finding.message)
                                        : WrongHeadline(finding.culprits, book, planned);
  finding.remedy =
      "Run again with -c full; if it stays on one rank, suspect its memory, link or device, if it "
      "moves with the software, the collective library or an interposed one (LD_PRELOAD)";
  return finding;
}

verdict::Finding SlownessOf(const Stall& stall) {
  verdict::Finding finding{
      .cause = verdict::Cause::kSlowRank, .culprits = {stall.rank}, .proved = true};
  finding.message =
      fmt::format("rank {} slept in {} while the others waited, and then went on ({})", stall.rank,
                  stall.where, stall.system.substr(0, stall.system.find("; stack")));
  finding.headline = stall.headline;
  finding.remedy = fmt::format(
      "See max and p99 of this case; look at rank {}'s host and at what it sleeps in", stall.rank);
  return finding;
}

verdict::Judgement AllFinished(int ranks) {
  verdict::Judgement judgement;
  judgement.verdict = verdict::Verdict::kPass;
  judgement.outcomes.resize(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    judgement.outcomes[static_cast<std::size_t>(rank)].rank = rank;
  }
  return judgement;
}

// What the data say of a case; interruptions are merged into it.
verdict::Judgement JudgeData(const CaseBook& book, const plan::PlannedCase& planned,
                             const std::string& stopped, int ranks) {
  verdict::Judgement judgement = AllFinished(ranks);
  if (stopped == "not_run" || stopped == "not_kept" || stopped == "interrupted")
    judgement.verdict = verdict::Verdict::kUnknown;
  if (book.wrong.empty() && book.wrong_elements == 0) return judgement;
  judgement.verdict = verdict::Verdict::kFail;
  judgement.findings.push_back(CorruptionOf(book, planned));
  for (const int rank : judgement.findings.front().culprits) {
    judgement.outcomes[static_cast<std::size_t>(rank)].outcome = verdict::Outcome::kCorrupt;
  }
  return judgement;
}

int Severity(verdict::Verdict verdict) {
  return verdict == verdict::Verdict::kPass ? 0 : verdict == verdict::Verdict::kUnknown ? 1 : 2;
}

// The worse verdict, all findings, and of each rank the first outcome that is not `finished`.
void Merge(const verdict::Judgement& from, verdict::Judgement& into) {
  if (Severity(from.verdict) > Severity(into.verdict)) into.verdict = from.verdict;
  for (const verdict::RankOutcome& outcome : from.outcomes) {
    verdict::RankOutcome& known = into.outcomes[static_cast<std::size_t>(outcome.rank)];
    if (known.outcome == verdict::Outcome::kFinished) known = outcome;
  }
  into.findings.insert(into.findings.end(), from.findings.begin(), from.findings.end());
}

// "; 3 of 6 cut short of -n 1000 by --time-budget"; "" where none is.
std::string CutClause(const results::store::Run& run, std::int64_t iterations) {
  const auto cut = std::ranges::count_if(run.cases, [](const results::store::CaseRecord& record) {
    return record.summary.stopped_by == "cut_short";
  });
  if (cut == 0) return "";
  return fmt::format("; {} of {} cut short of -n {} by --time-budget", cut, run.cases.size(),
                     iterations);
}

}  // namespace

results::store::Run NewRun(const std::string& name, const plan::Plan& plan) {
  results::store::Run run;
  run.name = name;
  run.started_at = UtcNow();
  run.id = NewRunId();
  run.plan_text = plan::PlanToJson(plan);
  run.plan_hash = plan::HashOf(plan);
  run.seed = plan.seed;
  return run;
}

results::store::CaseRecord RecordOf(const plan::Plan& plan, std::size_t index, int repetition) {
  const plan::PlannedCase& planned = plan.cases[index];
  results::store::CaseRecord record;
  record.name = planned.name;
  if (repetition > 0) record.name += fmt::format("/repetition:{}", repetition);
  record.backend = plan.backend;
  record.device = "host";
  record.ranks = plan.world_size;
  record.repetition = repetition;
  record.operations = planned.operations;
  record.in_place = planned.in_place;
  record.bytes = plan::BytesOf(planned, plan.world_size);
  record.model = planned.model;
  record.bucket = planned.bucket;
  record.bucket_cap_mb = planned.bucket_cap_mb;
  record.settings = planned.settings;
  return record;
}

std::vector<results::store::CaseRecord> CaseRecords(const plan::Plan& plan, const SampleBook& book,
                                                    const std::vector<floors::HostFloors>& floors,
                                                    const Measurement& measurement) {
  const auto summarize = [&](const CaseBook& rows, std::size_t i, const std::string& stopped_by) {
    return Summarize(rows, plan.cases[i], plan, floors, book.scale().ns_per_tick, stopped_by);
  };
  return CaseRecordsBy(summarize, plan, book, measurement);
}

std::vector<results::store::CaseRecord> CaseRecordsBy(const Summarizer& summarize,
                                                      const plan::Plan& plan,
                                                      const SampleBook& book,
                                                      const Measurement& measurement) {
  std::vector<results::store::CaseRecord> records;
  for (int repetition = 0; repetition < static_cast<int>(measurement.stopped_by.size());
       ++repetition) {
    const std::vector<std::string>& stopped =
        measurement.stopped_by[static_cast<std::size_t>(repetition)];
    for (std::size_t i = 0; i < plan.cases.size(); ++i) {
      if (stopped[i] == "not_needed") continue;
      const CaseBook& rows = book.Book(repetition, i);
      results::store::CaseRecord record = RecordOf(plan, i, repetition);
      record.samples = SamplesOf(rows, book.scale());
      record.summary = summarize(rows, i, stopped[i]);
      record.arrivals =
          ArrivalsOf(record.samples, rows.clock_error_ns, CountsByMean(plan.cases[i]));
      record.parts = PartsOf(rows, plan.cases[i]);
      SummarizeParts(plan.cases[i], plan, record);
      record.wrong = rows.wrong;
      record.judgement = JudgeData(rows, plan.cases[i], stopped[i], plan.world_size);
      // A case that the time budget never reached is no pass.
      if (record.summary.iterations == 0 && record.judgement.verdict == verdict::Verdict::kPass) {
        record.judgement.verdict = verdict::Verdict::kUnknown;
      }
      for (const Interruption& interruption : measurement.interruptions) {
        if (interruption.case_index != i || interruption.repetition != repetition) continue;
        Merge(interruption.judgement, record.judgement);
      }
      // Nobody finished, or failed in, what was not begun.
      if (stopped[i] == "not_run" && record.judgement.findings.empty()) {
        record.judgement.outcomes.clear();
      }
      for (const Stall& stall : measurement.stalls) {
        if (stall.case_index != i || stall.repetition != repetition) continue;
        record.judgement.findings.push_back(SlownessOf(stall));
        // All ranks left late together: the one that slept is the one to look at.
        record.summary.max_rank = stall.rank;
      }
      records.push_back(std::move(record));
    }
  }
  return records;
}

verdict::Judgement LaunchJudgement(const std::vector<results::store::CaseRecord>& cases,
                                   const Measurement& measurement, int ranks) {
  verdict::Judgement launch = AllFinished(ranks);
  for (const Interruption& interruption : measurement.interruptions) {
    if (!interruption.case_index) Merge(interruption.judgement, launch);
  }
  for (const results::store::CaseRecord& record : cases) Merge(record.judgement, launch);
  return launch;
}

std::string_view ElementsText(const results::store::Run& run) {
  const bool compared = std::ranges::any_of(
      run.cases, [](const auto& record) { return record.summary.checked_elements > 0; });
  return compared ? "no wrong element" : "no element checked";
}

std::string SummaryLine(const results::store::Run& run, const plan::Plan& plan) {
  if (!run.judgement.findings.empty()) {
    const verdict::Finding& finding = run.judgement.findings.front();
    const std::size_t others = run.judgement.findings.size() - 1;
    verdict::Headline headline = finding.headline;
    if (others > 0) headline.Add(fmt::format("; {} more findings", others));
    return headline.text();
  }
  const auto measured = std::ranges::count_if(run.cases, [](const auto& record) {
    return record.judgement.verdict == verdict::Verdict::kPass;
  });
  if (run.verdict == verdict::Verdict::kPass) {
    return fmt::format(
        "{} of {} cases measured, {}, no rank hung or failed{}", measured, run.cases.size(),
        ElementsText(run),
        plan.iterations ? CutClause(run, *plan.iterations) : PrecisionClause(run, plan.precision));
  }
  const bool too_short = std::ranges::any_of(run.cases, [](const auto& record) {
    return record.summary.iterations == 0 && record.summary.stopped_by == "time_budget";
  });
  // Of a case that was not done there are samples, and a row with its median.
  const auto begun = std::ranges::count_if(run.cases, [](const auto& record) {
    return record.judgement.verdict != verdict::Verdict::kPass && record.summary.iterations > 0;
  });
  return fmt::format("{} of {} cases measured{} before the {}", measured, run.cases.size(),
                     begun > 0 ? fmt::format(" and {} in part", begun) : "",
                     too_short ? "time budget was spent; give more time with --time-budget"
                               : "run was ended; run it again");
}

}  // namespace lockstep::bench::measure
