// What the first line says of literal runs' intervals.
#include "bench/measure/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::bench::measure {
namespace {

// 10 iterations of 100 ms, one after the other, whose rounds give this half width.
results::store::CaseRecord MeasuredTo(double half_width) {
  results::store::CaseRecord record;
  record.summary.iterations = record.summary.rounds = 10;
  record.summary.median_ns = 1e8;
  record.summary.stopped_by = half_width <= 0.05 ? "precision" : "time_budget";
  record.summary.rounds_low_ns = 1e8 * (1 - half_width / 2);
  record.summary.rounds_high_ns = 1e8 * (1 + half_width);
  record.summary.interval_low_ns = 1e8 * (1 - half_width);  // with drift
  record.summary.interval_high_ns = 1e8 * (1 + 2 * half_width);
  record.samples.ranks = 1;
  for (int i = 0; i < 10; ++i) {
    record.samples.round.push_back(i);
    record.samples.entry_ns.push_back(i * 100'000'000L);
    record.samples.exit_ns.push_back((i + 1) * 100'000'000L);
  }
  return record;
}

std::string ClauseOf(std::vector<results::store::CaseRecord> cases) {
  results::store::Run run;
  run.cases = std::move(cases);
  return PrecisionClause(run, 0.05);
}

TEST(Precision, OfAllCases) {
  EXPECT_EQ(ClauseOf({MeasuredTo(0.05), MeasuredTo(0.01)}), "; all to ±5 %");
}

// Twice as wide needs four times as many rounds: (1 + 4) / 2 of the second that was measured.
TEST(Precision, WhatTheOthersTake) {
  EXPECT_EQ(ClauseOf({MeasuredTo(0.04), MeasuredTo(0.1)}),
            "; 1 of 2 to ±5 %; all 2 take about 3 s: --time-budget=3s");
  EXPECT_EQ(ClauseOf({MeasuredTo(0.4)}),
            "; 0 of 1 to ±5 %; it takes about 70 s: --time-budget=70s");
}

TEST(Precision, OfHoursNothingIsPromised) {
  EXPECT_EQ(ClauseOf({MeasuredTo(3.1)}), "; 0 of 1 to ±5 %");
}

// The table says `precise` of the same cases: both ask why a case stopped, not how wide it is.
TEST(Precision, CountsWhatTheTableCallsPrecise) {
  results::store::CaseRecord narrow = MeasuredTo(0.04);
  narrow.summary.stopped_by = "time_budget";
  EXPECT_THAT(ClauseOf({narrow, MeasuredTo(0.04)}), testing::StartsWith("; 1 of 2 to ±5 %"));
}

// 2 s in two repetitions: each has a second, and needs four.
TEST(Precision, ABudgetIsThatOfOneRepetition) {
  results::store::CaseRecord again = MeasuredTo(0.0999);
  again.repetition = 1;
  for (auto* times : {&again.samples.entry_ns, &again.samples.exit_ns}) {
    for (std::int64_t& ns : *times) ns += 1'000'000'000;
  }
  EXPECT_EQ(ClauseOf({MeasuredTo(0.0999), again}),
            "; 0 of 2 to ±5 %; all 2 take about 4 s: --time-budget=4s");
}

TEST(Precision, OfNoRoundNothing) {
  results::store::CaseRecord lost = MeasuredTo(0.1);
  lost.summary.rounds = 0;
  EXPECT_EQ(ClauseOf({lost}), "");
}

}  // namespace
}  // namespace lockstep::bench::measure
