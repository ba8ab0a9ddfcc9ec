// The timed loop of one case on one rank. Everything but the iteration itself (journal, outbox,
// comparison) happens outside of what is timed.
#include "bench/measure/case_runner.h"

#include <span>
#include <utility>

namespace lockstep::bench::measure {
namespace {

// Located wrong elements of one case on one rank; the rest is counted.
constexpr int kWrongRecordsPerCase = 16;

}  // namespace

CaseRunner::CaseRunner(const Bench& bench, std::uint32_t case_index, std::unique_ptr<Step> step)
    : bench_(bench),
      case_index_(case_index),
      step_(std::move(step)),
      has_parts_(!bench.plan.cases[case_index].parts.empty()) {}

Status CaseRunner::Meet(bool first) {
  const Meeting meeting = step_->meeting();
  if (meeting == Meeting::kRun || (meeting == Meeting::kVisit && !first)) return OkStatus();
  return bench_.communicator.Enqueue(collective::kBarrierOperation, {}, bench_.stream);
}

void CaseRunner::ReportSample(std::uint32_t round, const comm::Interval& interval) {
  bytes_.clear();
  AppendTo(bytes_, SampleRecord{case_index_, round, interval.entry, interval.exit});
  if (has_parts_) AppendTo(bytes_, PartsRecord{case_index_, parts_});
  Report(bytes_);
}

void CaseRunner::Compare(bool warmup) {
  step_->Compare(comparison_);
  for (const Comparison::Located& found : comparison_.located) {
    if (wrong_records_++ >= kWrongRecordsPerCase) break;
    bytes_.clear();
    AppendTo(bytes_, WrongRecord{case_index_, warmup, found.operation, found.element,
                                 found.expected, found.got});
    Report(bytes_);
  }
  comparison_.located.clear();
}

void CaseRunner::Report(const std::string& record) {
  const bool fits = bench_.link.outbox().Append(std::as_bytes(std::span(record)));
  LOCKSTEP_CHECK(fits, "the scheduler orders no more than the outbox holds");
}

Status CaseRunner::RunBatch(const Batch& batch, std::uint32_t round) {
  const Ticks begin = NowTicks();
  bench_.link.journal().BeginCase(case_index_);
  bench_.link.journal().EnterPhase(journal::Phase::kCheck);
  comparison_ = {};
  LOCKSTEP_RETURN_IF_ERROR(step_->Prepare());
  bench_.link.journal().EnterPhase(journal::Phase::kMeasure);
  const std::int64_t warmup = batch.warmup;
  const std::int64_t iterations = batch.iterations;
  for (std::int64_t i = -warmup; i < iterations; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(step_->Rewrite(/*first=*/i == -warmup, /*warmup=*/i < 0));
    LOCKSTEP_RETURN_IF_ERROR(Meet(/*first=*/i == -warmup));
    LOCKSTEP_ASSIGN_OR_RETURN(const comm::Interval interval, step_->Run());
    if (has_parts_) {
      parts_.clear();
      LOCKSTEP_RETURN_IF_ERROR(step_->TakeParts(parts_));
    }
    if (i >= 0) ReportSample(round, interval);
    Compare(i < 0);
    const bool timed_next = i + 1 >= 0 && i + 1 < iterations;
    if (timed_next) LOCKSTEP_RETURN_IF_ERROR(step_->Settle());
  }
  bytes_.clear();
  AppendTo(bytes_, BatchRecord{case_index_, round, NowTicks() - begin, comparison_.checked,
                               comparison_.wrong, batch.warmup + batch.iterations});
  Report(bytes_);
  return OkStatus();
}

}  // namespace lockstep::bench::measure
