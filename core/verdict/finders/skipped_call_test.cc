// Histories that random programs in simulation brought up (stress/fuzz), written down: whom a rank
// really waits for, and who is wrong when some have ended already.
#include <utility>
#include <vector>

#include "core/verdict/semantics.h"
#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

collective::Operation Broadcast(int root) {
  return {.collective = collective::Collective::kBroadcast, .count = 4, .root = root};
}
collective::Operation Reduce(int root) {
  return {.collective = collective::Collective::kReduce, .count = 4, .root = root};
}

collective::Operation Send(int to) {
  return {.collective = collective::Collective::kSend, .count = 4, .root = to};
}
collective::Operation Receive(int from) {
  return {.collective = collective::Collective::kRecv, .count = 4, .root = from};
}

Judgement JudgeOneStreamOn(const char* backend, const std::vector<RankEvidence>& evidence) {
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.backend = backend;
  setting.one_stream = true;
  const Judgement judgement = Judge(evidence, setting);
  ExpectReadable(judgement);
  return judgement;
}

Outcome OutcomeOf(const Judgement& judgement, int rank) {
  return judgement.outcomes.at(static_cast<std::size_t>(rank)).outcome;
}

TEST(Rooted, AReduceWaitsForAllOnlyAtItsRoot) {
  const auto at = [](const char* backend) {
    return JudgeOneStreamOn(backend, {History(0).Enters(Reduce(2)), History(1).Exited(3),
                                      History(2).Enters(Reduce(2))});
  };
  for (const char* backend : {"nccl", "mpi"}) {
    const Judgement judgement = at(backend);
    EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankExited) << backend;
    EXPECT_EQ(OutcomeOf(judgement, 0), Outcome::kFinished) << "on its way, by " << backend;
    EXPECT_EQ(OutcomeOf(judgement, 2), Outcome::kHung) << backend;
  }
  // gloo's is a ring.
  EXPECT_EQ(OutcomeOf(at("gloo"), 0), Outcome::kHung);
}

TEST(Rooted, ABroadcastWaitsForItsRootOnly) {
  for (const char* backend : {"nccl", "mpi", "gloo"}) {
    SCOPED_TRACE(backend);
    const Judgement leaf = JudgeOneStreamOn(
        backend,
        {History(0).Enters(Broadcast(0)), History(1).Exited(3), History(2).Enters(Broadcast(0))});
    EXPECT_EQ(leaf.findings.at(0).cause, Cause::kRankExited);
    EXPECT_EQ(OutcomeOf(leaf, 0), Outcome::kFinished);
    EXPECT_EQ(OutcomeOf(leaf, 2), Outcome::kFinished);
    const Judgement root = JudgeOneStreamOn(
        backend,
        {History(0).Exited(3), History(1).Enters(Broadcast(0)), History(2).Enters(Broadcast(0))});
    EXPECT_EQ(OutcomeOf(root, 1), Outcome::kHung);
    EXPECT_THAT(root.outcomes.at(1).evidence, HasSubstr("waiting for rank 0"));
  }
  // Of two ranks gloo's root has the other as its child, and waits for it.
  const std::vector<RankEvidence> two = {History(0).Enters(Broadcast(0)), History(1).Exited(3)};
  EXPECT_EQ(OutcomeOf(JudgeOneStreamOn("gloo", two), 0), Outcome::kHung);
  EXPECT_EQ(OutcomeOf(JudgeOneStreamOn("mpi", two), 0), Outcome::kFinished);
}

TEST(Rooted, ARootThatWaitsElsewhereIsAProof) {
  Setting setting;
  setting.backend = "mpi";
  setting.one_stream = true;
  setting.groups = {{1, "pair", {1, 2}}};
  // Its root is rank 1 of the pair, which is rank 2 of the world: there it waits for rank 0.
  const Judgement judgement = Judge(
      {History(0).Exited(3), History(1).On(1).Enters(Broadcast(1)), History(2).Enters(Barrier())},
      setting);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFailed, Outcome::kHung, Outcome::kHung));
  EXPECT_THAT(judgement.outcomes.at(1).evidence, HasSubstr("waiting for rank 2"));
}

