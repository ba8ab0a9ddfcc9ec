// `lockstep trend DIR…`: what became slower, when, with what, and on which machine.
#include "results/compare/trend.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "results/compare/load.h"
#include "results/compare/min_effect.h"
#include "results/compare/trend_print.h"
#include "scripts/lockstep/commands.h"

namespace lockstep {
namespace {

struct Options {
  std::vector<std::string> names;
  std::string night_gap = "4h";
  int recent_nights = 7;
  std::string min_change = "2%";
  std::string peer_effect = "5%";
  std::string cases = "*";
  std::string format = "table";
};

Result<ExitCode> RunTrend(const Options& options) {
  TrendOptions how;
  LOCKSTEP_ASSIGN_OR_RETURN(how.night_gap_seconds, ParseSeconds("--night-gap", options.night_gap));
  LOCKSTEP_ASSIGN_OR_RETURN(how.change_min, ParseFraction("--min-change", options.min_change));
  LOCKSTEP_ASSIGN_OR_RETURN(how.peer_min, ParseFraction("--peer-effect", options.peer_effect));
  how.recent_nights = static_cast<std::size_t>(options.recent_nights);
  how.cases = options.cases;
  LOCKSTEP_ASSIGN_OR_RETURN(Loaded loaded, LoadLaunches(options.names, Depth::kBelow));
  const Trend trend = FindTrend(loaded.launches, how, std::move(loaded.skipped));
  fmt::print("{}", options.format == "json"       ? FormatTrendJson(trend)
                   : options.format == "markdown" ? FormatTrendMarkdown(trend)
                   : options.format == "junit"    ? FormatTrendJUnit(trend)
                                                  : FormatTrendTable(trend));
  return trend.exit_code;
}

}  // namespace

void AddTrend(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "trend", "The history of every case over nights: what changed when, and slow machines");
  command
      ->add_option("DIR", options->names, "Directories with run files (and those below), or runs")
      ->required();
  command
      ->add_option("--night-gap", options->night_gap,
                   "Launches of a machine farther apart than this belong to different nights")
      ->capture_default_str();
  command
      ->add_option("--recent", options->recent_nights,
                   "A slower level that began within so many nights is a regression")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--min-change", options->min_change, "The least change of level told")
      ->capture_default_str();
  command
      ->add_option("--peer-effect", options->peer_effect,
                   "From how much on a machine is slow beside its peers")
      ->capture_default_str();
  command->add_option("--cases", options->cases, "A glob: which cases")->capture_default_str();
  command->add_option("--format", options->format, "table, json, markdown or junit")
      ->check(CLI::IsMember({"table", "json", "markdown", "junit"}))
      ->capture_default_str();
  command->callback([options, &chosen] { chosen = [options] { return RunTrend(*options); }; });
}

}  // namespace lockstep
