// Histories of core/verdict, written as PyTorch would have dumped them and read again: who is
// found?
#include "core/flight/diagnosis.h"

#include <functional>
#include <optional>
#include <set>

#include "core/base/file_text.h"
#include "core/flight/job.h"
#include "core/flight/write.h"
#include "core/verdict/testing/history.h"

namespace lockstep::flight {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000'000;

// `begins_ns`: of a rank, when its calls began. `timeout_s`: of each call.
FlightJob JobOf(
    const std::vector<verdict::RankEvidence>& evidence, double seconds_later = 60,
    const std::function<std::int64_t(int)>& begins_ns = [](int) { return kSecond; },
    double timeout_s = 600) {
  FlightTexts texts;
  std::vector<FlightDump> dumps;
  std::set<std::int64_t> begins;
  for (const verdict::RankEvidence& rank : evidence) begins.insert(begins_ns(rank.rank));
  for (const std::int64_t began_ns : begins) {
    for (const auto& [rank, bytes] :
         FlightDumpsOf(evidence, {.origin_unix_ns = began_ns}, timeout_s)) {
      if (begins_ns(rank) != began_ns) continue;
      Result<FlightDump> dump = ReadFlightDump(bytes, rank, "dump", texts);
      EXPECT_TRUE(dump.ok()) << dump.status().message();
      // Times of these histories are microseconds. All dumps are copied at one moment.
      dump->written_at_ns = *begins.rbegin() + static_cast<std::int64_t>(seconds_later * kSecond);
      dumps.push_back(std::move(*dump));
    }
  }
  Result<FlightJob> job = FlightJobOf(std::move(texts), std::move(dumps));
  EXPECT_TRUE(job.ok());
  return std::move(*job);
}

verdict::Judgement JudgeDumps(const std::vector<verdict::RankEvidence>& evidence,
                              double seconds_later = 60) {
  const FlightJob job = JobOf(evidence, seconds_later);
  Result<FlightDiagnosis> diagnosis = DiagnoseFlight(job, 30);
  EXPECT_TRUE(diagnosis.ok());
  verdict::ExpectReadable(diagnosis->judgement);
  return diagnosis->judgement;
}

TEST(FlightDiagnosisTest, NothingUnderWayPasses) {
  const verdict::Judgement judgement =
      JudgeDumps({verdict::After49(0), verdict::After49(1), verdict::After49(2)});
  EXPECT_EQ(judgement.verdict, verdict::Verdict::kPass);
  EXPECT_TRUE(judgement.findings.empty());
}

TEST(FlightDiagnosisTest, TheRankThatDidNotComeIsSuspected) {
  const verdict::Judgement judgement =
      JudgeDumps({verdict::At50(0), verdict::After49(1), verdict::At50(2), verdict::At50(3)});
  EXPECT_EQ(judgement.verdict, verdict::Verdict::kFail);
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kRankBusy);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_FALSE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("call 50 of default_pg"));
  // It has no call under way, and still nothing is finished.
  EXPECT_THAT(verdict::OutcomesOf(judgement), Each(verdict::Outcome::kHung));
}

TEST(FlightDiagnosisTest, BeforeTheDeadlineNobodyIs) {
  const verdict::Judgement judgement =
      JudgeDumps({verdict::At50(0), verdict::After49(1), verdict::At50(2)}, 5);
  EXPECT_EQ(judgement.verdict, verdict::Verdict::kUnknown);
  EXPECT_TRUE(judgement.findings.empty());
}

constexpr int kNobody = -1;

// Who is to blame, the one that did not come or nobody.
int Blamed(const FlightJob& job, std::optional<double> deadline_seconds) {
  const FlightDiagnosis diagnosis = DiagnoseFlight(job, deadline_seconds).value();
  if (diagnosis.judgement.findings.empty()) {
    EXPECT_EQ(diagnosis.judgement.verdict, verdict::Verdict::kUnknown);
    return kNobody;
  }
  EXPECT_FALSE(diagnosis.judgement.findings[0].proved);
  return diagnosis.judgement.findings[0].culprits.at(0);
}

FlightJob OneDidNotCome(double seconds_later, double timeout_s) {
  return JobOf(
      {verdict::At50(0), verdict::After49(1), verdict::At50(2)}, seconds_later,
      [](int) { return kSecond; }, timeout_s);
}

TEST(FlightDiagnosisTest, ACallsOwnTimeoutCountsWhereItIsShorter) {
  struct {
    double timeout_s, seconds_later;
    int blamed;
  } const kCases[] = {{20, 20.5, 1},
                      {20, 19.5, kNobody},
                      {0.5, 1.25, 1},
                      {600, 30.5, 1},
                      {600, 29.5, kNobody},
                      {0, 29.5, kNobody},
                      // Of whole seconds: up to one second later.
                      {20, 20, 1},
                      {20, 19, kNobody}};
  for (const auto& one : kCases) {
    EXPECT_EQ(Blamed(OneDidNotCome(one.seconds_later, one.timeout_s), {}), one.blamed)
        << one.timeout_s << " s, after " << one.seconds_later;
  }
}

