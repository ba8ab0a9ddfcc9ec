// Random programs with random faults on core/comm/sim, judged from their journals alone.
#include <fmt/core.h>

#include <optional>
#include <string>

#include "core/base/argument_parser.h"
#include "core/base/program.h"
#include "core/base/status.h"
#include "core/verdict/judge.h"
#include "stress/fuzz/campaign.h"

namespace lockstep::stress::fuzz {
namespace {

Result<ExitCode> Run(const TrialOptions& options, const Rules& rules, bool shrink) {
  const Judging judge = [](const std::vector<verdict::RankEvidence>& evidence,
                           const verdict::Setting& setting) {
    return verdict::Judge(evidence, setting);
  };
  const FuzzResult result = RunCampaign(options, judge, rules);
  fmt::print("lockstep-fuzz: seed {}: {}", options.seed, Describe(result));
  if (!result.failure) return ExitCode::kPass;
  const FuzzFailure& failure = *result.failure;
  fmt::print("lockstep-fuzz: seed {} with rules {}: {}\n", failure.seed,
             comm::sim::NameOf(failure.rules), failure.why);
  if (shrink) {
    fmt::print("\n{}\n", DescribeFailure(failure, judge));
  }
  fmt::print("again: lockstep-fuzz --seed={} --sim-rules={} --trials=1\n", failure.seed,
             comm::sim::NameOf(failure.rules));
  return ExitCode::kFailed;
}

Result<ExitCode> Main(int argc, char** argv) {
  TrialOptions options;
  std::string rules = "all";
  bool shrink = true;
  ArgumentParser parser{"Judges random programs with random faults, whose truth is known.",
                        "lockstep-fuzz"};
  parser.Footer("Exit codes: 0 every verdict was right, 1 one was not, 2 usage.");
  AddTrialOptions(parser, options);
  parser
      .Add("--sim-rules=WORD", rules,
           "Whose rules the simulation follows (nccl, mpi, gloo, or all in turn)")
      .ShowDefault();
  parser.Flag("!--no-shrink", shrink, "Do not look for the smallest program that fails alike");
  parser.Renamed("--seconds", "--time-budget");
  parser.Renamed("--rules", "--sim-rules");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> text, parser.Parse(argc, argv));
  if (text) {
    fmt::print("{}", *text);
    return ExitCode::kPass;
  }
  if (rules == "all") return Run(options, kAllRules, shrink);
  LOCKSTEP_ASSIGN_OR_RETURN(const comm::sim::SimRules one,
                            comm::sim::ParseSimRules("--sim-rules", rules));
  return Run(options, {one}, shrink);
}

}  // namespace
}  // namespace lockstep::stress::fuzz

int main(int argc, char** argv) {
  return lockstep::RunProgram("lockstep-fuzz",
                              [=] { return lockstep::stress::fuzz::Main(argc, argv); });
}
