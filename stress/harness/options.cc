#include "stress/harness/options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "core/base/units.h"
#include "core/comm/nccl/choices.h"
#include "core/plan/scenario.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostRepeats = 1'000'000;
constexpr double kMostSeconds = 86'400;

Result<double> ReadSeconds(const std::string& option, const std::string& word) {
  LOCKSTEP_ASSIGN_OR_RETURN(const double seconds, ParseSeconds(option, word));
  if (seconds > 0 && seconds <= kMostSeconds) return seconds;
  return InvalidInput(
      fmt::format("{}: '{}' is not between 0 and a day; give e.g. 5s", option, word));
}

Result<std::int64_t> ReadCount(const std::string& option, const std::string& word,
                               std::int64_t most) {
  const Result<std::int64_t> count = ParseBytes(option, word);
  if (count.ok() && *count >= 1 && *count <= most) return *count;
  return InvalidInput(fmt::format("{}: '{}' is no count from 1 to {}", option, word, most));
}

}  // namespace

Result<StressCommandLine> ParseStressCommandLine(int argc, const char* const* argv) {
  StressOptions options;
  std::string deadline = "5", limit = "300", seed = "1", repeat = "1";
  std::string rules = "nccl", ranks;
  NcclChoices nccl;
  CLI::App app{"Runs scenarios: workloads and the faults that befall them, with verdicts.",
               "stress"};
  app.set_version_flag("--version", "stress of Lockstep 0.1");
  app.footer(
      "Start it with mpirun -np RANKS. Exit codes: 0 every case came out as expected, 1 one did "
      "not,\n2 usage, 3 inconclusive, 4 environment, 10 a defect of Lockstep.");
  app.add_option("--scenario,scenario", options.scenarios,
                 "Names with wildcards ('uneven_inputs/*') or paths of TOML files");
  app.add_option("--backend", options.backend,
                 "gloo; nccl; mpi (one case a launch); sim (all ranks in one process, without "
                 "mpirun)")
      ->capture_default_str();
  app.add_option("--nccl-library", nccl.library,
                 "nccl: the libnccl.so.2 to test (default: the dynamic linker's)");
  app.add_option("--ranks-per-gpu", nccl.ranks_per_gpu, "nccl: so many ranks share a GPU");
  app.add_option("--sim-rules", rules, "Whose rules sim follows: nccl, mpi or gloo")
      ->capture_default_str();
  app.add_option("--ranks", ranks, "Number of ranks, of sim only (default: the scenario's)");
  app.add_option("--seed", seed, "Of the data and of what is random")->capture_default_str();
  app.add_option("--repeat", repeat, "Every scenario so often, with seeds one apart")
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the verdicts to this file");
  app.add_option("--output", options.output, "The result file (default: below results/runs)");
  app.add_option("-T,--timeout", deadline, "Silence of a rank that is taken for a hang")
      ->capture_default_str();
  app.add_option("--limit", limit, "Longest time of one case")->capture_default_str();
  app.add_flag("--allow-network-faults", options.allow_network_faults,
               "Faults of the network may befall interfaces that are not of test hosts");
  app.add_flag("!--no-gpu-samples", options.gpu_samples,
               "Do not ask the GPUs' driver once a second for utilization, clocks, power …");
  app.add_flag("--list", options.list, "List the scenarios, one line each, and stop");
  app.add_flag("!--no-progress", options.progress, "No progress line on a terminal");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return StressCommandLine{std::nullopt, app.help()};
  } catch (const CLI::CallForVersion&) {
    return StressCommandLine{std::nullopt, app.version() + "\n"};
  } catch (const CLI::ParseError& error) {
    return InvalidInput(fmt::format("{}; see stress --help", error.what()));
  }
  LOCKSTEP_RETURN_IF_ERROR(ExportNcclChoices(nccl));
  LOCKSTEP_ASSIGN_OR_RETURN(options.deadline_seconds, ReadSeconds("-T", deadline));
  LOCKSTEP_ASSIGN_OR_RETURN(options.limit_seconds, ReadSeconds("--limit", limit));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t first,
                            ReadCount("--seed", seed, std::int64_t{1} << 62));
  options.seed = static_cast<std::uint64_t>(first);
  LOCKSTEP_ASSIGN_OR_RETURN(options.repeat, ReadCount("--repeat", repeat, kMostRepeats));
  LOCKSTEP_ASSIGN_OR_RETURN(options.sim_rules, ParseSimRules("--sim-rules", rules));
  if (!ranks.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t count,
                              ReadCount("--ranks", ranks, kMaxScenarioRanks));
    options.ranks = static_cast<int>(count);
    if (options.backend != "sim") {
      return InvalidInput("--ranks is of --backend=sim; give mpirun the number with -np");
    }
  }
  if (options.scenarios.empty() && !options.list) {
    return InvalidInput("--scenario is missing; give a name or a file, or see stress --list");
  }
  return StressCommandLine{std::move(options), ""};
}

}  // namespace lockstep
