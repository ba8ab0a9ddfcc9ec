// `lockstep score RUN.h5 …`: how often was the judge right about what stress runs injected?
#include <fmt/core.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "core/verdict/outcome.h"
#include "results/score/trials.h"
#include "results/store/store.h"

namespace lockstep::cli {
namespace {

struct ScoreArguments {
  std::vector<std::string> paths;
  std::string format = "text";
};

Result<results::score::Scoreboard> ScoreFiles(const std::vector<std::string>& paths) {
  std::vector<results::score::TrialScore> trials;
  std::int64_t not_run = 0;
  std::map<std::string, std::string> seen;  // id of a run: its file
  for (const std::string& path : paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(const results::store::Run run, results::store::ReadRun(path));
    const auto [first, is_new] = seen.emplace(run.id, path);
    if (!is_new) {
      return InvalidInput("{}: the same run as {}; name each run once", path, first->second);
    }
    if (run.name != "stress" || run.schema_version < 3) {
      return InvalidInput("{}: holds no trials ({}, schema {}); name a result file of stress", path,
                          run.name, run.schema_version);
    }
    const std::vector<results::score::TrialScore> own = results::score::TrialsOf(run);
    trials.insert(trials.end(), own.begin(), own.end());
    not_run += results::score::NotRun(run);
  }
  return results::score::ScoreOf(trials, not_run);
}

Result<ExitCode> Score(const ScoreArguments& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const results::score::Scoreboard board, ScoreFiles(options.paths));
  fmt::print("{}", options.format == "json" ? results::score::FormatScoreJson(board)
                                            : results::score::FormatScoreTable(board));
  return verdict::ExitCodeOf(results::score::VerdictOf(board));
}

}  // namespace

Work AddScore(ArgumentParser& parser) {
  auto options = std::make_shared<ScoreArguments>();
  parser.Add("RUN=FILE", options->paths, "Result files of stress (.h5)").Required();
  parser.Add("--format=WORD", options->format, "Form of what is printed (text or json)")
      .OneOf({"text", "json"})
      .WordRenamed("table", "text")
      .ShowDefault();
  return [options] { return Score(*options); };
}

}  // namespace lockstep::cli
