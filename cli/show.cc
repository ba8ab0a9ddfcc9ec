// `lockstep show RUN.h5 …`: prints runs; of a directory, one line a run.
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/subcommand.h"
#include "core/base/print_stderr.h"
#include "core/base/wrap.h"
#include "results/compare/load.h"
#include "results/report/report.h"
#include "results/store/store.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

struct ShowArguments {
  std::vector<std::string> paths;
  std::string format = "text";
  bool wide = false;
  bool environment = false;
  bool history = false;
  bool skew = false;
  int events = 100;
};

// An error of one of several runs, in the form in which main prints the only one.
void Report(const Status& status) { PrintStderr("lockstep: {}\n", OneLine(status.message())); }

std::string Format(const results::store::Run& run, const ShowArguments& options) {
  if (options.format == "nccl-tests") return results::report::FormatNcclTests(run);
  if (options.format == "jsonl") return results::report::FormatJsonLines(run);
  if (options.format == "csv") return results::report::FormatCsv(run);
  std::string text = results::report::FormatTable(
      run, options.wide ? results::report::Columns::kAll : results::report::Columns::kFew);
  if (options.skew) text += "\n" + results::report::FormatArrivals(run);
  if (options.environment) text += "\n" + results::report::FormatEnvironment(run);
  if (options.history)
    text += "\n" + results::report::FormatHistory(run, static_cast<std::size_t>(options.events));
  return text;
}

Status ShowFile(const std::string& path, const ShowArguments& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const results::store::Run run, results::store::ReadRun(path));
  if (options.paths.size() > 1 && options.format == "text") fmt::print("{}\n", path);
  fmt::print("{}", Format(run, options));
  if (options.paths.size() > 1 && options.format == "text") fmt::print("\n");
  return OkStatus();
}

// Files that cannot be read are named and passed over: one of them hides no other.
Status ShowDirectory(const std::string& directory) {
  using results::compare::Depth;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                            results::compare::RunFilesIn(directory, Depth::kDirectory));
  for (const std::string& path : paths) {
    const Result<results::store::Run> run = results::store::ReadRun(path);
    if (run.ok())
      fmt::print("{}  {}\n", fs::path(path).filename().string(), results::report::FormatLine(*run));
    else
      Report(run.status());
  }
  return OkStatus();
}

Result<ExitCode> Show(const ShowArguments& options) {
  const bool more = options.wide || options.environment || options.history || options.skew;
  if (options.format != "text" && more) {
    return InvalidInput(
        "--wide, --skew, --environment and --history go with --format=text, not {}; leave one out "
        "(jsonl has the figures of --skew)",
        options.format);
  }
  ExitCode code = ExitCode::kPass;
  for (const std::string& path : options.paths) {
    std::error_code ignored;
    const Status status =
        fs::is_directory(path, ignored) ? ShowDirectory(path) : ShowFile(path, options);
    if (status.ok()) continue;
    if (options.paths.size() == 1) return status;
    Report(status);
    code = ExitCode::kUsage;
  }
  return code;
}

}  // namespace

Work AddShow(ArgumentParser& parser) {
  auto options = std::make_shared<ShowArguments>();
  parser.Add("RUN=FILE", options->paths, "Run files (.h5) or directories of them").Required();
  parser
      .Add("--format=WORD", options->format,
           "Form of what is printed (text, nccl-tests, jsonl or csv)")
      .OneOf({"text", "nccl-tests", "jsonl", "csv"})
      .WordRenamed("table", "text")
      .ShowDefault();
  parser.Flag("--wide", options->wide, "All columns in the table");
  parser.Flag("--skew", options->skew,
              "Also print how far apart the ranks came, and how long it took from then on");
  parser.Flag("--environment", options->environment, "Also print machine and software");
  parser.Flag("--history", options->history, "Also print the newest events of every rank");
  parser.Add("--events=COUNT", options->events, "How many events of a rank --history prints")
      .Between(1, 1'000'000'000)
      .ShowDefault();
  return [options] { return Show(*options); };
}

}  // namespace lockstep::cli