TEST(FlightDiagnosisTest, ADeadlineThatIsGivenCountsAlone) {
  EXPECT_EQ(Blamed(OneDidNotCome(20.5, 20), 30), kNobody);
  EXPECT_EQ(Blamed(OneDidNotCome(6.5, 20), 5), 1);
}

// Calls of another group go on, or went on for a while: rank 2's newest event.
TEST(FlightDiagnosisTest, BesideACallThatTimedOutOthersMustStandStill) {
  FlightJob job = OneDidNotCome(20.5, 20);
  const auto ended_before = [&](std::int64_t ms) {
    job.newest_ns = job.written_at_ns - ms * 1'000'000;
    job.dumps[2].newest_ns = job.newest_ns;
    return Blamed(job, {});
  };
  EXPECT_EQ(ended_before(300), kNobody);
  EXPECT_EQ(ended_before(5000), 1) << "it was queued behind them";
}

// Of PyTorch 2.11 with NCCL 2.28 on a GPU, written by its watchdog: see testdata/README.md.
TEST(FlightDiagnosisTest, RealDumpsOfNcclThatItsWatchdogWrote) {
  FlightTexts texts;
  std::vector<FlightDump> dumps;
  for (const int rank : {0, 1}) {
    const std::string path =
        "core/flight/testdata/nccl_sleeps_2_11/nccl_trace_rank_" + std::to_string(rank);
    dumps.push_back(ReadFlightDump(TextOf(path), rank, path, texts).value());
    dumps.back().written_at_ns = 1795692578 * kSecond;  // as the copies said: a whole second
  }
  const FlightJob job = FlightJobOf(std::move(texts), std::move(dumps)).value();
  EXPECT_EQ(Blamed(job, 30), kNobody);
  const FlightDiagnosis diagnosis = DiagnoseFlight(job).value();
  EXPECT_EQ(diagnosis.backend, "nccl");
  EXPECT_EQ(diagnosis.judgement.verdict, verdict::Verdict::kFail);
  ASSERT_EQ(diagnosis.judgement.findings.size(), 1u);
  const verdict::Finding& finding = diagnosis.judgement.findings[0];
  EXPECT_EQ(finding.cause, verdict::Cause::kRankBusy);
  EXPECT_FALSE(finding.proved);
  EXPECT_THAT(finding.culprits, ElementsAre(1));
  EXPECT_EQ(finding.headline.text(), "rank 1 has not called all_reduce; rank 0 waits for it");
  EXPECT_EQ(finding.message,
            "rank 0 waits for rank 1 in all_reduce Float[97] (call 24 of default_pg) for 20 s; "
            "rank 1 has not called it: its last call, all_reduce Float[97] (call 21 of "
            "default_pg), is done");
  EXPECT_EQ(finding.operation.value().sequence, 24u);
  EXPECT_THAT(verdict::OutcomesOf(diagnosis.judgement), Each(verdict::Outcome::kHung));
  ASSERT_EQ(diagnosis.trace.rows.size(), 7u);
  EXPECT_NEAR(diagnosis.seconds, 19.9, 0.01);
  EXPECT_EQ(diagnosis.trace.rows[4].cells[0].call,
            "broadcast Float[16] at nccl_programs.py:62 in main");
  EXPECT_EQ(diagnosis.trace.rows[6].cells[1].call, "(not called)");
}

TEST(FlightDiagnosisTest, DifferentCallsAreProved) {
  struct {
    collective::Operation called;
    verdict::Cause cause;
  } const kCases[] = {
      {verdict::Barrier(), verdict::Cause::kCollectiveMismatch},
      {verdict::AllReduce(128), verdict::Cause::kCountMismatch},
      {verdict::AllReduce(256, collective::DataType::kF64), verdict::Cause::kTypeMismatch},
      {{.collective = collective::Collective::kBroadcast, .count = 256},
       verdict::Cause::kCollectiveMismatch}};
  for (const auto& one : kCases) {
    const verdict::Judgement judgement =
        JudgeDumps({verdict::At50(0), verdict::At50(1), verdict::After49(2).Enters(one.called)}, 0);
    EXPECT_EQ(judgement.verdict, verdict::Verdict::kFail);
    ASSERT_EQ(judgement.findings.size(), 1u);
    EXPECT_EQ(judgement.findings[0].cause, one.cause);
    EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(2));
    EXPECT_TRUE(judgement.findings[0].proved);
  }
}

