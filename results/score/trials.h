// From the trials of stress runs to how often the judge was right: pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict/outcome.h"
#include "results/store/run.h"

namespace lockstep::results::score {

// Limits of the time to a finding, from the newest event of any rank: of a proof that nobody can go
// on, and of what silence told, as a multiple of the deadline.
inline constexpr double kProofSeconds = 0.05;
inline constexpr double kSilenceDeadlines = 1.1;

enum class Mark : std::uint8_t { kNotSaid, kRight, kWrong };

// One trial, marked.
struct TrialScore {
  std::string name;  // of the case
  std::string backend;
  std::string cause = {};  // that was to be found; "(any)" when not said, "(healthy)": nothing was
  bool scored = true;      // false: faults fired, and nothing says what was to be found
  bool healthy = true;     // nothing was to be found
  bool known = true;       // false: evidence is missing, `why` says which; nothing is marked
  bool found = false;      // there is a finding
  bool proved = false;     // the first finding is
  // Found when the deadline had passed: that nobody goes on was told by silence, although the cause
  // may be proved.
  bool at_deadline = false;
  Mark outcomes = Mark::kNotSaid;
  Mark cause_mark = Mark::kNotSaid;
  Mark culprits = Mark::kNotSaid;
  // The collective that the first finding names, by the journals; not said when it names none.
  Mark collective = Mark::kNotSaid;
  std::optional<double> seconds = {};  // to the finding
  bool late = false;                   // beyond its limit
  std::string why;

  bool missed() const { return known && !healthy && !found; }
  bool false_alarm() const { return healthy && found; }
  bool wrong() const;
};

// How many were right of those marked.
struct Tally {
  std::int64_t right = 0;
  std::int64_t marked = 0;
  void Add(Mark mark);
};

// Of some trials. Times are seconds, ascending.
struct ScoreRow {
  std::string backend;
  std::string cause;
  // "proved", "proved at deadline", "suspected", "missed", "unknown"; "-" of healthy trials.
  std::string certainty;
  std::int64_t trials = 0;
  std::int64_t wrong = 0;  // missed, a false alarm, or a mark that is wrong
  std::int64_t unknown = 0;
  std::int64_t faulty = 0;  // known ones in which something was to be found
  std::int64_t found = 0;   // of them
  std::int64_t healthy = 0;
  std::int64_t false_alarms = 0;
  Tally outcomes, cause_tally, culprits, collective;
  std::vector<double> seconds;
  std::int64_t late = 0;
  void Add(const TrialScore& trial);
};

struct Scoreboard {
  std::vector<ScoreRow> rows;  // by backend, cause and certainty
  // Of all trials with a finding of that certainty, without those of a simulation.
  ScoreRow proved;
  ScoreRow proved_at_deadline;
  ScoreRow suspected;
  ScoreRow total;
  std::vector<TrialScore> wrong;    // the trials that were
  std::vector<TrialScore> unknown;  // of which nothing can be said
  std::int64_t not_run = 0;         // planned, and not in the files
  std::int64_t not_scored = 0;      // in no row
};

// Where a trial went wrong, by its journals alone: the judge's word is compared with it.
// By communicator the first sequence that not all of its ranks left in order after the same call
// for the same purpose; none where all did. Ranks of the world (0) are all of the histories, those
// of another communicator the ones that called something on it. Of journals whose beginning was
// overwritten only what all of them still hold counts.
std::map<int, std::int64_t> BrokenPositions(
    const std::vector<const store::RankHistory*>& histories);

// The trials of a run, in its order; empty when it is no stress run.
std::vector<TrialScore> TrialsOf(const store::Run& run);
// How many of the run's planned cases it does not hold.
std::int64_t NotRun(const store::Run& run);

Scoreboard ScoreOf(const std::vector<TrialScore>& trials, std::int64_t not_run);

// kFail: something was missed, wrong, or a false alarm; kUnknown: evidence is missing.
verdict::Verdict VerdictOf(const Scoreboard& board);

// One line to quote: "PASS: 96 of 96 faults found, cause right in 96 of 96, …".
std::string HeadlineOf(const Scoreboard& board);
// The headline, a row a cause and certainty, then each trial that was wrong or says nothing.
std::string FormatScoreTable(const Scoreboard& board);
// {"schema": 1, "headline": …, "verdict": …, "rows": […], "wrong": […], "unknown": […]}.
std::string FormatScoreJson(const Scoreboard& board);

}  // namespace lockstep::results::score
