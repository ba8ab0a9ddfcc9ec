// Judging as many ranks as the largest machines have: linear in the events, and seconds at most.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/verdict/judge.h"
#include "core/verdict/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kSeed = 20261121;

// A newest stretch of a long run of buckets of ten sizes: every rank's ring begins somewhere else
// within a collective, and all are in the last one.
std::vector<RankEvidence> History(int ranks, int records) {
  Random random(kSeed);
  std::vector<RankEvidence> evidence(static_cast<std::size_t>(ranks));
  const auto last = static_cast<std::uint64_t>(records) + 1000;
  for (int rank = 0; rank < ranks; ++rank) {
    RankEvidence& one = evidence[static_cast<std::size_t>(rank)];
    one.rank = rank;
    one.journal.missed = 3000;
    one.journal.events.resize(static_cast<std::size_t>(records));
    // Backwards from the kStart of the last: enqueue, start and end of every collective.
    std::uint64_t sequence = last;
    int step = 1;
    for (int i = records - 1; i >= 0; --i) {
      JournalEvent& event = one.journal.events[static_cast<std::size_t>(i)];
      event.index = 3001 + static_cast<std::uint64_t>(i);
      event.ticks = 1000 * event.index + random.Below(500);
      event.kind = step == 0   ? EventKind::kEnqueue
                   : step == 1 ? EventKind::kStart
                               : EventKind::kEnd;
      event.sequence = sequence;
      event.nth = sequence + 1;
      event.count = static_cast<std::int64_t>(1000 + sequence % 10);
      event.phase = Phase::kBackward;
      if (step-- == 0) step = 2, --sequence;
    }
  }
  return evidence;
}

// The rank calls another count in the last collective.
void Mistake(RankEvidence& evidence) {
  for (JournalEvent& event : evidence.journal.events) {
    if (event.sequence == evidence.journal.events.back().sequence) event.count = 7;
  }
}

// Of this thread, so that whoever shares the processor does not count.
double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double SecondsToJudge(const std::vector<RankEvidence>& evidence, int culprit) {
  const double start = ProcessorSeconds();
  const Judgement judgement = Judge(evidence, 5);
  const double seconds = ProcessorSeconds() - start;
  EXPECT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings.at(0).cause, "count_mismatch");
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(culprit));
  EXPECT_EQ(judgement.outcomes.back().outcome, Outcome::kHung);
  return seconds;
}

TEST(Scale, A131072RanksWith128RecordsEach) {
  constexpr int kRanks = 131072, kRecords = 128, kCulprit = 77777;
  std::vector<RankEvidence> evidence = History(kRanks, kRecords);
  Mistake(evidence[kCulprit]);
  const double seconds = SecondsToJudge(evidence, kCulprit);
  fmt::print("{} ranks x {} records: judged in {:.2f} s, {:.1f} ns a record\n", kRanks, kRecords,
             seconds, seconds * 1e9 / kRanks / kRecords);
  // Two seconds on a quiet core; tests share theirs.
  EXPECT_LT(seconds, 8);
  const Setting setting = {.deadline_seconds = 5};
  const std::int64_t start = MonotonicNs();
  const Trace trace = TraceOf(evidence, setting, Judge(evidence, setting));
  fmt::print("the same with a trace: {:.2f} s\n",
             static_cast<double>(MonotonicNs() - start) * 1e-9);
  EXPECT_EQ(std::count(trace.ranks.begin(), trace.ranks.end(), kCulprit), 1);
}

TEST(Scale, TwiceTheEventsTwiceTheTime) {
  constexpr int kRanks = 8192, kRecords = 256, kCulprit = 5000, kTrials = 9;
  std::vector<std::vector<RankEvidence>> histories;
  histories.push_back(History(kRanks, kRecords));
  histories.push_back(History(2 * kRanks, kRecords));
  histories.push_back(History(kRanks, 2 * kRecords));
  for (auto& history : histories) Mistake(history[kCulprit]);
  // In turns, and the fastest of each: whoever shares the machine disturbs all alike.
  std::vector<double> seconds(histories.size(), 1e9);
  for (int trial = 0; trial < kTrials; ++trial) {
    for (std::size_t i = 0; i < histories.size(); ++i) {
      seconds[i] = std::min(seconds[i], SecondsToJudge(histories[i], kCulprit));
    }
  }
  const double ranks = seconds[1] / seconds[0];
  const double records = seconds[2] / seconds[0];
  fmt::print("seed {}: {:.3f} s; twice the ranks {:.2f} x, twice the records {:.2f} x\n", kSeed,
             seconds[0], ranks, records);
  EXPECT_GT(ranks, 1.4);  // what grows with the square would show 4
  EXPECT_LT(ranks, 3.4);
  EXPECT_GT(records, 1.4);
  EXPECT_LT(records, 3.4);
}

TEST(Scale, SmallOnesTakeMilliseconds) {
  std::vector<RankEvidence> evidence = History(8, 1000);
  Mistake(evidence[3]);
  EXPECT_LT(SecondsToJudge(evidence, 3), 0.1);
}

}  // namespace
}  // namespace lockstep
