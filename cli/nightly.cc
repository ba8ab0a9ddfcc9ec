// `lockstep nightly PLAN.toml`: is this machine, or hostfile, fit for training?
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/exec_script.h"
#include "cli/subcommand.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string plan;
  std::string profile;
  std::string budget;
  std::string baseline;
  std::string output;
  std::string programs;
  std::string format = "text";
};

// Beside this one, or in the build tree around it.
std::string ProgramsOf(const fs::path& binary) {
  const fs::path folder = binary.parent_path();
  std::error_code error;
  if (fs::exists(folder / "bench_allreduce", error)) return folder.string();
  return folder.parent_path().string();
}

Result<ExitCode> Nightly(const Options& options) {
  if (options.plan.empty() == options.profile.empty()) {
    return InvalidInput("nightly: give a PLAN.toml or a --profile, and not both");
  }
  if (!options.plan.empty() && !(options.budget.empty() && options.baseline.empty())) {
    return InvalidInput(
        "nightly: write budget and baseline into the plan; the options go with a --profile");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path binary, ThisProgram());
  std::vector<std::string> words = {
      "--format=" + options.format,
      "--programs=" + (options.programs.empty() ? ProgramsOf(binary) : options.programs)};
  if (!options.output.empty()) words.push_back("--output=" + options.output);
  if (!options.profile.empty()) words.push_back("--profile=" + options.profile);
  if (!options.budget.empty()) words.push_back("--budget=" + options.budget);
  if (!options.baseline.empty()) words.push_back("--baseline=" + options.baseline);
  if (!options.plan.empty()) words.push_back(options.plan);
  return ExecScript("libexec/lockstep/nightly", "scripts/nightly", words);
}

}  // namespace

Work AddNightly(ArgumentParser& parser) {
  auto options = std::make_shared<Options>();
  parser.Add("PLAN", options->plan, "A plan (.toml); see scripts/examples/nightly.toml");
  parser.Add("--profile", options->profile, "Instead: quick (5 min), standard (1 h), full")
      .OneOf({"quick", "standard", "full"});
  parser.Add("--budget", options->budget, "60min: with a --profile, which is made shorter to fit");
  parser.Add("--baseline", options->baseline, "Folder of earlier launches, with a --profile");
  parser.Add("-o,--output", options->output,
             "Folder of the state and the verdict. Default: one of tonight, results/nightly/DATE");
  parser.Add("--programs", options->programs, "Folder of the programs, if not beside this");
  parser.Add("--format", options->format, "text or json").OneOf({"text", "json"}).ShowDefault();
  return [options] { return Nightly(*options); };
}

}  // namespace lockstep::cli
