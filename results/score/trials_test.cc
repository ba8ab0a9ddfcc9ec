// Literal trials, each with one thing right or wrong, and the mark that each must get. The second
// half gives the comparison of histories pairs that differ in one call.
#include "results/score/trials.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/journal/purpose.h"

namespace lockstep::results::score {
namespace {

// In a TEST, Run alone is a member of testing::Test.
using StoredRun = store::Run;

constexpr const char* kPlan = R"({"deadline_seconds": 5})";

// Rank 1 was killed, which is found at once, by whom and in which collective.
store::CaseRecord KilledRank() {
  store::CaseRecord record;
  record.name = "isolation/kill";
  record.backend = "gloo";
  record.ranks = 2;
  store::Trial trial;
  trial.expected_outcomes = "hung|failed,killed";
  trial.expected_cause = "rank_killed";
  trial.expected_culprits = {1};
  trial.faults = trial.faults_fired = 1;
  trial.detected_after_seconds = 0.01;
  trial.communicator = 0;
  trial.sequence = 1;
  record.trial = trial;
  verdict::Judgement& judgement = record.judgement;
  judgement.verdict = verdict::Verdict::kPass;
  judgement.outcomes.resize(2);
  judgement.outcomes[0].outcome = verdict::Outcome::kHung;
  judgement.outcomes[1].rank = 1;
  judgement.outcomes[1].outcome = verdict::Outcome::kKilled;
  judgement.findings = {{verdict::Cause::kRankKilled, {1}, true, "", ""}};
  return record;
}

store::CaseRecord Healthy() {
  store::CaseRecord record = KilledRank();
  record.trial = store::Trial{};
  record.trial->expected_outcomes = "finished,finished";
  record.judgement.findings.clear();
  for (verdict::RankOutcome& rank : record.judgement.outcomes)
    rank.outcome = verdict::Outcome::kFinished;
  return record;
}

journal::JournalEvent Event(journal::EventKind kind, std::uint64_t sequence, std::int64_t count = 8,
                            std::uint16_t communicator = 0) {
  journal::JournalEvent event;
  event.kind = kind;
  event.sequence = sequence;
  event.count = count;
  event.communicator = communicator;
  return event;
}

// A rank that left `whole` collectives in order and entered one more if `open`.
store::RankHistory History(int rank, std::uint64_t whole, bool open) {
  store::RankHistory history;
  history.rank = rank;
  for (std::uint64_t i = 0; i < whole; ++i) {
    history.events.push_back(Event(journal::EventKind::kEnqueue, i));
    history.events.push_back(Event(journal::EventKind::kEnd, i));
  }
  if (open) history.events.push_back(Event(journal::EventKind::kEnqueue, whole));
  return history;
}

Scoreboard Score(store::CaseRecord record, std::vector<store::RankHistory> history = {}) {
  StoredRun run;
  run.plan_text = kPlan;
  run.cases = {std::move(record)};
  run.history = std::move(history);
  return ScoreOf(TrialsOf(run), NotRun(run));
}

TEST(Score, AKilledRankThatWasFoundIsRight) {
  const Scoreboard board = Score(KilledRank(), {History(0, 1, true), History(1, 1, false)});
  EXPECT_EQ(VerdictOf(board), verdict::Verdict::kPass);
  ASSERT_EQ(board.rows.size(), 1u);
  const ScoreRow& row = board.rows[0];
  EXPECT_EQ(row.cause, "rank_killed");
  EXPECT_EQ(row.certainty, "proved");
  EXPECT_EQ(std::pair(row.found, row.faulty), std::pair(std::int64_t{1}, std::int64_t{1}));
  for (const Tally& tally : {row.outcomes, row.cause_tally, row.culprits, row.collective}) {
    EXPECT_EQ(std::pair(tally.right, tally.marked), std::pair(std::int64_t{1}, std::int64_t{1}));
  }
  EXPECT_EQ(row.seconds, std::vector<double>{0.01});
  EXPECT_EQ(row.late, 0);
}

TEST(Score, WhatIsWrongIsMarkedAlone) {
  const std::vector<store::RankHistory> history = {History(0, 1, true), History(1, 1, false)};
  store::CaseRecord cause = KilledRank(), culprit = KilledRank(), outcome = KilledRank();
  store::CaseRecord collective = KilledRank(), missed = KilledRank();
  cause.judgement.findings[0].cause = verdict::Cause::kRankStopped;
  culprit.judgement.findings[0].culprits = {0};
  outcome.judgement.outcomes[0].outcome = verdict::Outcome::kFinished;
  collective.trial->sequence = 0;
  missed.judgement.findings.clear();
  const std::pair<store::CaseRecord, std::string> wrong[] = {{cause, "wrong cause"},
                                                             {culprit, "wrong culprits"},
                                                             {outcome, "wrong outcomes"},
                                                             {collective, "wrong collective"},
                                                             {missed, "missed"}};
  for (const auto& [record, what] : wrong) {
    const Scoreboard board = Score(record, history);
    EXPECT_EQ(VerdictOf(board), verdict::Verdict::kFail) << what;
    const auto json = nlohmann::json::parse(FormatScoreJson(board));
    ASSERT_EQ(json["wrong"].size(), 1u) << what;
    EXPECT_EQ(json["wrong"][0]["what"], what);
    EXPECT_EQ(board.rows[0].wrong, 1) << what;
    EXPECT_NE(FormatScoreTable(board).find(what), std::string::npos) << what;
  }
  EXPECT_EQ(Score(missed, history).rows[0].certainty, "missed");
}

TEST(Score, AFindingOfAHealthyRunIsAFalseAlarm) {
  EXPECT_EQ(VerdictOf(Score(Healthy())), verdict::Verdict::kPass);
  store::CaseRecord alarm = Healthy();
  alarm.judgement.findings = {{verdict::Cause::kRankBusy, {0}, false, "", ""}};
  const Scoreboard board = Score(alarm);
  EXPECT_EQ(VerdictOf(board), verdict::Verdict::kFail);
  EXPECT_EQ(board.total.false_alarms, 1);
  EXPECT_EQ(board.total.faulty, 0);
}

// Nothing says what the fault was to lead to: neither a finding nor none is right or wrong.
TEST(Score, AFaultWithoutAnExpectationIsNotScored) {
  store::CaseRecord found = KilledRank();
  found.trial->expected_outcomes.clear();
  found.trial->expected_cause.clear();
  found.trial->expected_culprits.clear();
  const Scoreboard alone = Score(found);
  EXPECT_EQ(alone.total.false_alarms, 0);
  EXPECT_EQ(alone.total.trials, 0);
  EXPECT_EQ(alone.not_scored, 1);
  EXPECT_EQ(VerdictOf(alone), verdict::Verdict::kUnknown);
  store::CaseRecord missed = found;
  missed.judgement.findings.clear();
  StoredRun run;
  run.plan_text = kPlan;
  run.cases = {Healthy(), found, missed};
  const Scoreboard board = ScoreOf(TrialsOf(run), NotRun(run));
  EXPECT_EQ(board.total.healthy, 1);
  EXPECT_EQ(VerdictOf(board), verdict::Verdict::kPass);
  EXPECT_NE(HeadlineOf(board).find("2 with faults and no [expect] not scored"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(FormatScoreJson(board))["not_scored"], 2);
}

TEST(Score, AFindingBeforeTheFaultIsAFalseAlarmToo) {
  store::CaseRecord early = KilledRank();
  early.judgement.verdict = verdict::Verdict::kUnknown;
  early.trial->faults_fired = 0;
  EXPECT_EQ(Score(early).total.false_alarms, 1);
  early.judgement.findings.clear();
  const Scoreboard silent = Score(early);
  EXPECT_EQ(silent.total.false_alarms, 0);
  EXPECT_EQ(silent.total.unknown, 1);
  EXPECT_EQ(VerdictOf(silent), verdict::Verdict::kUnknown);
}

TEST(Score, WhatWasPlannedAndNotRunIsMissing) {
  StoredRun run;
  run.plan_text = R"({"deadline_seconds": 5, "cases": [{}, {}, {}]})";
  run.cases = {Healthy()};
  EXPECT_EQ(NotRun(run), 2);
  EXPECT_EQ(VerdictOf(ScoreOf(TrialsOf(run), NotRun(run))), verdict::Verdict::kUnknown);
}

TEST(Score, LateIsCountedByTheLimitOfItsCertainty) {
  store::CaseRecord record = KilledRank();
  record.trial->communicator = -1;
  for (const auto& [proved, seconds, late] : {std::tuple(true, 0.049, 0),
                                              {true, 0.051, 1},
                                              {true, 5.2, 0},
                                              {true, 5.51, 1},
                                              {false, 5.49, 0},
                                              {false, 5.51, 1}}) {
    record.judgement.findings[0].proved = proved;
    record.trial->detected_after_seconds = seconds;
    const Scoreboard board = Score(record);
    EXPECT_EQ(board.rows[0].late, late) << seconds;
    EXPECT_EQ(board.proved.trials, proved && seconds < 5 ? 1 : 0) << seconds;
    EXPECT_EQ(board.proved_at_deadline.trials, proved && seconds >= 5 ? 1 : 0) << seconds;
  }
}

TEST(Score, QuantilesAreShownAsTheCountSupportsThem) {
  StoredRun run;
  run.plan_text = kPlan;
  for (int i = 0; i < 99; ++i) {
    run.cases.push_back(KilledRank());
    run.cases.back().trial->communicator = -1;
  }
  auto json = nlohmann::json::parse(FormatScoreJson(ScoreOf(TrialsOf(run), 0)));
  EXPECT_TRUE(json["rows"][0]["seconds_p99"].is_null());
  EXPECT_NEAR(json["rows"][0]["seconds_p50"].get<double>(), 0.01, 1e-9);
  run.cases.push_back(run.cases.back());
  run.cases.back().trial->detected_after_seconds = 0.03;
  json = nlohmann::json::parse(FormatScoreJson(ScoreOf(TrialsOf(run), 0)));
  EXPECT_TRUE(json["rows"][0]["seconds_p99"].is_number());
  EXPECT_NEAR(json["rows"][0]["seconds_max"].get<double>(), 0.03, 1e-9);
}

std::map<int, std::int64_t> Broken(const std::vector<store::RankHistory>& histories) {
  std::vector<const store::RankHistory*> pointers;
  for (const store::RankHistory& history : histories) pointers.push_back(&history);
  return BrokenPositions(pointers);
}

TEST(BrokenPositions, TheFirstThatNotAllLeftAlike) {
  using Positions = std::map<int, std::int64_t>;
  EXPECT_EQ(Broken({History(0, 3, false), History(1, 3, false)}), Positions{});
  EXPECT_EQ(Broken({History(0, 3, true), History(1, 3, true)}), (Positions{{0, 3}}));
  EXPECT_EQ(Broken({History(0, 3, false), History(1, 2, true)}), (Positions{{0, 2}}));
  EXPECT_EQ(Broken({History(0, 1, true), History(1, 0, false)}), (Positions{{0, 0}}));
  store::RankHistory different = History(1, 3, false);
  different.events[2].count = different.events[3].count = 9;
  EXPECT_EQ(Broken({History(0, 3, false), different}), (Positions{{0, 1}}));
}

TEST(BrokenPositions, TheSameCallForAnotherPurposeIsAnother) {
  const auto with = [](int rank, journal::Purpose purpose) {
    store::RankHistory history = History(rank, 3, false);
    history.events[2].value = history.events[3].value = journal::PackAnnotation({purpose, 0, rank});
    return history;
  };
  const store::RankHistory alive = with(0, journal::Purpose::kJoinAlive);
  EXPECT_EQ(Broken({alive, with(1, journal::Purpose::kBarrier)}),
            (std::map<int, std::int64_t>{{0, 1}}));
  EXPECT_TRUE(Broken({alive, with(1, journal::Purpose::kJoinAlive)}).empty());
  EXPECT_TRUE(Broken({alive, with(1, journal::Purpose::kStep)}).empty());
  EXPECT_TRUE(
      Broken({with(0, journal::Purpose::kBucket), with(1, journal::Purpose::kJoinShadowBucket)})
          .empty());
}

TEST(BrokenPositions, ACommunicatorIsOfThoseWhoCalledOnIt) {
  store::RankHistory pair = History(0, 2, false);
  pair.events.push_back(Event(journal::EventKind::kEnqueue, 0, 8, 3));
  EXPECT_EQ(Broken({pair, History(1, 2, false)}), (std::map<int, std::int64_t>{{3, 0}}));
  pair.events.push_back(Event(journal::EventKind::kEnd, 0, 8, 3));
  EXPECT_TRUE(Broken({pair, History(1, 2, false)}).empty());
}

TEST(BrokenPositions, WhatWasOverwrittenIsNoDifference) {
  store::RankHistory overwritten = History(0, 4, true);
  overwritten.events.erase(overwritten.events.begin(), overwritten.events.begin() + 4);
  EXPECT_EQ(Broken({overwritten, History(1, 4, false)}), (std::map<int, std::int64_t>{{0, 0}}));
  overwritten.missed = 4;
  EXPECT_EQ(Broken({overwritten, History(1, 4, false)}), (std::map<int, std::int64_t>{{0, 4}}));
}

}  // namespace
}  // namespace lockstep::results::score