// Of three ranks, of which ranks 0 and 1 began so much later than rank 2.
FlightDiagnosis DiagnoseApart(std::int64_t seconds, const std::vector<verdict::RankEvidence>& all) {
  const FlightJob job =
      JobOf(all, 60, [&](int rank) { return (1 + (rank < 2 ? seconds : 0)) * kSecond; });
  return DiagnoseFlight(job, 30).value();
}

// Rank 2 died without a dump, and the one of a run an hour or two minutes before is still there.
TEST(FlightDiagnosisTest, ADumpThatIsLeftOverProvesNothing) {
  const auto judge = [](std::int64_t seconds_between) {
    return DiagnoseApart(seconds_between, {verdict::At50(0), verdict::At50(1),
                                           verdict::After49(2).Does(verdict::Barrier(), 9)});
  };
  EXPECT_FALSE(judge(30).judgement.findings.at(0).proved) << "left over after a quick restart";
  for (const std::int64_t between : {120, 3600}) {
    const FlightDiagnosis diagnosis = judge(between);
    EXPECT_EQ(diagnosis.judgement.verdict, verdict::Verdict::kUnknown);
    EXPECT_TRUE(diagnosis.judgement.findings.empty());
    EXPECT_THAT(diagnosis.notes, Contains(HasSubstr("rank 2 had ended a call")));
  }
}

// Nobody has ended its first call; that of rank 2 is given.
FlightDiagnosis FirstCalls(std::int64_t seconds_between, const collective::Operation& of_rank_2) {
  return DiagnoseApart(seconds_between, {verdict::History(0).Enters(verdict::AllReduce()),
                                         verdict::History(1).Enters(verdict::AllReduce()),
                                         verdict::History(2).Enters(of_rank_2)});
}

// Only when they began tells of two runs.
TEST(FlightDiagnosisTest, AFirstCallThatBeganLongBeforeTheOthersProvesNoMismatch) {
  const auto judge = [](std::int64_t seconds_between) {
    return FirstCalls(seconds_between, verdict::Barrier()).judgement;
  };
  const verdict::Judgement left_over = judge(120);
  EXPECT_FALSE(left_over.findings.at(0).proved);
  EXPECT_THAT(left_over.findings[0].message, HasSubstr("the dumps may be of two runs"));
  EXPECT_TRUE(judge(30).findings.at(0).proved);
}

// PyTorch would have ended rank 2 long before the others came: it is not one job that stalls.
TEST(FlightDiagnosisTest, ACallThatTimedOutBeforeOthersEnteredItIsOfAnotherRun) {
  const auto judge = [](std::int64_t seconds_between) {
    return FirstCalls(seconds_between, verdict::AllReduce());
  };
  const FlightDiagnosis left_over = judge(670);
  EXPECT_TRUE(left_over.judgement.findings.empty());
  EXPECT_THAT(left_over.notes, Contains(HasSubstr("rank 2 entered a call whose time-out passed")));
  EXPECT_EQ(judge(590).judgement.findings.at(0).cause, verdict::Cause::kTransportStall);
}

// The dumps show that all began the call before together: they are of one run.
TEST(FlightDiagnosisTest, AMismatchOfOneThatIsLateIsProvedBehindACallThatAllBegan) {
  verdict::RankEvidence late = verdict::After49(2).Enters(verdict::Barrier());
  for (journal::JournalEvent& event : late.journal.events) {
    if (event.sequence == 49) event.ticks += 120 * kSecond;
  }
  const verdict::Judgement judgement = JudgeDumps({verdict::At50(0), verdict::At50(1), late}, 240);
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kCollectiveMismatch);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(2));
  EXPECT_TRUE(judgement.findings[0].proved) << judgement.findings[0].message;
}

// What went through long ago, too: NCCL pairs what differs, and the hang comes later.
TEST(FlightDiagnosisTest, TheEarliestDifferenceCounts) {
  const auto history = [](int rank, std::int64_t count) {
    return verdict::History(rank)
        .Does(verdict::AllReduce(), 3)
        .Does(verdict::AllReduce(count))
        .Does(verdict::AllReduce(), 9);
  };
  const verdict::Judgement judgement = JudgeDumps({history(0, 256).Enters(verdict::Barrier()),
                                                   history(1, 128).Enters(verdict::AllReduce()),
                                                   history(2, 256).Enters(verdict::Barrier())});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kCountMismatch);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("call 4 of"));
}

TEST(FlightDiagnosisTest, AStallBlamesNobody) {
  const verdict::Judgement judgement =
      JudgeDumps({verdict::At50(0), verdict::At50(1), verdict::At50(2)});
  EXPECT_EQ(judgement.verdict, verdict::Verdict::kFail);
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kTransportStall);
  EXPECT_TRUE(judgement.findings[0].culprits.empty());
}

