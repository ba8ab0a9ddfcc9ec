// example_sides DIRECTORY: writes base/ and candidate/, whose differences are known, for tests.
// Each has eight launches, interleaved with the other's. The candidate's driver is newer, and so is
// the Lockstep that measured it. One case is 10 % slower, one 10 % faster, one fails, one is
// missing, one is noisy, one as it was. A third folder, same/, has eight more launches like the
// base's.
#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "core/base/random.h"
#include "core/base/status.h"
#include "results/compare/testing/example_launch.h"
#include "results/store/store.h"

namespace lockstep::results::compare {
namespace {

constexpr int kLaunches = 8;

double Noise(Random& random, double percent) {
  return 1 + percent / 100 * (random.Uniform() - 0.5);
}

ExampleLaunch LaunchOf(bool candidate, Random& random) {
  ExampleLaunch launch;
  launch.driver = candidate ? "580" : "570";
  if (candidate) launch.lockstep = {"1.3.0", "5d6e7f8", true};
  launch.medians_ns = {
      {"all_reduce/slower", 1e6 * (candidate ? 1.10 : 1.0) * Noise(random, 2)},
      {"all_reduce/faster", 2e6 * (candidate ? 0.90 : 1.0) * Noise(random, 2)},
      {"all_reduce/fails", 3e6 * Noise(random, 2)},
      {"all_reduce/same", 4e6 * Noise(random, 1)},
      {"broadcast/noisy", 5e6 * Noise(random, 30)},
  };
  if (!candidate) launch.medians_ns.emplace_back("all_reduce/missing", 6e6);
  return launch;
}

void Fail(store::Run& run) {
  store::CaseRecord& record = run.cases[2];
  record.judgement.verdict = verdict::Verdict::kFail;
  record.judgement.outcomes[1].outcome = verdict::Outcome::kHung;
  record.judgement.findings = {
      {verdict::Cause::kRankStopped, {1}, true, "rank 1 was stopped", "Continue it."}};
  run.verdict = run.judgement.verdict = verdict::Verdict::kFail;
}

Status Write(const std::string& directory) {
  Random random(11);
  for (int i = 0; i < 3 * kLaunches; ++i) {
    const char* side = i % 3 == 0 ? "base" : i % 3 == 1 ? "candidate" : "same";
    ExampleLaunch launch = LaunchOf(i % 3 == 1, random);
    launch.number = static_cast<std::uint64_t>(i);
    launch.started_at = TimeOf(0, i);
    store::Run run = RunOf(launch);
    if (i == 3 * 4 + 1) Fail(run);  // one launch of the candidate
    LOCKSTEP_RETURN_IF_ERROR(store::WriteRun(run, fmt::format("{}/{}/{}.h5", directory, side, i)));
  }
  return OkStatus();
}

}  // namespace
}  // namespace lockstep::results::compare

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "example_sides: name a directory to write to\n");
    return static_cast<int>(lockstep::ExitCode::kUsage);
  }
  const lockstep::Status status = lockstep::results::compare::Write(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return static_cast<int>(lockstep::ExitCodeOf(status.code()));
}
