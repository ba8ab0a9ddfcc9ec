// When calls that differ are a proof: both are entered, and no rank of the two is gone.
#include "stress/run/sighting.h"

#include <limits>

#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"

namespace lockstep::stress::run {
namespace {

verdict::Judgement Proved(const std::vector<verdict::RankEvidence>& evidence) {
  verdict::Setting setting;
  setting.deadline_seconds = std::numeric_limits<double>::infinity();
  setting.backend = "gloo";
  return verdict::Judge(evidence, setting);
}

journal::JournalEvent Call(Ticks ticks, std::uint64_t sequence, int root) {
  journal::JournalEvent event;
  event.kind = journal::EventKind::kEnqueue;
  event.ticks = ticks;
  event.sequence = sequence;
  event.nth = static_cast<std::uint32_t>(sequence + 1);
  event.collective = collective::Collective::kBroadcast;
  event.count = 4;
  event.root = root;
  return event;
}

verdict::RankEvidence Rank(int rank, std::vector<journal::JournalEvent> calls) {
  verdict::RankEvidence evidence;
  evidence.rank = rank;
  for (const journal::JournalEvent& call : calls) {
    for (const journal::EventKind kind :
         {journal::EventKind::kEnqueue, journal::EventKind::kStart, journal::EventKind::kEnd}) {
      journal::JournalEvent event = call;
      event.kind = kind;
      event.index = evidence.journal.events.size() + 1;
      evidence.journal.events.push_back(event);
    }
  }
  return evidence;
}

// Rank 1's root is another one, and both went on: nobody stands still, but it is proved.
TEST(Sighting, CallsThatDifferProveItWhenTheSecondIsEntered) {
  const std::vector<verdict::RankEvidence> evidence = {Rank(0, {Call(10, 0, 0), Call(20, 1, 0)}),
                                                       Rank(1, {Call(12, 0, 0), Call(31, 1, 1)}),
                                                       Rank(2, {Call(11, 0, 0), Call(40, 1, 0)})};
  const verdict::Judgement judgement = Proved(evidence);
  const auto sighting = SightMismatch(evidence, judgement, 50);
  ASSERT_TRUE(sighting);
  EXPECT_EQ(sighting->proved_at, 31u);
  EXPECT_EQ(sighting->seen_at, 50u);
  EXPECT_TRUE(Confirms(judgement, *sighting));
  EXPECT_FALSE(Confirms(verdict::Judgement(), *sighting));
}

TEST(Sighting, WhatIsNotEnteredByBothIsNoProof) {
  const std::vector<verdict::RankEvidence> equal = {Rank(0, {Call(10, 0, 0)}),
                                                    Rank(1, {Call(12, 0, 0)})};
  EXPECT_FALSE(SightMismatch(equal, Proved(equal), 50));
  // The finding alone is not believed: the second call is not in the journals.
  verdict::Judgement claimed = Proved(equal);
  verdict::Finding finding;
  finding.cause = verdict::Cause::kRootMismatch;
  finding.proved = true;
  finding.operation = Call(20, 1, 0);
  claimed.findings.push_back(finding);
  EXPECT_FALSE(SightMismatch(equal, claimed, 50));
  std::vector<verdict::RankEvidence> one = {Rank(0, {Call(10, 0, 0), Call(20, 1, 0)}),
                                            Rank(1, {Call(12, 0, 0)})};
  EXPECT_FALSE(SightMismatch(one, claimed, 50));
}

TEST(Sighting, ARankThatIsGoneIsProvedByAStandstillOnly) {
  std::vector<verdict::RankEvidence> evidence = {Rank(0, {Call(10, 0, 0)}),
                                                 Rank(1, {Call(12, 0, 0)})};
  evidence[1].state = verdict::ProcessState::kSignalled;
  evidence[1].signal = 9;
  EXPECT_FALSE(SightMismatch(evidence, Proved(evidence), 50));
}

}  // namespace
}  // namespace lockstep::stress::run
