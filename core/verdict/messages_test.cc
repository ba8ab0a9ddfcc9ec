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

// "order_inversion (proved) of 0,1: the headline", of the first finding.
std::string FirstOf(const Judgement& judgement) {
  if (judgement.findings.empty()) return "nothing";
  const Finding& finding = judgement.findings.front();
  std::string text(finding.cause.name());
  text += finding.proved ? " (proved) of" : " (suspected) of";
  for (const int rank : finding.culprits) text += " " + std::to_string(rank);
  return text + ": " + finding.headline.text();
}

TEST(Messages, RanksThatReceiveFromEachOtherAreARing) {
  const std::vector<RankEvidence> evidence = {History(0).Enters(Receive(1)),
                                              History(1).Enters(Receive(0))};
  const Judgement judgement = JudgeOn("mpi", evidence);
  EXPECT_EQ(FirstOf(judgement),
            "order_inversion (proved) of 0 1: ranks 0 and 1 receive from each other, and neither "
            "sends; rank 0 in recv 1 from peer 1");
  EXPECT_EQ(judgement.findings.at(0).message,
            "rank 0 waits in recv 1 (from rank 1 of its communicator) f32 x 16 for rank 1, rank 1 "
            "waits in recv 1 (from rank 0 of its communicator) f32 x 16 for rank 0: a ring of "
            "messages, in which nobody comes");
  EXPECT_THAT(judgement.findings[0].remedy, HasSubstr("send before it receives"));
  EXPECT_TRUE(NobodyCanGoOn(evidence, judgement));
  // A receive and its send are none.
  EXPECT_THAT(JudgeOn("mpi", {History(0).Enters(Receive(1)), History(1).Enters(Send(0))}).findings,
              IsEmpty());
  // Posted calls may be followed by the sends: silence tells no more than that.
  const Judgement posted = JudgeOn(
      "mpi", {History(0).Enters(Receive(1)).Silent(6), History(1).Enters(Receive(0)).Silent(6)},
      true);
  for (const Finding& finding : posted.findings) EXPECT_EQ(finding.cause, Cause::kUnknown);
  EXPECT_EQ(FirstOf(posted),
            "unknown (suspected) of 1: rank 1 waits in recv 1 from peer 0 instead of its send to "
            "rank 0; rank 0 waits for it");
}

TEST(Messages, RanksThatSendToEachOtherAreARing) {
  const auto at = [](double silent) {
    return std::vector<RankEvidence>{History(0).Enters(Send(1)).Silent(silent),
                                     History(1).Enters(Send(0)).Silent(silent)};
  };
  const std::string what =
      " of 0 1: ranks 0 and 1 send to each other, and neither receives; rank 0 in send 1 to peer 1";
  const Judgement judgement = JudgeOn("gloo", at(1));
  EXPECT_EQ(FirstOf(judgement), "order_inversion (proved)" + what);
  EXPECT_THAT(judgement.findings.at(0).remedy, HasSubstr("receive before it sends"));
  // MPI may still take them; what it did not take until the deadline waits.
  EXPECT_EQ(FirstOf(JudgeOn("mpi", at(1))), "nothing");
  const Judgement late = JudgeOn("mpi", at(6));
  EXPECT_EQ(FirstOf(late), "order_inversion (suspected)" + what);
  EXPECT_EQ(late.findings.size(), 1u);
  EXPECT_FALSE(NobodyCanGoOn(at(6), late));
  EXPECT_THAT(OutcomesOf(late), ElementsAre(Outcome::kHung, Outcome::kHung));
}

TEST(Messages, ARingOfThreeThatSend) {
  const auto send = [](int rank, double silent) {
    return History(rank).Enters(Send((rank + 1) % 3)).Silent(silent);
  };
  EXPECT_EQ(FirstOf(JudgeOn("mpi", {send(0, 6), send(1, 6), send(2, 6)})),
            "order_inversion (suspected) of 0 1 2: ranks 0-2 send to each other in a ring, and "
            "none receives; rank 0 in send 1 to peer 1");
  // The nearest that is none: one of them went on since.
  EXPECT_NE(JudgeOn("mpi", {send(0, 6), send(1, 6), send(2, 1)}).findings.at(0).cause,
            Cause::kOrderInversion);
  // ... or receives, and its message is on its way.
  EXPECT_NE(JudgeOn("mpi", {send(0, 6), History(1).Enters(Receive(0)).Silent(6), send(2, 6)})
                .findings.at(0)
                .cause,
            Cause::kOrderInversion);
}

