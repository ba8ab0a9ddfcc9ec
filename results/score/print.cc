// The scoreboard's table and JSON. A percentile is shown only where there are trials enough to
// support it (core/stats); trials beyond the first 30 wrong ones are counted.
#include "results/score/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/units.h"
#include "core/base/version.h"
#include "core/base/wrap.h"
#include "core/stats/stats.h"

namespace lockstep::results::score {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownTrials = 30;
constexpr std::array kHead = {"backend", "cause",    "certainty",  "trials",        "found",
                              "ranks",   "cause ok", "culprit ok", "collective ok", "alarms",
                              "unknown", "p50",      "p99",        "max",           "late"};
using Cells = std::array<std::string, kHead.size()>;

std::string Of(const Tally& tally) {
  return tally.marked == 0 ? "-" : fmt::format("{}/{}", tally.right, tally.marked);
}

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

Cells CellsOf(const ScoreRow& row) {
  return {row.backend,
          row.cause,
          row.certainty,
          fmt::format("{}", row.trials),
          row.faulty == 0 ? "-" : fmt::format("{}/{}", row.found, row.faulty),
          Of(row.outcomes),
          Of(row.cause_tally),
          Of(row.culprits),
          Of(row.collective),
          row.healthy == 0 ? "-" : fmt::format("{}/{}", row.false_alarms, row.healthy),
          fmt::format("{}", row.unknown),
          Time(Percentile(row, 0.5)),
          Time(Percentile(row, 0.99)),
          Time(Longest(row)),
          fmt::format("{}", row.late)};
}

std::string Grid(const std::vector<Cells>& rows) {
  std::array<std::size_t, kHead.size()> widths{};
  for (std::size_t i = 0; i < kHead.size(); ++i) {
    widths[i] = std::string(kHead[i]).size();
    for (const Cells& row : rows) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  const auto add = [&](const auto& cells) {
    std::string line;
    for (std::size_t i = 0; i < kHead.size(); ++i) {
      line += i < 3 ? fmt::format("{:<{}}  ", cells[i], widths[i])
                    : fmt::format("{:>{}}  ", cells[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add(kHead);
  for (const Cells& row : rows) add(row);
  return text;
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
  return {{"backend", row.backend},
          {"cause", row.cause},
          {"certainty", row.certainty},
          {"trials", row.trials},
          {"faulty", row.faulty},
          {"found", row.found},
          {"outcomes", JsonOf(row.outcomes)},
          {"cause_right", JsonOf(row.cause_tally)},
          {"culprits_right", JsonOf(row.culprits)},
          {"collective_right", JsonOf(row.collective)},
          {"healthy", row.healthy},
          {"false_alarms", row.false_alarms},
          {"unknown", row.unknown},
          {"timed", row.seconds.size()},
          {"seconds_p50", JsonOf(Percentile(row, 0.5))},
          {"seconds_p99", JsonOf(Percentile(row, 0.99))},
          {"seconds_max", JsonOf(Longest(row))},
          {"late", row.late}};
}

Json JsonOf(const std::vector<TrialScore>& trials, bool wrong) {
  Json json = Json::array();
  for (const TrialScore& trial : trials) {
    json.push_back({{"name", trial.name},
                    {"backend", trial.backend},
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
  const verdict::Verdict verdict = VerdictOf(board);
  std::string line = verdict == verdict::Verdict::kPass   ? "PASS"
                     : verdict == verdict::Verdict::kFail ? "FAIL"
                                                          : "INCONCLUSIVE";
  line += fmt::format(
      ": {} of {} faults found, cause right in {} of {}; {} false alarms in {} healthy runs",
      total.found, total.faulty, total.cause_tally.right, total.cause_tally.marked,
      total.false_alarms, total.healthy);
  const std::int64_t missing = total.unknown + board.not_run;
  if (missing > 0) line += fmt::format("; of {} trials nothing can be said", missing);
  return line;
}

std::string FormatScoreTable(const Scoreboard& board) {
  std::vector<Cells> rows;
  for (const ScoreRow& row : board.rows) rows.push_back(CellsOf(row));
  Cells total = CellsOf(board.total);
  total[0] = "all";
  // Proofs, suspicions and virtual time have no common distribution.
  total[11] = total[12] = total[13] = "-";
  rows.push_back(total);
  std::string text = HeadlineOf(board) + "\n" + FurtherOf(board) + "\n" + Grid(rows);
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
                     {"not_run", board.not_run}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::results::score
