// Random programs with random faults on core/comm/sim, judged from their journals alone.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "core/base/status.h"
#include "core/verdict/judge.h"
#include "stress/fuzz/campaign.h"

namespace lockstep {
namespace {

int Fail(const Status& status) {
  fmt::print(stderr, "fuzz: {}\n", status.message());
  return static_cast<int>(ExitCodeOf(status.code()));
}

int Run(const FuzzOptions& options, bool shrink) {
  const Judging judge = [](const std::vector<RankEvidence>& evidence, const Setting& setting) {
    return Judge(evidence, setting);
  };
  const FuzzResult result = RunCampaign(options, judge);
  fmt::print("fuzz: seed {}: {}\n", options.seed, Describe(result));
  if (!result.failure) return static_cast<int>(ExitCode::kPass);
  const FuzzFailure& failure = *result.failure;
  fmt::print("fuzz: seed {} with rules {}: {}\n", failure.seed, NameOf(failure.rules), failure.why);
  if (shrink) {
    fmt::print("\n{}\n", DescribeFailure(failure, judge));
  }
  fmt::print("again: fuzz --seed={} --rules={} --trials=1\n", failure.seed, NameOf(failure.rules));
  return static_cast<int>(ExitCode::kFailed);
}

int Main(int argc, char** argv) {
  FuzzOptions options;
  std::string rules = "all";
  bool shrink = true;
  CLI::App app{"Judges random programs with random faults, whose truth is known.", "fuzz"};
  app.footer("Exit codes: 0 every verdict was right, 1 one was not, 2 usage.");
  app.add_option("--trials", options.trials)
      ->check(CLI::Range(1, 2'000'000'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Trial i has this seed + i")->capture_default_str();
  app.add_option("--seconds", options.seconds, "At most so long; 0: no limit")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
  app.add_option("--jobs", options.jobs, "Threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--rules", rules, "nccl, mpi, gloo or all")->capture_default_str();
  app.add_flag("--shrink,!--no-shrink", shrink, "Print the smallest program that fails alike");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    return Fail(InvalidInput(fmt::format("{}; see fuzz --help", error.what())));
  }
  if (rules != "all") {
    const Result<SimRules> one = ParseSimRules("--rules", rules);
    if (!one.ok()) return Fail(one.status());
    options.rules = {*one};
  }
  return Run(options, shrink);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }
