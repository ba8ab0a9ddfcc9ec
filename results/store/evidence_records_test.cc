#include "results/store/evidence_records.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "core/verdict/history.h"
#include "results/store/store.h"

namespace lockstep {
namespace {

// A run that keeps whole journals, as they were when `later` events more had come.
lockstep::Run RunWith(const std::vector<RankEvidence>& evidence, int later) {
  lockstep::Run run;
  run.cases.resize(3);
  for (const RankEvidence& rank : evidence) {
    RankHistory history{rank.rank, 2, 0, rank.journal.events};
    for (int i = 0; i < later; ++i) {
      JournalEvent event = history.events.back();
      ++event.index;
      event.kind = EventKind::kPhase;
      event.phase = Phase::kFinalize;
      history.events.push_back(event);
    }
    run.history.push_back(history);
  }
  return run;
}

std::vector<RankEvidence> ThroughAFile(const std::vector<RankEvidence>& evidence, int later) {
  lockstep::Run run = RunWith(evidence, later);
  AddEvidence({2, 2, 7}, evidence, run);
  const std::string path = testing::TempDir() + "/evidence.h5";
  EXPECT_TRUE(WriteRun(run, path).ok());
  const Result<lockstep::Run> read = ReadRun(path);
  EXPECT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->evidence.front().deadline_seconds, 7);
  return EvidenceOf(*read, 2);
}

void ExpectSameJudgement(const std::vector<RankEvidence>& evidence, int later = 0) {
  const Judgement before = Judge(evidence, 7);
  const Judgement after = Judge(ThroughAFile(evidence, later), 7);
  EXPECT_EQ(before.verdict, after.verdict);
  ASSERT_EQ(before.findings.size(), after.findings.size());
  for (std::size_t i = 0; i < before.findings.size(); ++i) {
    EXPECT_EQ(before.findings[i].message, after.findings[i].message);
    EXPECT_EQ(before.findings[i].culprits, after.findings[i].culprits);
    EXPECT_EQ(before.findings[i].proved, after.findings[i].proved);
  }
  for (std::size_t i = 0; i < before.outcomes.size(); ++i) {
    EXPECT_EQ(before.outcomes[i].outcome, after.outcomes[i].outcome);
    EXPECT_EQ(before.outcomes[i].evidence, after.outcomes[i].evidence);
  }
}

TEST(EvidenceRecords, AFileLeadsToTheSameJudgement) {
  ExpectSameJudgement({At50(0), At50(1).Signalled(SIGKILL), At50(2)});
  ExpectSameJudgement({At50(0), After49(1).Stopped(SIGSTOP)});
  ExpectSameJudgement({At50(0), After49(1).Reports("out of luck").Exited(1)});
  ExpectSameJudgement({At50(0).Silent(9), At50(1).Silent(9).Asleep("asleep in pause")});
  ExpectSameJudgement({After49(0).Leaves(0), After49(1).Leaves(0).WrongData("bucket 3: 7, not 8")});
  ExpectSameJudgement({At50(0), After49(1).Idle()});
}

TEST(EvidenceRecords, WhatCameAfterTheJudgementIsNotJudged) {
  ExpectSameJudgement({At50(0), After49(1).Stopped(SIGSTOP)}, /*later=*/3);
}

// Its process still runs: only the judge was told that the program is over.
TEST(EvidenceRecords, ARankWhoseProgramIsOverHasLeft) {
  const std::vector<RankEvidence> journals = {After49(0), At50(1)};
  const std::vector<RankEvidence> judged = {After49(0).Leaves(0), At50(1)};
  lockstep::Run run = RunWith(journals, 1);
  AddEvidence({2, 2, 7}, judged, run);
  ASSERT_EQ(run.evidence.size(), 2u);
  EXPECT_TRUE(run.evidence[0].left);
  EXPECT_FALSE(run.evidence[1].left);
  const Judgement after = Judge(EvidenceOf(run, 2), 7);
  ASSERT_EQ(after.findings.size(), 1u);
  EXPECT_EQ(after.findings[0].cause, "rank_exited");
  EXPECT_EQ(after.findings[0].culprits, std::vector<int>{0});
}

TEST(EvidenceRecords, ARankThatOnlyLeftHasLeft) {
  RankEvidence journal = At50(0), judged = At50(0);
  journal.journal.events.clear();
  judged.journal.events = {JournalEvent{.kind = EventKind::kExit}};
  lockstep::Run run = RunWith({journal, At50(1)}, 0);
  AddEvidence({2, 2, 7}, {judged, At50(1)}, run);
  const std::vector<JournalEvent> events = EvidenceOf(run, 2).at(0).journal.events;
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kExit);
}

TEST(EvidenceRecords, SocketsKeepTheirCounters) {
  RankEvidence writer = At50(0).Silent(9), reader = At50(1).Silent(9);
  writer.sockets = {{.local = "10.0.0.1:1", .remote = "10.0.0.2:2", .written = 100}};
  reader.sockets = {{.local = "10.0.0.2:2", .remote = "10.0.0.1:1", .received = 52}};
  ExpectSameJudgement({writer, reader, At50(2).Silent(9)});
}

TEST(EvidenceRecords, HalfOfTheEventsAreNone) {
  const std::vector<RankEvidence> evidence = {At50(0), At50(1)};
  lockstep::Run run = RunWith(evidence, 0);
  run.history[1].events.erase(run.history[1].events.begin());
  AddEvidence({2, 2, 7}, evidence, run);
  EXPECT_TRUE(run.evidence.empty());
  EXPECT_TRUE(EvidenceOf(run, 2).empty());
}

}  // namespace
}  // namespace lockstep