TEST(FlightDiagnosisTest, TheFewThatDidNotLeaveAreWhereToLook) {
  const verdict::Judgement judgement =
      JudgeDumps({verdict::At50(0), verdict::History(1).Does(verdict::AllReduce(), 50),
                  verdict::History(2).Does(verdict::AllReduce(), 50),
                  verdict::History(3).Does(verdict::AllReduce(), 50)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kTransportStall);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0));
}

TEST(FlightDiagnosisTest, OppositeOrderOnTwoGroups) {
  const verdict::Judgement judgement =
      JudgeDumps({verdict::History(0)
                      .Does(verdict::AllReduce(), 4)
                      .On(1)
                      .Does(verdict::AllReduce())
                      .On(2)
                      .Does(verdict::AllReduce())
                      .On(1)
                      .Enters(verdict::AllReduce()),
                  verdict::History(1)
                      .Does(verdict::AllReduce(), 4)
                      .On(1)
                      .Does(verdict::AllReduce())
                      .On(2)
                      .Does(verdict::AllReduce())
                      .On(2)
                      .Enters(verdict::AllReduce()),
                  verdict::History(2).Does(verdict::AllReduce(), 4)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kOrderInversion);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0, 1));
}

TEST(FlightDiagnosisTest, ARankWithoutADumpIsNamed) {
  std::vector<verdict::RankEvidence> evidence = {verdict::At50(0), verdict::At50(1),
                                                 verdict::After49(2), verdict::At50(3)};
  FlightJob job = JobOf(evidence);
  job.dumps.erase(job.dumps.begin() + 2);
  Result<FlightJob> without = FlightJobOf(std::move(job.texts), std::move(job.dumps));
  ASSERT_TRUE(without.ok());
  EXPECT_THAT(without->missing, ElementsAre(2));
  const Result<FlightDiagnosis> diagnosis = DiagnoseFlight(*without, 30);
  ASSERT_TRUE(diagnosis.ok());
  ASSERT_EQ(diagnosis->judgement.findings.size(), 1u);
  EXPECT_EQ(diagnosis->judgement.findings[0].cause, verdict::Cause::kRankLost);
  EXPECT_THAT(diagnosis->judgement.findings[0].culprits, ElementsAre(2));
  // Somebody else is to blame: the missing dump is only mentioned.
  ASSERT_EQ(diagnosis->judgement.outcomes.size(), 4u);
}

TEST(FlightDiagnosisTest, ASendThatNobodyReceives) {
  const collective::Operation send = {
      .collective = collective::Collective::kSend, .count = 7, .root = 1};
  const verdict::Judgement judgement =
      JudgeDumps({verdict::History(0).Does(verdict::AllReduce(), 3).On(1).Enters(send),
                  verdict::History(1)
                      .Does(verdict::AllReduce(), 3)
                      .On(1)
                      .Does({.collective = collective::Collective::kRecv, .count = 7, .root = 0})});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kRankBusy);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
}

TEST(FlightDiagnosisTest, TwoSendsToEachOther) {
  const auto sends = [](int rank, int to) {
    return verdict::History(rank)
        .Does(verdict::AllReduce(), 3)
        .On(1)
        .Enters({.collective = collective::Collective::kSend, .count = 7, .root = to});
  };
  const verdict::Judgement judgement = JudgeDumps({sends(0, 1), sends(1, 0)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kOrderInversion);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0, 1));
}

// Dumps on request, one after the other, of a job that moves on.
TEST(FlightDiagnosisTest, DumpsOfDifferentMomentsBlameNobody) {
  const verdict::Judgement judgement =
      JudgeDumps({verdict::History(0).Does(verdict::AllReduce(), 70).Enters(verdict::AllReduce()),
                  verdict::At50(1), verdict::At50(2)});
  EXPECT_EQ(judgement.verdict, verdict::Verdict::kUnknown);
  EXPECT_TRUE(judgement.findings.empty());
}

TEST(FlightDiagnosisTest, RingsThatLostTheirBeginningAreAligned) {
  const auto cut = [](verdict::RankEvidence rank, std::size_t events) {
    rank.journal.events.erase(rank.journal.events.begin(),
                              rank.journal.events.begin() + static_cast<std::ptrdiff_t>(events));
    rank.journal.missed = events;
    return rank;
  };
  const verdict::Judgement judgement = JudgeDumps(
      {cut(verdict::At50(0), 100), cut(verdict::After49(1), 61), cut(verdict::At50(2), 140)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kRankBusy);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
}

TEST(FlightDiagnosisTest, AThousandRanksAreRead) {
  std::vector<verdict::RankEvidence> evidence;
  for (int rank = 0; rank < 1000; ++rank) {
    evidence.push_back(rank == 617 ? verdict::After49(rank) : verdict::At50(rank));
  }
  const verdict::Judgement judgement = JudgeDumps(evidence);
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(617));
}

}  // namespace
}  // namespace lockstep::flight
