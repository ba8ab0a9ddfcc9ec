// Who is lost, who is to blame and when ranks resumed, from literal journals of two generations.
#include "stress/cases/recovery.h"

#include <cmath>

#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"

namespace lockstep::stress::cases {
namespace {

journal::JournalEvent Event(journal::EventKind kind, std::uint64_t index,
                            std::uint16_t communicator, std::uint64_t sequence) {
  journal::JournalEvent event;
  event.kind = kind;
  event.index = index;
  event.ticks = 100 * index;
  event.communicator = communicator;
  event.sequence = sequence;
  event.nth = static_cast<std::uint32_t>(sequence + 1);
  event.count = 4;
  return event;
}

verdict::RankOutcome Of(int rank, verdict::Outcome outcome) {
  verdict::RankOutcome made;
  made.rank = rank;
  made.outcome = outcome;
  return made;
}

// Waits in the second collective of generation 1, or has ended it.
verdict::RankEvidence Rank(int rank, bool waits) {
  verdict::RankEvidence evidence;
  evidence.rank = rank;
  std::uint64_t index = 0;
  const auto add = [&](journal::EventKind kind, std::uint16_t communicator,
                       std::uint64_t sequence) {
    evidence.journal.events.push_back(Event(kind, ++index, communicator, sequence));
  };
  add(journal::EventKind::kEnqueue, 0, 7);
  add(journal::EventKind::kStart, 0, 7);
  add(journal::EventKind::kError, 0, 7);
  for (std::uint64_t sequence = 0; sequence < 2; ++sequence) {
    add(journal::EventKind::kEnqueue, 1, sequence);
    add(journal::EventKind::kStart, 1, sequence);
    if (sequence == 0 || !waits) add(journal::EventKind::kEnd, 1, sequence);
  }
  return evidence;
}

verdict::Setting Proofs(const Generation& generation) {
  verdict::Setting setting;
  setting.deadline_seconds = INFINITY;
  setting.backend = "gloo";
  setting.one_stream = true;
  AddGeneration(generation, setting);
  return setting;
}

std::vector<verdict::RankEvidence> Three(bool waits) {
  std::vector<verdict::RankEvidence> evidence = {Rank(0, waits), Rank(1, false), Rank(2, waits)};
  evidence[1].state = verdict::ProcessState::kSignalled;
  evidence[1].signal = 9;
  return evidence;
}

// A rank that was started anew may take longer to begin than an abort may take.
TEST(Recovery, WhoHasNotBegunToConnectIsInNoLibrary) {
  verdict::RankEvidence rank;
  EXPECT_TRUE(StillStarts(rank)) << "nothing is journaled yet";
  rank.journal.events.push_back(Event(journal::EventKind::kPhase, 1, 0, 0));
  EXPECT_TRUE(StillStarts(rank));
  rank.state = verdict::ProcessState::kLost;
  EXPECT_FALSE(StillStarts(rank)) << "what it does is not known";
  rank.state = verdict::ProcessState::kRunning;
  rank.journal.events.push_back(Event(journal::EventKind::kPhase, 2, 0, 0));
  rank.journal.events.back().phase = journal::Phase::kConnect;
  EXPECT_FALSE(StillStarts(rank));
}

TEST(Generation, ThoseThatWereLostBeforeAreNobodysCulprits) {
  const Generation generation = {1, {0, 2}, {3, 3, 3}};
  const verdict::Judgement judgement =
      verdict::Judge(OfGeneration(Three(false), generation), Proofs(generation));
  EXPECT_TRUE(judgement.findings.empty());
  EXPECT_EQ(judgement.outcomes[1].outcome, verdict::Outcome::kFinished);
  // The same evidence without it: rank 1 was killed.
  EXPECT_FALSE(verdict::Judge(Three(false), Proofs({})).findings.empty());
}

TEST(Generation, AMemberThatIsLostIsFound) {
  const Generation generation = {1, {0, 1, 2}, {3, 3, 3}};
  const verdict::Judgement judgement =
      verdict::Judge(OfGeneration(Three(true), generation), Proofs(generation));
  ASSERT_FALSE(judgement.findings.empty());
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kRankKilled);
  EXPECT_EQ(judgement.findings[0].culprits, std::vector<int>{1});
}

// Two iterations of the new communicator; rank 1 was killed, and is no member.
verdict::RankEvidence Trains(int rank) {
  verdict::History history(rank);
  history.On(1);
  for (int i = 2; i < 4; ++i) {
    history.Iteration(i).In(journal::Phase::kBackward).As(journal::Purpose::kBucket);
    history.Does(verdict::AllReduce());
  }
  history.Iteration(4).As(journal::Purpose::kBucket);
  if (rank == 2) return history.Enters(verdict::AllReduce());
  return history.FailsIn(verdict::AllReduce()).Reports("no route").Leaves(4);
}

TEST(Generation, ThoseThatWereLostBeforeLackNoInputs) {
  const auto judged = [](const Generation& generation) {
    const std::vector<verdict::RankEvidence> evidence = {Trains(0), verdict::History(1).Leaves(0),
                                                         Trains(2)};
    return verdict::Judge(OfGeneration(evidence, generation), Proofs(generation)).findings;
  };
  const auto findings = judged({1, {0, 2}, {0, 0, 0}});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cause, verdict::Cause::kRankFailed);
  EXPECT_EQ(findings[0].culprits, std::vector<int>{0});
  // A member that has no more inputs is to blame.
  const auto member = judged({1, {0, 1, 2}, {0, 0, 0}});
  ASSERT_FALSE(member.empty());
  EXPECT_EQ(member[0].cause, verdict::Cause::kUnevenInputs);
  EXPECT_EQ(member[0].culprits, std::vector<int>{1});
}