// Rank 0 sent 16 f32 and went on.
std::string OfReceive(const char* backend, std::int64_t count,
                      collective::DataType type = collective::DataType::kF32) {
  collective::Operation receive = Receive(0, count);
  receive.type = type;
  return FirstOf(JudgeOn(backend, {History(0).Does(Send(1)).Does(AllReduce()),
                                   History(1).Does(receive).Does(AllReduce())}));
}

TEST(Messages, ThatDoNotFitTheirReceiveByTheRulesOfTheLibrary) {
  const std::string too_short =
      "count_mismatch (proved) of 0 1: rank 1 receives f32 x 8 in recv 1 from peer 0, rank 0 sends "
      "f32 x 16";
  for (const char* backend : {"mpi", "gloo", "nccl", "another"}) {
    EXPECT_EQ(OfReceive(backend, 8), too_short) << backend;
    EXPECT_EQ(OfReceive(backend, 16), "nothing") << backend;
    EXPECT_EQ(OfReceive(backend, 16, collective::DataType::kI32),
              "type_mismatch (proved) of 0 1: rank 1 receives i32 x 16 in recv 1 from peer 0, rank "
              "0 sends f32 x 16")
        << backend;
  }
  // More room than is needed is legal in MPI, and gloo asks for no more.
  for (const char* backend : {"mpi", "gloo", "another"})
    EXPECT_EQ(OfReceive(backend, 32), "nothing") << backend;
  EXPECT_THAT(OfReceive("nccl", 32), HasSubstr("count_mismatch (proved) of 0 1"));
}

TEST(Messages, ThatDoNotFitAreWhyTheirRanksEnded) {
  // Open MPI: MPI_ERR_TRUNCATE. The peer that waits for the rank says nothing new.
  const std::vector<RankEvidence> truncated = {
      History(0).Does(Send(1)).Enters(AllReduce()),
      History(1).FailsIn(Receive(0, 8)).Reports("MPI_ERR_TRUNCATE: message truncated").Exited(1)};
  const Judgement mpi = JudgeOn("mpi", truncated);
  EXPECT_EQ(mpi.findings.at(0).cause, Cause::kCountMismatch);
  EXPECT_EQ(mpi.findings[0].message,
            "rank 0 went through send 1 (to rank 1 of its communicator) f32 x 16, rank 1 is in "
            "recv 1 (from rank 0 of its communicator) f32 x 8: one message, different arguments; a "
            "message that is longer than its receive is an error");
  EXPECT_EQ(mpi.findings[0].operation->communicator, kWorld);
  EXPECT_THAT(OutcomesOf(mpi), ElementsAre(Outcome::kHung, Outcome::kFailed));
  EXPECT_TRUE(NobodyCanGoOn(truncated, mpi));
  // gloo: the process ends.
  EXPECT_EQ(JudgeOn("gloo", {History(0).Enters(Send(1)),
                             History(1).Enters(Receive(0, 8)).Signalled(SIGABRT)})
                .findings.at(0)
                .cause,
            Cause::kCountMismatch);
  // NCCL: the receive waits for more than comes, which only silence tells.
  const auto waits = [](double silent) {
    return JudgeOn("nccl", {History(0).Does(Send(1)).Enters(AllReduce()).Silent(silent),
                            History(1).Enters(Receive(0, 32)).Silent(silent)});
  };
  EXPECT_THAT(OutcomesOf(waits(1)), ElementsAre(Outcome::kFinished, Outcome::kFinished));
  EXPECT_THAT(OutcomesOf(waits(6)), ElementsAre(Outcome::kHung, Outcome::kHung));
  EXPECT_EQ(waits(6).findings.size(), 1u);
  EXPECT_EQ(waits(6).findings.at(0).cause, Cause::kCountMismatch);
  // What ended a rank from outside is no consequence.
  EXPECT_EQ(JudgeOn("mpi", {History(0).Does(Send(1)).Enters(AllReduce()),
                            History(1).Enters(Receive(0, 8)).Signalled(SIGKILL)})
                .findings.at(0)
                .cause,
            Cause::kRankKilled);
}

