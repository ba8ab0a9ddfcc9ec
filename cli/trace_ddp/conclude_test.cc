// Literal histories of ranks, and what is said of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cli/trace_ddp/rank_history.h"

namespace lockstep::cli::trace_ddp {
namespace {

using journal::Phase;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr Limits kLimits = {.timeout_seconds = 10, .connect_seconds = 60, .patience_seconds = 80};

Status Closed() { return SystemFailed("gloo: barrier: Connection closed by peer"); }
Status Late() { return SystemFailed("gloo: barrier: Timed out waiting 10000ms"); }

// Called its only collective at that second, and gloo said so at the other one.
RankHistory Called(std::int64_t at_s, std::int64_t end_s, const Status& status) {
  RankHistory rank;
  rank.trace.status = status;
  rank.trace.sections = {{{ddp::SectionKind::kIteration, 0}, {{}}}};
  rank.moments = {{.ns = 0, .phase = Phase::kForward},
                  {at_s * kSecond, Phase::kForward, 1, 1, true}};
  if (!status.ok()) rank.failed_ns = end_s * kSecond;
  rank.moments.push_back({end_s * kSecond, Phase::kForward, 1, 1, false});
  rank.end_ns = end_s * kSecond;
  return rank;
}

// Loaded data from second 0 on.
RankHistory Loads() {
  RankHistory rank;
  rank.moments = {{.ns = 0, .phase = Phase::kLoad}};
  return rank;
}

RankHistory Stopped(RankHistory rank) {
  rank.process = {.signal = SIGKILL, .state = 'T'};
  return rank;
}

TracedRanks ConcludeWell(const std::vector<RankHistory>& histories) {
  auto ranks = Conclude(histories, kLimits);
  EXPECT_TRUE(ranks.ok()) << ranks.status().message();
  return ranks.ok() ? *ranks : TracedRanks{};
}

std::vector<TraceEnd> Ends(const TracedRanks& ranks) {
  std::vector<TraceEnd> ends;
  for (const TracedRank& rank : ranks) ends.push_back(rank.end);
  return ends;
}

TEST(ConcludeTest, ARankThatIsBusyIsNoHangAndIsNamed) {
  RankHistory busy = Loads();
  const RankHistory later = Called(12, 12, Closed());
  busy.moments.insert(busy.moments.end(), later.moments.begin() + 1, later.moments.end());
  busy.trace = later.trace;
  busy.failed_ns = later.failed_ns;
  busy.end_ns = later.end_ns;
  const TracedRanks ranks = ConcludeWell({Called(0, 10, Late()), busy});
  EXPECT_EQ(Ends(ranks), (std::vector{TraceEnd::kTimedOut, TraceEnd::kLostPeers}));
  EXPECT_EQ(ExitCodeOf(ranks), ExitCode::kInconclusive);
  EXPECT_THAT(ranks[0].message, HasSubstr("waited more than 10 s"));
  EXPECT_THAT(ranks[0].message, HasSubstr("rank 1 was still busy (load) before any collective"));
  EXPECT_THAT(ranks[1].message, HasSubstr("a rank that had timed out left before"));
}

TEST(ConcludeTest, WhereAllWaitedAHangIsSuspected) {
  RankHistory other = Called(1, 11, Closed());
  other.trace.sections[0].calls[0].operation.collective = collective::Collective::kBroadcast;
  const TracedRanks ranks = ConcludeWell({Called(0, 10, Late()), other});
  EXPECT_EQ(Ends(ranks), (std::vector{TraceEnd::kSuspectedHang, TraceEnd::kLostPeers}));
  EXPECT_EQ(ExitCodeOf(ranks), ExitCode::kFailed);
  const TracedRanks beside_ended = ConcludeWell({Called(0, 10, Late()), Called(0, 1, OkStatus())});
  EXPECT_EQ(Ends(beside_ended), (std::vector{TraceEnd::kSuspectedHang, TraceEnd::kFinished}));
}

TEST(ConcludeTest, WhereAllWereInOneCollectiveTheProgramIsNotSuspected) {
  const TracedRanks ranks = ConcludeWell({Called(0, 10, Late()), Called(1, 11, Closed())});
  EXPECT_EQ(Ends(ranks), (std::vector{TraceEnd::kTimedOut, TraceEnd::kLostPeers}));
  EXPECT_EQ(ExitCodeOf(ranks), ExitCode::kInconclusive);
  EXPECT_THAT(ranks[0].message, HasSubstr("; all ranks were in this collective"));
}

TEST(ConcludeTest, ARankThatHasJustCalledIsNoHang) {
  const TracedRanks ranks = ConcludeWell({Called(0, 10, Late()), Called(9, 11, Closed())});
  EXPECT_EQ(ranks[0].end, TraceEnd::kTimedOut);
  EXPECT_THAT(ranks[0].message, HasSubstr("rank 1 had just called collective 0"));
  EXPECT_EQ(ExitCodeOf(ranks), ExitCode::kInconclusive);
}

// Rank 1 was stopped in collective 0 for 12 s, and rank 0 waited for it in collective 1.
TEST(ConcludeTest, ACallThatEndedWellAfterTheTimeoutIsNoHang) {
  const auto history = [](std::int64_t done_s, std::int64_t end_s, const Status& status) {
    RankHistory rank = Called(0, done_s, OkStatus());
    rank.trace.status = status;
    rank.trace.sections[0].calls.push_back({1, {}, {}});
    rank.moments.push_back({done_s * kSecond, Phase::kForward, 2, 2, true});
    rank.moments.push_back({end_s * kSecond, Phase::kForward, 2, 2, false});
    rank.failed_ns = rank.end_ns = end_s * kSecond;
    return rank;
  };
  const TracedRanks ranks = ConcludeWell({history(1, 11, Late()), history(12, 13, Closed())});
  EXPECT_EQ(Ends(ranks), (std::vector{TraceEnd::kTimedOut, TraceEnd::kLostPeers}));
  EXPECT_EQ(ExitCodeOf(ranks), ExitCode::kInconclusive);
  EXPECT_THAT(ranks[0].message, HasSubstr("; rank 1 ended collective 0 later"));
}

TEST(ConcludeTest, AnErrorBeforeTheTimeoutIsTheRanksOwn) {
  const TracedRanks before = ConcludeWell({Called(0, 10, Late()), Called(1, 9, Closed())});
  EXPECT_EQ(before[1].end, TraceEnd::kFailed);
  const TracedRanks raised =
      ConcludeWell({Called(0, 10, Late()), Called(1, 11, SystemFailed("exhausted all inputs"))});
  EXPECT_EQ(raised[1].end, TraceEnd::kFailed);
  EXPECT_EQ(ExitCodeOf(raised), ExitCode::kFailed);
}

TEST(ConcludeTest, ARankThatDidNotEndIsNamedAndNotAccused) {
  const TracedRanks ranks = ConcludeWell({Called(0, 10, Late()), Stopped(Loads())});
  EXPECT_EQ(Ends(ranks), (std::vector{TraceEnd::kTimedOut, TraceEnd::kNotEnded}));
  EXPECT_EQ(ExitCodeOf(ranks), ExitCode::kInconclusive);
  EXPECT_THAT(ranks[1].message, HasSubstr("within 80 s; its process is stopped; phase load"));
  EXPECT_THAT(ranks[1].message, HasSubstr("last: no collective"));
  EXPECT_THAT(ranks[1].message, Not(HasSubstr("crashed")));
  RankHistory inside = Called(0, 1, OkStatus());
  inside.end_ns.reset();
  inside.moments.pop_back();
  EXPECT_EQ(ConcludeWell({Called(0, 10, Late()), Stopped(inside)})[0].end, TraceEnd::kTimedOut);
}

TEST(ConcludeTest, AKilledRankIsNotAccusedNorThoseThatLoseIt) {
  RankHistory killed = Loads();
  killed.process.signal = SIGKILL;
  const TracedRanks ranks = ConcludeWell({killed, Called(1, 2, Closed()), Called(0, 10, Late())});
  EXPECT_EQ(Ends(ranks),
            (std::vector{TraceEnd::kNotEnded, TraceEnd::kLostPeers, TraceEnd::kTimedOut}));
  EXPECT_EQ(ExitCodeOf(ranks), ExitCode::kInconclusive);
  EXPECT_THAT(ranks[0].message, HasSubstr("its process was killed: by the kernel"));
  EXPECT_THAT(ranks[1].message, HasSubstr("; rank 0 was killed"));
}

TEST(ConcludeTest, ARankThatCannotConnectIsNoFinding) {
  RankHistory alone;
  alone.trace.status = DeadlineExceeded("nobody put world/gloo/rank_1");
  alone.end_ns = 60 * kSecond;
  const TracedRanks ranks = ConcludeWell({alone, Stopped({})});
  EXPECT_EQ(Ends(ranks), (std::vector{TraceEnd::kTimedOut, TraceEnd::kNotEnded}));
  EXPECT_THAT(ranks[0].message, HasSubstr("did not connect within 60 s: nobody put"));
}

TEST(ConcludeTest, AConnectionThatFailsAtOnceDidNotWait) {
  RankHistory alone;
  alone.trace.status = SystemFailed("gloo: rank 0 of 2 can't connect: Connection reset by peer");
  alone.end_ns = kSecond / 2;
  RankHistory killed;
  killed.process.signal = SIGKILL;
  const TracedRanks ranks = ConcludeWell({alone, killed});
  EXPECT_EQ(ranks[0].end, TraceEnd::kLostPeers);
  EXPECT_EQ(ranks[0].message,
            "could not connect: " + alone.trace.status.message() + "; rank 1 was killed");
  EXPECT_EQ(ExitCodeOf(ranks), ExitCode::kInconclusive);
  const TracedRanks unknown = ConcludeWell({alone, alone});
  EXPECT_EQ(unknown[0].message, "could not connect: " + alone.trace.status.message());
  EXPECT_EQ(ExitCodeOf(unknown), ExitCode::kInconclusive);
}

TEST(ConcludeTest, WhatTheMachineLacksIsNoRanksFault) {
  RankHistory poor = Loads();
  poor.environment = EnvironmentError("no thread");
  const auto ranks = Conclude({Called(0, 10, Late()), poor}, kLimits);
  ASSERT_FALSE(ranks.ok());
  EXPECT_EQ(ranks.status().code(), StatusCode::kEnvironment);
  EXPECT_EQ(ranks.status().message(), "rank 1: no thread");
}

TEST(ConcludeTest, ACrashIsToldWithItsLastWords) {
  RankHistory crashed = Called(0, 1, OkStatus());
  crashed.end_ns.reset();
  crashed.process = {.errors = "terminate\n  what():  8 vs 4\n", .signal = SIGABRT};
  const TracedRanks ranks = ConcludeWell({crashed});
  EXPECT_EQ(ranks[0].end, TraceEnd::kFailed);
  EXPECT_THAT(ranks[0].message, HasSubstr("crashed: SIGABRT in or after collective 0"));
  EXPECT_THAT(ranks[0].message, HasSubstr(": 8 vs 4"));
}

}  // namespace
}  // namespace lockstep::cli::trace_ddp
