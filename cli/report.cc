// `lockstep report RUN.h5 … --output=report.html`: checks the files, then runs the program that
// draws.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/exec_script.h"
#include "cli/subcommand.h"
#include "results/store/store.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInstalled = "libexec/lockstep/report/report.py";
constexpr const char* kInTree = "results/report/html/report.py";

struct ReportArguments {
  std::vector<std::string> paths;
  std::vector<std::string> candidates;  // after them
  std::string output;
  std::string figures;
  std::string title;
};

// Leaves this process to the script; returns only on an error.
Result<ExitCode> Report(ReportArguments options) {
  const std::size_t candidates = std::max<std::size_t>(options.candidates.size(), 1);
  options.paths.insert(options.paths.end(), options.candidates.begin(), options.candidates.end());
  // The script takes every file for what the schema says.
  for (const std::string& path : options.paths) {
    LOCKSTEP_RETURN_IF_ERROR(results::store::ReadRun(path).status());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path binary, ThisProgram());
  std::vector<std::string> words = {"--lockstep=" + binary.string(), "--output=" + options.output,
                                    fmt::format("--candidates={}", candidates)};
  if (!options.figures.empty()) words.push_back("--figures=" + options.figures);
  if (!options.title.empty()) words.push_back("--title=" + options.title);
  words.push_back("--");
  words.insert(words.end(), options.paths.begin(), options.paths.end());
  return ExecScript(kInstalled, kInTree, words);
}

}  // namespace

Work AddReport(ArgumentParser& parser) {
  auto options = std::make_shared<ReportArguments>();
  parser.Add("RUN=FILE", options->paths, "Run files (.h5); several are compared").Required();
  parser.Add("--output=FILE", options->output, "File to write (the page)").Required();
  parser.Add("--candidate=FILE", options->candidates,
             "Launches of the candidate (compared with the others; default: the last run)");
  parser.Add("--figures=FOLDER", options->figures,
             "Also write every figure as SVG and PNG to this directory");
  parser.Add("--title=TEXT", options->title, "Heading of the page");
  parser.Renamed("-o", "--output");
  return [options] { return Report(*options); };
}

}  // namespace lockstep::cli
