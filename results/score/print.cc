// The scoreboard's table and JSON. A percentile is shown only where there are trials enough to
// support it (core/stats); trials beyond the first 30 wrong ones are counted.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/named_members.h"
#include "core/base/units.h"
#include "core/base/version.h"
#include "core/base/wrap.h"
#include "core/stats/stats.h"
#include "results/report/findings.h"
#include "results/report/grid.h"
#include "results/score/trials.h"

namespace lockstep::results::score {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownTrials = 30;
std::optional<double> Percentile(const ScoreRow& row, double p) {
  if (row.seconds.empty() || !stats::QuantileIsSupported(row.seconds.size(), p))
    return std::nullopt;
  return stats::Quantile(row.seconds, p);
}

std::optional<double> Longest(const ScoreRow& row) {
  if (row.seconds.empty()) return std::nullopt;
  return row.seconds.back();
}

std::string Time(const std::optional<double>& seconds) {
  return seconds ? FormatDuration(*seconds * 1e9) : "-";
}

// Tallies of culprits and the like are in the JSON: what was wrong is told below the table.
std::string TableOf(const Scoreboard& board) {
  using report::Grid;
  Grid grid;
  grid.AddColumns(Grid::Align::kLeft, {"cause", "certainty"});
  grid.AddColumns(Grid::Align::kRight, {"trials", "wrong", "p50", "max", "late"});
  std::string_view backend;
  for (const ScoreRow& row : board.rows) {
    if (row.backend != backend) grid.AddHeading(row.backend);
    backend = row.backend;
    grid.AddRow({row.cause, row.certainty, std::to_string(row.trials), std::to_string(row.wrong),
                 Time(Percentile(row, 0.5)), Time(Longest(row)), std::to_string(row.late)});
  }
  // Proofs, suspicions and virtual time have no common distribution.
  grid.AddHeading("all");
  grid.AddRow({"", "", std::to_string(board.total.trials), std::to_string(board.total.wrong), "-",
               "-", std::to_string(board.total.late)});
  return grid.Format(kTerminalColumns);
}

std::string WhatIsWrong(const TrialScore& trial) {
  if (trial.false_alarm()) return "a false alarm";
  if (trial.missed()) return "missed";
  std::vector<std::string> parts;
  if (trial.outcomes == Mark::kWrong) parts.push_back("outcomes");
  if (trial.cause_mark == Mark::kWrong) parts.push_back("cause");
  if (trial.culprits == Mark::kWrong) parts.push_back("culprits");
  if (trial.collective == Mark::kWrong) parts.push_back("collective");
  return fmt::format("wrong {}", fmt::join(parts, ", "));
}

std::string ListOf(const std::vector<TrialScore>& trials, bool wrong) {
  std::string text;
  for (std::size_t i = 0; i < std::min(trials.size(), kShownTrials); ++i) {
    const TrialScore& trial = trials[i];
    text += fmt::format("  {} ({}): {}: {}\n", trial.name, trial.backend,
                        wrong ? WhatIsWrong(trial) : "nothing can be said", trial.why);
  }
  if (trials.size() > kShownTrials) {
    text += fmt::format("  {} more; see --format=json\n", trials.size() - kShownTrials);
  }
  return text;
}

std::string Latency(const char* what, const ScoreRow& row) {
  if (row.seconds.empty()) return "";
  std::string text =
      fmt::format("; {} {} time{}", what, row.seconds.size(), row.seconds.size() == 1 ? "" : "s");
  for (const auto& [name, p] : {std::pair("p50", 0.5), std::pair("p99", 0.99)}) {
    if (const auto seconds = Percentile(row, p))
      text += fmt::format(", {} {}", name, Time(seconds));
  }
  return text + fmt::format(", max {}", Time(Longest(row)));
}

Json JsonOf(const Tally& tally) { return {{"right", tally.right}, {"of", tally.marked}}; }

Json JsonOf(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json JsonOf(const ScoreRow& row) {
  return {LOCKSTEP_PAIRS(row, backend, cause, certainty, trials, faulty, found),
          {"outcomes", JsonOf(row.outcomes)},
          {"cause_right", JsonOf(row.cause_tally)},
          {"culprits_right", JsonOf(row.culprits)},
          {"collective_right", JsonOf(row.collective)},
          LOCKSTEP_PAIRS(row, healthy, false_alarms, wrong, unknown),
          {"timed", row.seconds.size()},
          {"seconds_p50", JsonOf(Percentile(row, 0.5))},
          {"seconds_p99", JsonOf(Percentile(row, 0.99))},
          {"seconds_max", JsonOf(Longest(row))},
          {"late", row.late}};
}

Json JsonOf(const std::vector<TrialScore>& trials, bool wrong) {
  Json json = Json::array();
  for (const TrialScore& trial : trials) {
    json.push_back({LOCKSTEP_PAIRS(trial, name, backend),
                    {"what", wrong ? WhatIsWrong(trial) : "nothing can be said"},
                    {"why", trial.why}});
  }
  return json;
}

std::string FurtherOf(const Scoreboard& board) {
  const ScoreRow& total = board.total;
  std::string line =
      fmt::format("Culprits right in {} of {}, collective in {} of {}", total.culprits.right,
                  total.culprits.marked, total.collective.right, total.collective.marked);
  line += Latency("proved", board.proved);
  line += Latency("proved at the deadline", board.proved_at_deadline);
  return Wrap(line + Latency("suspected", board.suspected));
}

}  // namespace

std::string HeadlineOf(const Scoreboard& board) {
  const ScoreRow& total = board.total;
  std::string line = fmt::format(
      "{}: {} of {} faults found, cause right in {} of {}; {} false alarms in {} healthy runs",
      report::Shout(VerdictOf(board)), total.found, total.faulty, total.cause_tally.right,
      total.cause_tally.marked, total.false_alarms, total.healthy);
  const std::int64_t missing = total.unknown + board.not_run;
  if (missing > 0) line += fmt::format("; of {} trials nothing can be said", missing);
  if (board.not_scored > 0)
    line += fmt::format("; {} with faults and no [expect] not scored", board.not_scored);
  return line;
}

std::string FormatScoreTable(const Scoreboard& board) {
  std::string text = HeadlineOf(board) + "\n" + FurtherOf(board) + "\n" + TableOf(board);
  if (!board.wrong.empty()) text += "\nwrong:\n" + ListOf(board.wrong, true);
  if (!board.unknown.empty()) text += "\nunknown:\n" + ListOf(board.unknown, false);
  if (board.not_run > 0) text += fmt::format("\nplanned, not run: {}\n", board.not_run);
  return text;
}

std::string FormatScoreJson(const Scoreboard& board) {
  Json rows = Json::array();
  for (const ScoreRow& row : board.rows) rows.push_back(JsonOf(row));
  const Json json = {{"schema", 1},
                     {"lockstep", ThisVersionText()},
                     {"headline", HeadlineOf(board)},
                     {"verdict", verdict::NameOf(VerdictOf(board))},
                     {"rows", std::move(rows)},
                     {"proved", JsonOf(board.proved)},
                     {"proved_at_deadline", JsonOf(board.proved_at_deadline)},
                     {"suspected", JsonOf(board.suspected)},
                     {"wrong", JsonOf(board.wrong, true)},
                     {"unknown", JsonOf(board.unknown, false)},
                     {"not_run", board.not_run},
                     {"not_scored", board.not_scored}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::results::score
