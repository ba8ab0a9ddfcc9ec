// `lockstep trend DIR…`: what became slower, when, with what, and on which machine.
#include "results/compare/trend.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/subcommand.h"
#include "core/base/units.h"
#include "results/compare/load.h"
#include "results/compare/min_effect.h"

namespace lockstep::cli {
namespace {

struct TrendArguments {
  std::vector<std::string> names;
  std::string night_gap = "4h";
  int recent_nights = 7;
  std::string min_change = "2%";
  std::string peer_effect = "5%";
  std::string cases = "*";
  std::string format = "text";
};

Result<ExitCode> RunTrend(const TrendArguments& options) {
  results::compare::TrendOptions how;
  LOCKSTEP_ASSIGN_OR_RETURN(how.night_gap_seconds,
                            ParseSeconds("--night-gap=TIME", options.night_gap));
  LOCKSTEP_ASSIGN_OR_RETURN(
      how.change_min, results::compare::ParseFraction("--min-change=PERCENT", options.min_change));
  LOCKSTEP_ASSIGN_OR_RETURN(
      how.peer_min, results::compare::ParseFraction("--peer-effect=PERCENT", options.peer_effect));
  how.recent_nights = static_cast<std::size_t>(options.recent_nights);
  how.cases = options.cases;
  LOCKSTEP_ASSIGN_OR_RETURN(
      results::compare::Loaded loaded,
      results::compare::LoadLaunches(options.names, results::compare::Depth::kBelow,
                                     results::compare::Lost::kWithoutTimes));
  const results::compare::Trend trend =
      results::compare::FindTrend(loaded.launches, how, std::move(loaded.skipped));
  fmt::print("{}", options.format == "json"       ? results::compare::FormatTrendJson(trend)
                   : options.format == "markdown" ? results::compare::FormatTrendMarkdown(trend)
                   : options.format == "junit"    ? results::compare::FormatTrendJUnit(trend)
                                                  : results::compare::FormatTrendTable(trend));
  return trend.exit_code;
}

}  // namespace

Work AddTrend(ArgumentParser& parser) {
  auto options = std::make_shared<TrendArguments>();
  parser.Add("DIR=FOLDER", options->names, "Directories with run files (and those below), or runs")
      .Required();
  parser
      .Add("--night-gap=TIME", options->night_gap,
           "Launches of a machine farther apart than this belong to different nights")
      .ShowDefault();
  parser
      .Add("--recent=COUNT", options->recent_nights,
           "A slower level that began within so many nights is a regression")
      .Between(1, 100'000)
      .ShowDefault();
  parser.Add("--min-change=PERCENT", options->min_change, "The least change of level told")
      .ShowDefault();
  parser
      .Add("--peer-effect=PERCENT", options->peer_effect,
           "From how much on a machine is slow beside its peers")
      .ShowDefault();
  parser.Add("--cases=GLOB", options->cases, "Which cases count").ShowDefault();
  parser
      .Add("--format=WORD", options->format,
           "Form of what is printed (text, json, markdown or junit)")
      .OneOf({"text", "json", "markdown", "junit"})
      .WordRenamed("table", "text")
      .ShowDefault();
  return [options] { return RunTrend(*options); };
}

}  // namespace lockstep::cli