TEST(Rooted, ABroadcastBesideABarrierHangsOnlyWithItsRoot) {
  // gloo: rank 2 calls a barrier; the root has not come yet, and will serve rank 0.
  const Judgement open =
      JudgeOneStreamOn("gloo", {History(0).Enters(Broadcast(1)), History(1),
                                History(2).Enters(Barrier()), History(3).Enters(Broadcast(1))});
  EXPECT_EQ(open.findings.at(0).cause, Cause::kCollectiveMismatch);
  EXPECT_EQ(OutcomeOf(open, 0), Outcome::kFinished);
  EXPECT_EQ(OutcomeOf(open, 2), Outcome::kHung);
  const Judgement root =
      JudgeOneStreamOn("gloo", {History(0).Enters(Broadcast(2)), History(1),
                                History(2).Enters(Barrier()), History(3).Enters(Broadcast(2))});
  EXPECT_EQ(OutcomeOf(root, 0), Outcome::kHung);
}

TEST(Effect, CallsWithoutElementsMayPass) {
  const collective::Operation empty = AllReduce(0);
  const collective::Operation gather = {.collective = collective::Collective::kAllGather,
                                        .count = 2};
  EXPECT_EQ(EffectOf(SemanticsOf("gloo"), empty, gather), Effect::kUndefined);
  EXPECT_EQ(EffectOf(SemanticsOf("gloo"), AllReduce(1), gather), Effect::kStops);
  // gloo does not count the first call of rank 1, so that the two meet in its second.
  const Judgement judgement =
      JudgeOneStreamOn("gloo", {History(0).Enters(gather), History(1).Does(empty).Enters(gather)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kCollectiveMismatch);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kFinished));
}

