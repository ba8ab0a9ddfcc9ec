// Sends and receives among collectives.
#include <signal.h>

#include <algorithm>

#include "core/verdict/judge.h"
#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

collective::Operation Send(int to, std::int64_t count = 16) {
  return {.collective = collective::Collective::kSend, .count = count, .root = to};
}
collective::Operation Receive(int from, std::int64_t count = 16) {
  return {.collective = collective::Collective::kRecv, .count = count, .root = from};
}

Judgement JudgeOn(std::string backend, const std::vector<RankEvidence>& evidence,
                  bool nonblocking_calls = false) {
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.backend = std::move(backend);
  setting.one_stream = !nonblocking_calls;
  setting.nonblocking_calls = nonblocking_calls;
  const Judgement judgement = Judge(evidence, setting);
  ExpectReadable(judgement);
  return judgement;
}

TEST(Messages, AReceiveFromARankThatIsGoneWaitsForEver) {
  const std::vector<RankEvidence> evidence = {History(0).Enters(Receive(1)),
                                              History(1).Signalled(SIGKILL)};
  const Judgement judgement = JudgeOn("mpi", evidence);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankKilled);
  EXPECT_THAT(judgement.findings[0].message,
              HasSubstr("rank 0 waits for it in recv 1 (from rank 1 of its communicator)"));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kKilled));
  EXPECT_TRUE(NobodyCanGoOn(evidence, judgement));
  // The nearest that is none: the message was sent before.
  const Judgement sent =
      JudgeOn("mpi", {History(0).Enters(Receive(1)), History(1).Does(Send(0)).Signalled(SIGKILL)});
  EXPECT_THAT(OutcomesOf(sent), ElementsAre(Outcome::kFinished, Outcome::kKilled));
}

TEST(Messages, ASendWaitsWhereALibraryKeepsNothing) {
  const std::vector<RankEvidence> evidence = {History(0).Enters(Send(1)),
                                              History(1).Signalled(SIGKILL)};
  EXPECT_THAT(OutcomesOf(JudgeOn("gloo", evidence)), ElementsAre(Outcome::kHung, Outcome::kKilled));
  // MPI may take a small one by itself.
  EXPECT_THAT(OutcomesOf(JudgeOn("mpi", evidence)),
              ElementsAre(Outcome::kFinished, Outcome::kKilled));
}

TEST(Messages, DoNotHideWhatCollectivesDoNotMatch) {
  // Rank 1 has sent one message more than rank 0 has seen: positions of calls differ by it.
  const std::vector<RankEvidence> evidence = {
      History(0).Does(AllReduce()).Enters(AllReduce(8)),
      History(1).Does(AllReduce()).Does(Send(2)).Enters(AllReduce(9)),
      History(2).Does(AllReduce()).Does(Receive(1)).Enters(AllReduce(9))};
  const Judgement judgement = JudgeOn("nccl", evidence);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kCountMismatch);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0));
  // The operation is named as the journal has it.
  ASSERT_TRUE(judgement.findings[0].operation.has_value());
  EXPECT_EQ(judgement.findings[0].operation->collective, collective::Collective::kAllReduce);
  // With the same counts nothing is wrong.
  const std::vector<RankEvidence> same = {History(0).Does(AllReduce()).Enters(AllReduce(9)),
                                          evidence[1], evidence[2]};
  EXPECT_THAT(JudgeOn("nccl", same).findings, IsEmpty());
}

TEST(Messages, RanksThatReceiveFromEachOtherAreARing) {
  const std::vector<RankEvidence> evidence = {History(0).Enters(Receive(1)),
                                              History(1).Enters(Receive(0))};
  const Judgement judgement = JudgeOn("mpi", evidence);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kOrderInversion);
  EXPECT_TRUE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0, 1));
  EXPECT_TRUE(NobodyCanGoOn(evidence, judgement));
  // A receive and its send are none.
  EXPECT_THAT(JudgeOn("mpi", {History(0).Enters(Receive(1)), History(1).Enters(Send(0))}).findings,
              IsEmpty());
  // Posted calls may be followed by the sends: silence tells no more than that.
  const Judgement posted = JudgeOn(
      "mpi", {History(0).Enters(Receive(1)).Silent(6), History(1).Enters(Receive(0)).Silent(6)},
      true);
  for (const Finding& finding : posted.findings) EXPECT_EQ(finding.cause, Cause::kUnknown);
}

