// Marks every trial of a stress run against what its scenario expected, and sums the marks up by
// backend, cause and certainty. Only the stored run is read: expectation, judgement, histories.
#include "results/score/trials.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

namespace lockstep::results::score {
namespace {

constexpr std::string_view kAnyCause = "(any)";
constexpr std::string_view kHealthy = "(healthy)";

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Mark MarkOf(bool right) { return right ? Mark::kRight : Mark::kWrong; }

bool Allows(std::string_view allowed, std::string_view outcome) {
  const auto words = Split(allowed, '|');
  return std::find(words.begin(), words.end(), outcome) != words.end();
}

// Whether every rank may finish, and no cause is named.
bool ExpectsHealth(const store::Trial& trial) {
  if (!trial.expected_cause.empty() || !trial.expected_culprits.empty()) return false;
  const auto ranks = Split(trial.expected_outcomes, ',');
  return std::all_of(ranks.begin(), ranks.end(),
                     [](std::string_view allowed) { return Allows(allowed, "finished"); });
}

// With faults, what is right is known from the scenario alone.
bool IsScored(const store::Trial& trial) {
  return trial.faults_fired == 0 || !trial.expected_outcomes.empty() ||
         !trial.expected_cause.empty() || !trial.expected_culprits.empty();
}

Mark MarkOutcomes(const store::Trial& trial, const verdict::Judgement& judgement) {
  const auto expected = Split(trial.expected_outcomes, ',');
  if (expected.empty()) return Mark::kNotSaid;
  if (expected.size() != judgement.outcomes.size()) return Mark::kWrong;
  for (const verdict::RankOutcome& rank : judgement.outcomes) {
    if (rank.rank < 0 || rank.rank >= std::ssize(expected)) return Mark::kWrong;
    const std::string_view allowed = expected[static_cast<std::size_t>(rank.rank)];
    if (!Allows(allowed, verdict::NameOf(rank.outcome))) return Mark::kWrong;
  }
  return Mark::kRight;
}

Mark MarkCulprits(const store::Trial& trial, const verdict::Finding& finding) {
  if (trial.expected_culprits.empty()) return Mark::kNotSaid;
  std::vector<int> expected = trial.expected_culprits;
  std::vector<int> found = finding.culprits;
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  return MarkOf(expected == found);
}

Mark MarkCollective(const store::Run& run, std::size_t index, const store::Trial& trial) {
  if (trial.communicator < 0) return Mark::kNotSaid;
  std::vector<const store::RankHistory*> histories;
  for (const store::RankHistory& history : run.history) {
    if (history.lifetime == static_cast<int>(index)) histories.push_back(&history);
  }
  if (histories.empty()) return Mark::kNotSaid;
  const auto broken = BrokenPositions(histories);
  const auto position = broken.find(trial.communicator);
  return MarkOf(position != broken.end() && position->second == trial.sequence);
}

double DeadlineOf(const store::Run& run) {
  const auto plan = nlohmann::json::parse(run.plan_text, nullptr, false);
  const bool known =
      plan.is_object() && plan.contains("deadline_seconds") && plan["deadline_seconds"].is_number();
  return known ? plan["deadline_seconds"].get<double>() : std::numeric_limits<double>::infinity();
}

TrialScore ScoreTrial(const store::Run& run, std::size_t index, double deadline) {
  const store::CaseRecord& record = run.cases[index];
  const store::Trial& trial = *record.trial;
  const verdict::Judgement& judgement = record.judgement;
  TrialScore score{.name = record.name,
                   .backend = record.backend,
                   .scored = IsScored(trial),
                   .healthy = ExpectsHealth(trial),
                   .found = !judgement.findings.empty(),
                   .why = trial.why};
  // What is found before any fault was injected is found where nothing is.
  const bool too_soon = score.found && trial.faults > 0 && trial.faults_fired == 0;
  score.healthy = score.healthy || too_soon;
  score.known = record.judgement.verdict != verdict::Verdict::kUnknown || too_soon;
  score.cause = score.healthy                  ? kHealthy
                : trial.expected_cause.empty() ? kAnyCause
                                               : std::string_view(trial.expected_cause);
  if (!score.known) return score;
  score.outcomes = MarkOutcomes(trial, judgement);
  if (!score.found) return score;
  const verdict::Finding& finding = judgement.findings.front();
  score.proved = finding.proved;
  if (!trial.expected_cause.empty()) {
    score.cause_mark = MarkOf(finding.cause.name() == trial.expected_cause);
  }
  score.culprits = MarkCulprits(trial, finding);
  score.collective = MarkCollective(run, index, trial);
  if (std::isfinite(trial.detected_after_seconds)) {
    score.seconds = trial.detected_after_seconds;
    score.at_deadline = *score.seconds >= deadline;
    const bool at_once = score.proved && !score.at_deadline;
    const double limit = at_once ? kProofSeconds : kSilenceDeadlines * deadline;
    score.late = *score.seconds > limit;
  }
  return score;
}

std::string CertaintyOf(const TrialScore& trial) {
  if (!trial.known) return "unknown";
  if (trial.found && trial.proved) return trial.at_deadline ? "proved at deadline" : "proved";
  if (trial.found) return "suspected";
  return trial.healthy ? "-" : "missed";
}

}  // namespace

bool TrialScore::wrong() const {
  if (!known) return false;
  const Mark marks[] = {outcomes, cause_mark, culprits, collective};
  const bool mark_wrong =
      std::any_of(std::begin(marks), std::end(marks), [](Mark m) { return m == Mark::kWrong; });
  return missed() || false_alarm() || mark_wrong;
}

void Tally::Add(Mark mark) {
  if (mark == Mark::kNotSaid) return;
  ++marked;
  if (mark == Mark::kRight) ++right;
}

void ScoreRow::Add(const TrialScore& trial) {
  ++trials;
  wrong += trial.wrong();
  if (!trial.known) {
    ++unknown;
    return;
  }
  if (trial.healthy) {
    ++healthy;
    if (trial.found) ++false_alarms;
  } else {
    ++faulty;
    if (trial.found) ++found;
  }
  outcomes.Add(trial.outcomes);
  if (trial.healthy) return;  // what a false alarm says is wrong in any case
  cause_tally.Add(trial.cause_mark);
  culprits.Add(trial.culprits);
  collective.Add(trial.collective);
  if (trial.late) ++late;
  if (!trial.seconds) return;
  seconds.insert(std::upper_bound(seconds.begin(), seconds.end(), *trial.seconds), *trial.seconds);
}

std::vector<TrialScore> TrialsOf(const store::Run& run) {
  std::vector<TrialScore> trials;
  const double deadline = DeadlineOf(run);
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    if (run.cases[i].trial) trials.push_back(ScoreTrial(run, i, deadline));
  }
  return trials;
}