TEST(Recovery, WhoIsGoneStoppedOrBlamedForSilenceIsLost) {
  verdict::Judgement failure;
  failure.outcomes = {Of(0, verdict::Outcome::kHung), Of(1, verdict::Outcome::kFailed),
                      Of(2, verdict::Outcome::kFailed), Of(3, verdict::Outcome::kStopped),
                      Of(4, verdict::Outcome::kHung)};
  verdict::Finding finding;
  finding.cause = verdict::Cause::kRankBusy;
  finding.culprits = {4};
  failure.findings = {finding};
  EXPECT_EQ(LostIn(failure, {false, false, true, false, false}), (std::vector<int>{2, 3, 4}));
  failure.findings[0].proved = true;  // of a mismatch: those ranks are there
  EXPECT_EQ(LostIn(failure, {false, false, true, false, false}), (std::vector<int>{2, 3}));
}

TEST(Recovery, TheFirstCollectiveOfAllMembersIsTheResumption) {
  const Generation generation = {1, {0, 2}, {3, 3, 3}};
  std::vector<journal::Journal> journals = {Rank(0, true).journal, {}, Rank(2, true).journal};
  EXPECT_EQ(ResumedAt(journals, generation), 600u);
  journals[2].events.resize(5);
  EXPECT_FALSE(ResumedAt(journals, generation));
}

TEST(Recovery, TheFaultIsTheNewestSinceTheLastRecovery) {
  std::vector<verdict::RankEvidence> evidence = {Rank(0, true)};
  evidence[0].journal.events.push_back(Event(journal::EventKind::kFault, 20, 0, 0));
  evidence[0].journal.events.push_back(Event(journal::EventKind::kDeath, 21, 0, 0));
  EXPECT_EQ(FaultTicks(evidence, {0, 1500}, 0), 2000u);
  EXPECT_EQ(FaultTicks(evidence, {}, 2050), 2100u);  // nobody injected it
  EXPECT_EQ(FaultTicks(evidence, {}, 3000), 0u);
}

TEST(Recovery, TheCaseHasTheFindingsOfItsFailuresAndTheOutcomesOfTheEnd) {
  verdict::Judgement last;
  last.outcomes = {Of(0, verdict::Outcome::kFinished), Of(1, verdict::Outcome::kFinished)};
  EXPECT_EQ(OutcomeOf(std::vector<Recovery>()), "none");
  Recovery recovery;
  recovery.lost = {1};
  recovery.members = {0};
  recovery.outcome = scenario::RecoveryOutcome::kResumed;
  recovery.failure.outcomes = {Of(0, verdict::Outcome::kFailed), Of(1, verdict::Outcome::kKilled)};
  recovery.failure.findings.resize(1);
  recovery.failure.findings[0].cause = verdict::Cause::kRankKilled;
  verdict::Judgement all = WithRecoveries(last, {recovery});
  EXPECT_EQ(all.outcomes[0].outcome, verdict::Outcome::kFinished);
  EXPECT_EQ(all.outcomes[1].outcome, verdict::Outcome::kKilled);
  ASSERT_EQ(all.findings.size(), 1u);
  EXPECT_EQ(OutcomeOf({recovery}), "resumed");
  recovery.outcome = scenario::RecoveryOutcome::kAbortHung;
  recovery.finding = verdict::Finding();
  recovery.finding->cause = verdict::Cause::kAbortHung;
  all = WithRecoveries(last, {recovery});
  EXPECT_EQ(all.outcomes[0].outcome, verdict::Outcome::kFailed);
  ASSERT_EQ(all.findings.size(), 2u);
  EXPECT_EQ(all.findings[0].cause, verdict::Cause::kAbortHung);
}

}  // namespace
}  // namespace lockstep::stress::cases