TEST(Messages, OfWhichOneWasSkippedMeetTheNextReceive) {
  // Rank 0 leaves out its first of three: the last receive gets none.
  const auto type = [](collective::Operation operation) {
    operation.type = collective::DataType::kI32;
    return operation;
  };
  const Judgement judgement =
      JudgeOn("mpi", {History(0).Does(type(Send(1))).Does(Send(1)).Leaves(0),
                      History(1).Does(Receive(0)).Does(type(Receive(0))).Enters(Receive(0))});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kTypeMismatch);
  // The later one ended the rank, whatever went before.
  const Judgement later =
      JudgeOn("mpi", {History(0).Does(Send(1)).Does(Send(1)),
                      History(1).Does(type(Receive(0))).FailsIn(Receive(0, 8)).Reports("error")});
  EXPECT_EQ(later.findings.at(0).cause, Cause::kCountMismatch);
}

TEST(Messages, ThatNobodyReceivedExplainWrongData) {
  const auto receives = [](int times) { return History(1).Does(Receive(0), times).Leaves(0); };
  const RankEvidence sends = History(0).Does(Send(1), 3).Leaves(0);
  const Judgement skipped = JudgeOn("mpi", {sends, receives(2).WrongData("recv: 16 of 16")});
  EXPECT_EQ(FirstOf(skipped),
            "collective_mismatch (proved) of 0 1: rank 1 received 2 of 3 messages that rank 0 sent "
            "to it");
  EXPECT_EQ(skipped.findings.at(1).cause, Cause::kDataCorruption);
  // All came, or it may yet receive.
  EXPECT_EQ(JudgeOn("mpi", {sends, receives(3).WrongData("recv")}).findings.at(0).cause,
            Cause::kDataCorruption);
  EXPECT_EQ(JudgeOn("mpi", {sends, History(1).Does(Receive(0), 2).WrongData("recv")})
                .findings.at(0)
                .cause,
            Cause::kDataCorruption);
  // Nobody may end so, whether data show it or not.
  EXPECT_EQ(FirstOf(JudgeOn("mpi", {sends, receives(2)})), FirstOf(skipped));
  EXPECT_EQ(FirstOf(JudgeOn("mpi", {sends, receives(3)})), "nothing");
}

TEST(Messages, AMessageAndACollectiveAreARing) {
  const Judgement judgement =
      JudgeOn("mpi", {History(0).Enters(AllReduce()), History(1).Enters(Receive(0))});
  EXPECT_EQ(FirstOf(judgement),
            "order_inversion (proved) of 0 1: ranks 0 and 1 wait for each other in messages and "
            "collectives; rank 0 in all_reduce 1");
  EXPECT_THAT(judgement.findings.at(0).message,
              HasSubstr("rank 0 waits in all_reduce 1 (sequence 0 of communicator 0) f32 x 256 "
                        "sum (world) for rank 1, rank 1 waits in recv 1"));
}

TEST(Messages, OfOneRankToAnotherInARing) {
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.backend = "gloo";
  setting.one_stream = true;
  setting.groups = {{1, "pair", {0, 1}}};
  EXPECT_EQ(
      FirstOf(Judge({History(0).Enters(Send(1)), History(1).On(1).Enters(Receive(0))}, setting)),
      "order_inversion (proved) of 0 1: ranks 0 and 1 wait for each other's messages; rank 0 in "
      "send 1 to peer 1");
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
  EXPECT_EQ(FirstOf(judgement),
            "rank_busy (suspected) of 1: rank 1 has not entered all_reduce 2: computing, silent "
            "6.0 s; rank 2 waits for it");
  const Judgement two = JudgeOn("mpi", {silent(History(0).Enters(Receive(1))),
                                        silent(History(1).In(journal::Phase::kCompute))});
  EXPECT_EQ(FirstOf(two),
            "rank_busy (suspected) of 1: rank 1 has not entered its send to rank 0: computing, "
            "silent 6.0 s; rank 0 waits for it");
  EXPECT_THAT(two.findings[0].message, HasSubstr("rank 1 has not come to it: computing"));
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
