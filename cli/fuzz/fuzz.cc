// Random programs with random faults. Collectives run on core/comm/sim and are judged from their
// journals alone; messages of MPI as `lockstep watch` judges them (watch/fuzz).
#include <fmt/core.h>

#include <optional>
#include <string>

#include "cli/fuzz/campaign.h"
#include "core/base/argument_parser.h"
#include "core/base/program.h"
#include "core/base/status.h"
#include "core/verdict/judge.h"

namespace lockstep::cli::fuzz {
namespace {

// The options that draw trials of this kind alone.
std::string OptionsOf(const Kind& kind) {
  if (!kind) return "--draw=messages";
  return fmt::format("--sim-rules={}", comm::sim::NameOf(*kind));
}

Result<Kinds> KindsOf(const std::string& draw, const std::string& rules) {
  if (rules != "all") {
    if (draw == "messages") {
      return InvalidInput("--sim-rules: messages follow MPI's rules alone; leave it out");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const comm::sim::SimRules one,
                              comm::sim::ParseSimRules("--sim-rules", rules));
    return Kinds{one};
  }
  if (draw == "messages") return Kinds{kMessages};
  return draw == "collectives" ? Collectives() : AllKinds();
}

Result<ExitCode> Run(const TrialOptions& options, const Kinds& kinds, bool shrink) {
  const stress::fuzz::Judging judge = [](const std::vector<verdict::RankEvidence>& evidence,
                                         const verdict::Setting& setting) {
    return verdict::Judge(evidence, setting);
  };
  const Campaign<Counts> campaign = RunCampaign<Counts>(
      options, [&](std::uint64_t seed) { return Assess(seed, KindOf(kinds, seed), judge); });
  fmt::print("lockstep-fuzz: seed {}: {}", options.seed, Describe(campaign));
  if (!campaign.failed) return ExitCode::kPass;
  const std::uint64_t seed = *campaign.failed;
  const Kind kind = KindOf(kinds, seed);
  fmt::print("lockstep-fuzz: seed {} with {}: {}\n", seed, OptionsOf(kind),
             Assess(seed, kind, judge).wrong);
  if (shrink) fmt::print("\n{}\n", DescribeFailure(seed, kind, judge));
  fmt::print("again: lockstep-fuzz --seed={} {} --trials=1\n", seed, OptionsOf(kind));
  return ExitCode::kFailed;
}

Result<ExitCode> Main(int argc, char** argv) {
  TrialOptions options;
  std::string draw = "all";
  std::string rules = "all";
  bool shrink = true;
  ArgumentParser parser{"Judges random programs with random faults, whose truth is known.",
                        "lockstep-fuzz"};
  parser.Footer("Exit codes: 0 every verdict was right, 1 one was not, 2 usage.");
  AddTrialOptions(parser, options);
  parser
      .Add("--draw=WORD", draw,
           "What random programs call (collectives, messages of MPI, or all in turn)")
      .OneOf({"collectives", "messages", "all"})
      .ShowDefault();
  parser
      .Add(
          "--sim-rules=WORD", rules,
          "Whose rules the simulation follows (nccl, mpi, gloo: collectives alone; or all in turn)")
      .ShowDefault();
  parser.Flag("!--no-shrink", shrink, "Do not look for the smallest program that fails alike");
  parser.Renamed("--seconds", "--time-budget");
  parser.Renamed("--rules", "--sim-rules");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> text, parser.Parse(argc, argv));
  if (text) {
    fmt::print("{}", *text);
    return ExitCode::kPass;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Kinds kinds, KindsOf(draw, rules));
  return Run(options, kinds, shrink);
}

}  // namespace
}  // namespace lockstep::cli::fuzz

int main(int argc, char** argv) {
  return lockstep::RunProgram("lockstep-fuzz",
                              [=] { return lockstep::cli::fuzz::Main(argc, argv); });
}
