// Judging as many ranks as the largest machines have, and that its work grows with the events and
// no faster. The judge is compiled to count the branches that it comes past, which no load changes.
#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/verdict/judge.h"
#include "core/verdict/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

std::uint64_t branches = 0;

}  // namespace

// GCC's -fsanitize-coverage=trace-pc calls this at every branch of the code it compiles.
extern "C" void __sanitizer_cov_trace_pc() { ++branches; }

namespace lockstep::verdict {
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
      journal::JournalEvent& event = one.journal.events[static_cast<std::size_t>(i)];
      event.index = 3001 + static_cast<std::uint64_t>(i);
      event.ticks = 1000 * event.index + random.Below(500);
      event.kind = step == 0   ? journal::EventKind::kEnqueue
                   : step == 1 ? journal::EventKind::kStart
                               : journal::EventKind::kEnd;
      event.sequence = sequence;
      event.nth = static_cast<std::uint32_t>(sequence + 1);
      event.count = static_cast<std::int64_t>(1000 + sequence % 10);
      event.phase = journal::Phase::kBackward;
      if (step-- == 0) step = 2, --sequence;
    }
  }
  return evidence;
}

// The rank calls another count in the last collective.
void Mistake(RankEvidence& evidence) {
  for (journal::JournalEvent& event : evidence.journal.events) {
    if (event.sequence == evidence.journal.events.back().sequence) event.count = 7;
  }
}

double BranchesToJudge(const std::vector<RankEvidence>& evidence, int culprit) {
  branches = 0;
  const Judgement judgement = Judge(evidence, 5);
  const auto count = static_cast<double>(branches);
  EXPECT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kCountMismatch);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(culprit));
  EXPECT_EQ(judgement.outcomes.back().outcome, Outcome::kHung);
  return count;
}

TEST(Scale, A131072RanksWith128RecordsEach) {
  constexpr int kRanks = 131072, kRecords = 128, kCulprit = 77777;
  std::vector<RankEvidence> evidence = History(kRanks, kRecords);
  Mistake(evidence[kCulprit]);
  BranchesToJudge(evidence, kCulprit);
  const Setting setting = {.deadline_seconds = 5};
  const Trace trace = TraceOf(evidence, setting, Judge(evidence, setting));
  EXPECT_EQ(std::count(trace.ranks.begin(), trace.ranks.end(), kCulprit), 1);
}

// Twice as many ranks, and twice as many records of each: what grows with the square shows 4.
TEST(Scale, TwiceTheEventsTwiceTheWork) {
  constexpr int kRanks = 2048, kRecords = 256, kCulprit = 1500;
  std::vector<double> counts;
  for (const auto& [ranks, records] : {std::pair(kRanks, kRecords), std::pair(2 * kRanks, kRecords),
                                       std::pair(kRanks, 2 * kRecords)}) {
    std::vector<RankEvidence> evidence = History(ranks, records);
    Mistake(evidence[kCulprit]);
    counts.push_back(BranchesToJudge(evidence, kCulprit));
  }
  fmt::print("seed {}: {:.0f} branches; twice the ranks {:.3f} x, twice the records {:.3f} x\n",
             kSeed, counts[0], counts[1] / counts[0], counts[2] / counts[0]);
  for (std::size_t i = 1; i < counts.size(); ++i) {
    EXPECT_GT(counts[i] / counts[0], 1.4);
    EXPECT_LT(counts[i] / counts[0], 2.4);
  }
}

// Every rank calls something else, and every seventh was killed.
TEST(Scale, TenTimesTheSignaturesTenTimesTheWork) {
  const auto branches_for = [](int ranks) {
    std::vector<RankEvidence> evidence = History(ranks, 30);
    for (RankEvidence& one : evidence) {
      one.journal.events.back().count = 1000 + one.rank;
      if (one.rank % 7 != 3) continue;
      one.state = ProcessState::kSignalled;
      one.signal = SIGKILL;
    }
    branches = 0;
    EXPECT_FALSE(Judge(evidence, 5).findings.empty());
    return static_cast<double>(branches);
  };
  const double few = branches_for(1000);
  const double many = branches_for(10'000);
  fmt::print("{:.0f} branches; ten times the ranks {:.2f} x\n", few, many / few);
  EXPECT_LT(many / few, 15);
}

}  // namespace
}  // namespace lockstep::verdict