TEST(PostedCalls, OfTwoKindsMayMeetInAnotherOrder) {
  const collective::Operation gather = {.collective = collective::Collective::kAllGather,
                                        .count = 1};
  const auto at = [&](bool nonblocking_calls) {
    return JudgeOn(
        "mpi",
        {History(0).Enters(gather), History(1).Enters(AllReduce()), History(2).Enters(gather)},
        nonblocking_calls);
  };
  EXPECT_THAT(OutcomesOf(at(false)), ElementsAre(Outcome::kHung, Outcome::kHung, Outcome::kHung));
  const Judgement posted = at(true);
  EXPECT_EQ(posted.findings.at(0).cause, Cause::kCollectiveMismatch);
  EXPECT_THAT(posted.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(OutcomesOf(posted),
              ElementsAre(Outcome::kFinished, Outcome::kFinished, Outcome::kFinished));
}

TEST(PostedCalls, ProveNobodyToWait) {
  const auto at = [](double silent, bool nonblocking_calls) {
    return OutcomesOf(JudgeOn(
        "mpi", {History(0).Enters(AllReduce()).Silent(silent), History(1).Signalled(SIGKILL)},
        nonblocking_calls));
  };
  EXPECT_THAT(at(1, false), ElementsAre(Outcome::kHung, Outcome::kKilled));
  EXPECT_THAT(at(1, true), ElementsAre(Outcome::kFinished, Outcome::kKilled));
  EXPECT_THAT(at(6, true), ElementsAre(Outcome::kHung, Outcome::kKilled));
}

TEST(PostedCalls, ThatAllEnteredAreNoStallWhereARankIsMissing) {
  const auto posted = [](int rank) { return History(rank).Enters(AllReduce()).Silent(6); };
  const auto busy = [](const Judgement& judgement) {
    return std::ranges::count_if(judgement.findings, [](const Finding& finding) {
      return finding.cause == Cause::kRankBusy && finding.culprits == std::vector<int>{2};
    });
  };
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.nonblocking_calls = true;
  setting.groups = {{1, "pair", {0, 1}}};
  const auto in_pair = [](int rank) {
    return History(rank).On(1).Enters(AllReduce()).On(0).Enters(AllReduce()).Silent(6);
  };
  const Judgement judgement =
      Judge({in_pair(0), in_pair(1), History(2).In(journal::Phase::kCompute).Silent(6)}, setting);
  EXPECT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(busy(judgement), 1);
  // All are in it, and nobody else is missing.
  EXPECT_EQ(JudgeOn("nccl", {posted(0), posted(1)}, true).findings.at(0).cause,
            Cause::kTransportStall);
}

TEST(Messages, SilenceNamesWhoDidNotSend) {
  const auto silent = [](History history) { return history.Silent(6); };
  const Judgement judgement =
      JudgeOn("mpi", {silent(History(0).Does(AllReduce()).Enters(Receive(1))),
                      silent(History(1).Does(AllReduce()).In(journal::Phase::kCompute)),
                      silent(History(2).Does(AllReduce()).Enters(AllReduce()))});
  ASSERT_FALSE(judgement.findings.empty());
  EXPECT_EQ(judgement.findings[0].cause, Cause::kRankBusy);
  EXPECT_FALSE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
}

TEST(Messages, StandWhereTheyStandHoweverMuchOfAHistoryIsLost) {
  // What ranks 0 and 1 sent and received is in no window, or only in part.
  const auto ring = [](int rank, std::size_t newest) {
    History history(rank);
    for (int round = 0; round < 150; ++round) {
      if (rank == 0) history.Does(Send(1));
      if (rank == 1) history.Does(Receive(0));
      history.Does(AllReduce()).Does(Barrier());
    }
    return history.Newest(newest);
  };
  for (const std::size_t newest : {1000, 100, 10, 5, 3}) {
    EXPECT_THAT(JudgeOn("gloo", {ring(0, newest), ring(1, newest), ring(2, newest)}).findings,
                IsEmpty());
  }
  const auto early = [](int rank) {
    History history(rank);
    if (rank == 0) history.Does(Send(1));
    if (rank == 1) history.Does(Receive(0));
    return history.Does(AllReduce(), 400);
  };
  const auto in_barrier = [&](int rank) { return early(rank).Enters(Barrier()).Newest(100); };
  EXPECT_THAT(
      JudgeOn("gloo", {in_barrier(0), in_barrier(1), early(2).Enters(Barrier()).Newest(100)})
          .findings,
      IsEmpty());
  // The nearest that is none: one of them reduces once more.
  const Judgement judgement =
      JudgeOn("gloo", {in_barrier(0), in_barrier(1), early(2).Enters(AllReduce()).Newest(100)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kCollectiveMismatch);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(2));
}

TEST(Messages, UndecidableWhereNobodyCounted) {
  // How many were sent before is not known: nothing is proved of who waits in one.
  RankEvidence waits = History(0).Enters(Receive(1)).Missed(3);
  for (journal::JournalEvent& event : waits.journal.events) {
    event.messages_before = journal::kUnknownMessages;
  }
  const Judgement judgement = JudgeOn("mpi", {waits, History(1).Signalled(SIGKILL)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankKilled);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kKilled));
}

}  // namespace
}  // namespace lockstep::verdict