std::int64_t NotRun(const store::Run& run) {
  const auto plan = nlohmann::json::parse(run.plan_text, nullptr, false);
  if (!plan.is_object() || !plan.contains("cases") || !plan["cases"].is_array()) return 0;
  const auto planned = static_cast<std::int64_t>(plan["cases"].size());
  return std::max<std::int64_t>(0, planned - std::ssize(run.cases));
}

Scoreboard ScoreOf(const std::vector<TrialScore>& trials, std::int64_t not_run) {
  Scoreboard board;
  board.not_run = not_run;
  std::map<std::tuple<std::string, std::string, std::string>, ScoreRow> rows;
  for (const TrialScore& trial : trials) {
    if (!trial.scored) {
      ++board.not_scored;
      continue;
    }
    ScoreRow& row = rows[{trial.backend, trial.cause, CertaintyOf(trial)}];
    row.backend = trial.backend;
    row.cause = trial.cause;
    row.certainty = CertaintyOf(trial);
    row.Add(trial);
    board.total.Add(trial);
    // Virtual time says nothing of how soon something is found.
    const bool real = !trial.backend.starts_with("sim");
    if (real && trial.known && trial.found) {
      ScoreRow& certainty = !trial.proved       ? board.suspected
                            : trial.at_deadline ? board.proved_at_deadline
                                                : board.proved;
      certainty.Add(trial);
    }
    if (trial.wrong()) board.wrong.push_back(trial);
    if (!trial.known) board.unknown.push_back(trial);
  }
  for (auto& [key, row] : rows) board.rows.push_back(std::move(row));
  return board;
}

verdict::Verdict VerdictOf(const Scoreboard& board) {
  if (!board.wrong.empty()) return verdict::Verdict::kFail;
  const bool all = board.unknown.empty() && board.not_run == 0 && board.total.trials > 0;
  return all ? verdict::Verdict::kPass : verdict::Verdict::kUnknown;
}

}  // namespace lockstep::results::score