TEST(Missed, WhoLeftBeforeOthersFailed) {
  // gloo closes the connections of rank 1, which left one all_reduce out.
  const auto told = [](int rank) {
    return History(rank).Does(AllReduce(), 2).FailsIn(AllReduce()).Reports("Connection closed");
  };
  const Judgement judgement =
      JudgeOneStreamOn("gloo", {told(0), History(1).Does(AllReduce(), 2).Leaves(0), told(2)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kRankExited);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(OutcomesOf(judgement),
              ElementsAre(Outcome::kFailed, Outcome::kFinished, Outcome::kFailed));
  // The nearest innocent: it did all that the others did.
  const Judgement other =
      JudgeOneStreamOn("gloo", {told(0), History(1).Does(AllReduce(), 3).Leaves(0), told(2)});
  EXPECT_EQ(other.findings.at(0).cause, Cause::kRankFailed);
  EXPECT_THAT(other.findings[0].culprits, ElementsAre(0, 2));
}

TEST(Missed, OneCallMoreThanMostIsTheCallersFault) {
  const auto done = [](int rank) { return History(rank).Does(AllReduce(), 2).Leaves(0); };
  const auto calls = [](int rank) {
    return History(rank).Does(AllReduce(), 2).Enters(AllReduce());
  };
  const Judgement judgement = JudgeOneStreamOn("mpi", {done(0), done(1), calls(2)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.cause, Cause::kCollectiveMismatch);
  EXPECT_TRUE(finding.proved);
  EXPECT_THAT(finding.culprits, ElementsAre(2));
  EXPECT_THAT(finding.message, HasSubstr("rank 2 calls all_reduce 3"));
  EXPECT_THAT(finding.message, HasSubstr("which ranks 0 and 1 never called"));
  EXPECT_THAT(OutcomesOf(judgement),
              ElementsAre(Outcome::kFinished, Outcome::kFinished, Outcome::kHung));
  // As many left as call it: nobody is outvoted.
  const Judgement half = JudgeOneStreamOn("mpi", {done(0), calls(1)});
  EXPECT_EQ(half.findings.at(0).cause, Cause::kRankExited);
  EXPECT_THAT(half.findings[0].culprits, ElementsAre(0));
  // Who has not said yet is no voter.
  const Judgement early =
      JudgeOneStreamOn("mpi", {done(0), History(1).Does(AllReduce(), 2), calls(2)});
  EXPECT_EQ(early.findings.at(0).cause, Cause::kRankExited);
  // On its way out of the collective that the others completed.
  const Judgement way =
      JudgeOneStreamOn("mpi", {done(0), done(1), History(2).Does(AllReduce()).Enters(AllReduce())});
  EXPECT_THAT(way.findings, IsEmpty());
}

TEST(Missed, RanksThatWaitBehindTheCallerDoNotCallItEither) {
  // A pipeline in which rank 1 calls one all_reduce of its own. MPI keeps rank 0's messages.
  const auto waits = [](int rank) { return History(rank).Enters(Receive(rank - 1)); };
  const auto ends = [](int rank) { return History(rank).Does(Send(1)).Leaves(0); };
  const History calls = History(1).Does(Receive(0)).Enters(AllReduce());
  for (const char* backend : {"mpi", "nccl"}) {
    const Judgement judgement = JudgeOneStreamOn(backend, {ends(0), calls, waits(2), waits(3)});
    ASSERT_EQ(judgement.findings.size(), 1u) << backend;
    const Finding& finding = judgement.findings[0];
    EXPECT_EQ(finding.cause, Cause::kCollectiveMismatch);
    EXPECT_TRUE(finding.proved);
    EXPECT_THAT(finding.culprits, ElementsAre(1));
    EXPECT_EQ(finding.headline.text(),
              "rank 1 calls all_reduce 1, which rank 0 never called; it ended in order");
    EXPECT_THAT(finding.message,
                HasSubstr("ranks 2 and 3 have not called it, and wait for rank 1"));
    EXPECT_THAT(OutcomesOf(judgement),
                ElementsAre(Outcome::kFinished, Outcome::kHung, Outcome::kHung, Outcome::kHung));
  }
  // The same with the ranks numbered the other way round: whom a rank waits for first is no matter.
  const auto from_above = [](int rank) { return History(rank).Enters(Receive(rank + 1)); };
  const Judgement mirrored = JudgeOneStreamOn(
      "mpi", {from_above(0), from_above(1), History(2).Does(Receive(3)).Enters(AllReduce()),
              History(3).Does(Send(2)).Leaves(0)});
  EXPECT_EQ(mirrored.findings.at(0).cause, Cause::kCollectiveMismatch);
  EXPECT_THAT(mirrored.findings[0].culprits, ElementsAre(2));
  // Nobody left: the ring is all that is known.
  const Judgement ring =
      JudgeOneStreamOn("mpi", {History(0).Enters(Receive(1)), calls, waits(2), waits(3)});
  EXPECT_EQ(ring.findings.at(0).cause, Cause::kOrderInversion);
  // Rank 2 came to the call, too: rank 0 left it out.
  const auto comes = [](int rank) { return History(rank).Enters(AllReduce()); };
  const Judgement two = JudgeOneStreamOn("mpi", {ends(0), calls, comes(2), waits(3)});
  EXPECT_EQ(two.findings.at(0).cause, Cause::kRankExited);
  EXPECT_THAT(two.findings[0].culprits, ElementsAre(0));
  // A broadcast's leaf waits for its root alone: ranks 2 and 3 may call it once they have received.
  const Judgement leaf = JudgeOneStreamOn(
      "mpi", {ends(0), History(1).Does(Receive(0)).Enters(Broadcast(0)), waits(2), waits(3)});
  EXPECT_EQ(leaf.findings.at(0).cause, Cause::kRankExited);
  EXPECT_THAT(leaf.findings[0].culprits, ElementsAre(0));
  // Rank 0 exited before its end: that comes first, whoever calls what.
  const Judgement exited =
      JudgeOneStreamOn("mpi", {History(0).Does(Send(1)).Exited(3), calls, waits(2), waits(3)});
  EXPECT_EQ(exited.findings.at(0).cause, Cause::kRankExited);
  EXPECT_THAT(exited.findings[0].culprits, ElementsAre(0));
}

TEST(Missed, WhoLeftBehindTheCallIsNoneOfThoseWithoutIt) {
  // Leaves of a reduce go on alone. Only rank 2 left it out, whatever is on other streams.
  const auto leaf = [](int rank) { return History(rank).Does(Reduce(1)).Leaves(0); };
  const std::vector<RankEvidence> evidence = {leaf(0), History(1).Enters(Reduce(1)),
                                              History(2).Leaves(0)};
  for (const bool one_stream : {false, true}) {
    const Judgement judgement = Judge(
        evidence, {.deadline_seconds = kDeadline, .backend = "mpi", .one_stream = one_stream});
    EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankExited);
    EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(2));
  }
}

TEST(Missed, ACommunicatorThatAMemberNeverUsed) {
  Setting setting;
  setting.backend = "mpi";
  setting.one_stream = true;
  setting.groups = {{1, "three", {0, 1, 2}}};
  const auto calls = [](int rank) { return History(rank).On(1).Enters(AllReduce()); };
  const Judgement judgement =
      Judge({calls(0), History(1).Leaves(0), calls(2), History(3).Leaves(0)}, setting);
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kRankExited);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1)) << "rank 3 is no member";
}

}  // namespace
}  // namespace lockstep::verdict::finders
