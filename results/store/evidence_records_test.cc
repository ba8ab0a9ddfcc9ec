// Evidence that went through a file must lead to the judgement that the run made. Journals in the
// file may have gone on meanwhile; what came later must not be judged.
#include "results/store/evidence_records.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "core/verdict/testing/history.h"
#include "results/store/store.h"

namespace lockstep::results::store {
namespace {

// A run that keeps whole journals, as they were when `later` events more had come.
store::Run RunWith(const std::vector<verdict::RankEvidence>& evidence, int later) {
  store::Run run;
  run.cases.resize(3);
  for (const verdict::RankEvidence& rank : evidence) {
    RankHistory history{rank.rank, 2, 0, rank.journal.events};
    for (int i = 0; i < later; ++i) {
      journal::JournalEvent event = history.events.back();
      ++event.index;
      event.kind = journal::EventKind::kPhase;
      event.phase = journal::Phase::kFinalize;
      history.events.push_back(event);
    }
    run.history.push_back(history);
  }
  return run;
}

std::vector<verdict::RankEvidence> ThroughAFile(const std::vector<verdict::RankEvidence>& evidence,
                                                int later) {
  store::Run run = RunWith(evidence, later);
  AddEvidence({2, 2, 7}, evidence, run);
  const std::string path = testing::TempDir() + "/evidence.h5";
  EXPECT_TRUE(WriteRun(run, path).ok());
  const Result<store::Run> read = ReadRun(path);
  EXPECT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->evidence.front().deadline_seconds, 7);
  return EvidenceOf(*read, 2);
}

void ExpectSameJudgement(const std::vector<verdict::RankEvidence>& evidence, int later = 0) {
  const verdict::Judgement before = verdict::Judge(evidence, 7);
  const verdict::Judgement after = verdict::Judge(ThroughAFile(evidence, later), 7);
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
  ExpectSameJudgement({verdict::At50(0), verdict::At50(1).Signalled(SIGKILL), verdict::At50(2)});
  ExpectSameJudgement({verdict::At50(0), verdict::After49(1).Stopped(SIGSTOP)});
  ExpectSameJudgement({verdict::At50(0), verdict::After49(1).Reports("out of luck").Exited(1)});
  ExpectSameJudgement(
      {verdict::At50(0).Silent(9), verdict::At50(1).Silent(9).Asleep("asleep in pause")});
  ExpectSameJudgement({verdict::After49(0).Leaves(0),
                       verdict::After49(1).Leaves(0).WrongData("bucket 3: 7, not 8")});
  ExpectSameJudgement({verdict::At50(0), verdict::After49(1).Idle()});
}

TEST(EvidenceRecords, WhatCameAfterTheJudgementIsNotJudged) {
  ExpectSameJudgement({verdict::At50(0), verdict::After49(1).Stopped(SIGSTOP)}, /*later=*/3);
}

// Its process still runs: only the judge was told that the program is over.
TEST(EvidenceRecords, ARankWhoseProgramIsOverHasLeft) {
  const std::vector<verdict::RankEvidence> journals = {verdict::After49(0), verdict::At50(1)};
  const std::vector<verdict::RankEvidence> judged = {verdict::After49(0).Leaves(0),
                                                     verdict::At50(1)};
  store::Run run = RunWith(journals, 1);
  AddEvidence({2, 2, 7}, judged, run);
  ASSERT_EQ(run.evidence.size(), 2u);
  EXPECT_TRUE(run.evidence[0].left);
  EXPECT_FALSE(run.evidence[1].left);
  const verdict::Judgement after = verdict::Judge(EvidenceOf(run, 2), 7);
  ASSERT_EQ(after.findings.size(), 1u);
  EXPECT_EQ(after.findings[0].cause, verdict::Cause::kRankExited);
  EXPECT_EQ(after.findings[0].culprits, std::vector<int>{0});
}

TEST(EvidenceRecords, ARankThatOnlyLeftHasLeft) {
  verdict::RankEvidence journal = verdict::At50(0), judged = verdict::At50(0);
  journal.journal.events.clear();
  judged.journal.events = {journal::JournalEvent{.kind = journal::EventKind::kExit}};
  store::Run run = RunWith({journal, verdict::At50(1)}, 0);
  AddEvidence({2, 2, 7}, {judged, verdict::At50(1)}, run);
  const std::vector<journal::JournalEvent> events = EvidenceOf(run, 2).at(0).journal.events;
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, journal::EventKind::kExit);
}

TEST(EvidenceRecords, SocketsKeepTheirCounters) {
  verdict::RankEvidence writer = verdict::At50(0).Silent(9), reader = verdict::At50(1).Silent(9);
  writer.sockets = {{.local = "10.0.0.1:1", .remote = "10.0.0.2:2", .written = 100}};
  reader.sockets = {{.local = "10.0.0.2:2", .remote = "10.0.0.1:1", .received = 52}};
  ExpectSameJudgement({writer, reader, verdict::At50(2).Silent(9)});
}

TEST(EvidenceRecords, HalfOfTheEventsAreNone) {
  const std::vector<verdict::RankEvidence> evidence = {verdict::At50(0), verdict::At50(1)};
  store::Run run = RunWith(evidence, 0);
  run.history[1].events.erase(run.history[1].events.begin());
  AddEvidence({2, 2, 7}, evidence, run);
  EXPECT_TRUE(run.evidence.empty());
  EXPECT_TRUE(EvidenceOf(run, 2).empty());
}

}  // namespace
}  // namespace lockstep::results::store
