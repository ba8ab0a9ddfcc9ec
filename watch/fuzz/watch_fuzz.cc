// Random MPI programs, judged as `lockstep watch` judges: by what a library in the ranks would have
// written down.
#include <fmt/core.h>

#include <optional>
#include <string>

#include "core/base/argument_parser.h"
#include "core/base/program.h"
#include "core/base/status.h"
#include "watch/fuzz/campaign.h"

namespace lockstep::watch::fuzz {
namespace {

Result<ExitCode> Run(const TrialOptions& options, bool shrink) {
  const CampaignResult result = RunCampaign(options);
  fmt::print("watch_fuzz: seed {}: {}\n", options.seed, Describe(result));
  if (!result.failed) return ExitCode::kPass;
  if (shrink) fmt::print("\n{}\n", DescribeFailure(*result.failed));
  fmt::print("again: watch_fuzz --seed={} --trials=1\n", *result.failed);
  return ExitCode::kFailed;
}

Result<ExitCode> Main(int argc, char** argv) {
  TrialOptions options;
  bool shrink = true;
  ArgumentParser parser{"Judges random MPI programs with an error each, whose truth is known.",
                        "watch_fuzz"};
  parser.Footer("Exit codes: 0 every verdict was right, 1 one was not, 2 usage.");
  AddTrialOptions(parser, options);
  parser.Flag("!--no-shrink", shrink, "Do not look for the smallest program that fails alike");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> text, parser.Parse(argc, argv));
  if (text) {
    fmt::print("{}", *text);
    return ExitCode::kPass;
  }
  return Run(options, shrink);
}

}  // namespace
}  // namespace lockstep::watch::fuzz

int main(int argc, char** argv) {
  return lockstep::RunProgram("watch_fuzz",
                              [=] { return lockstep::watch::fuzz::Main(argc, argv); });
}
