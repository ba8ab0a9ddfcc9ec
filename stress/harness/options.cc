// The options of `stress`, with their bounds.
#include "stress/harness/options.h"

#include <fstream>
#include <utility>

#include "core/base/argument_parser.h"
#include "core/comm/nccl/choices.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::harness {
namespace {

constexpr std::int64_t kMostRepeats = 1'000'000;
constexpr double kLeastSeconds = 1e-3, kMostSeconds = 86'400;

}  // namespace

Result<StressCommandLine> ParseStressCommandLine(int argc, const char* const* argv) {
  StressOptions options;
  std::string rules = "nccl";
  comm::nccl::NcclChoices nccl = comm::nccl::NcclChoicesFromEnvironment();
  ArgumentParser parser{"Runs scenarios: workloads and the faults that befall them, with verdicts.",
                        "lockstep-stress"};
  parser.Footer(
      "Start it with mpirun -np RANKS. Exit codes: 0 every case came out as expected, 1 one did "
      "not,\n2 usage, 3 inconclusive, 4 environment, 10 a defect of Lockstep.");
  parser.Add("--scenario,scenario=NAME", options.scenarios,
             "Scenarios, by name with wildcards or by file ('uneven_inputs/*')");
  parser
      .Add("--backend=WORD", options.backend,
           "Communication library (gloo, nccl, mpi with one case per launch, or sim: all ranks in "
           "one process, without mpirun)")
      .ShowDefault();
  parser.Add("--nccl-library=FILE", nccl.library,
             "The libnccl.so.2 in question (default: the dynamic linker's)");
  parser.Add("--ranks-per-gpu=COUNT", nccl.ranks_per_gpu, "nccl: so many ranks share a GPU");
  parser.Add("--sim-rules=WORD", rules, "Whose rules the simulation follows (nccl, mpi or gloo)")
      .ShowDefault();
  parser
      .Add("--ranks=COUNT", options.ranks, "Number of ranks (of sim only; default: the scenario's)")
      .Between(1, scenario::kMaxScenarioRanks);
  parser.Add("--seed=SEED", options.seed, "Seed of all that is random").ShowDefault();
  parser
      .Add("--repeat=COUNT", options.repeat, "How often every scenario runs, with seeds one apart")
      .Between(1, kMostRepeats)
      .ShowDefault();
  parser.Add("--verdicts=FILE", options.verdicts,
             "Also write the verdicts to this file (a JSON document)");
  parser.Renamed("--json", "--verdicts");
  parser.Add("--output=FILE", options.output,
             "File to write (the result; default: below results/runs)");
  parser
      .Add("-T,--timeout=TIME", options.deadline_seconds,
           "Silence of a rank that is taken for a hang")
      .BetweenReals(kLeastSeconds, kMostSeconds)
      .ShowDefault();
  parser.Add("--limit=TIME", options.limit_seconds, "Longest time of one case")
      .BetweenReals(kLeastSeconds, kMostSeconds)
      .ShowDefault();
  parser.Flag("--allow-network-faults", options.allow_network_faults,
              "Faults of the network may befall interfaces that are not of test hosts");
  parser.Flag("!--no-gpu-samples", options.gpu_samples,
              "Do not ask the GPUs' driver once a second for utilization, clocks, power …");
  parser.Flag("--list", options.list, "List the scenarios, one line each, and stop");
  parser.Flag("--list-faults", options.list_faults,
              "List what may befall a rank or a link, and stop");
  parser.Flag("!--no-progress", options.progress, "No progress line (on a terminal)");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> text, parser.Parse(argc, argv));
  if (text) return StressCommandLine{std::nullopt, *text};
  LOCKSTEP_RETURN_IF_ERROR(comm::nccl::ExportNcclChoices(nccl));
  LOCKSTEP_ASSIGN_OR_RETURN(options.sim_rules, comm::sim::ParseSimRules("--sim-rules", rules));
  if (options.ranks && options.backend != "sim") {
    return InvalidInput("--ranks is of --backend=sim; give mpirun the number with -np");
  }
  if (options.scenarios.empty() && !options.list && !options.list_faults) {
    return InvalidInput(
        "--scenario is missing; give a name or a file, or see lockstep-stress --list");
  }
  return StressCommandLine{std::move(options), ""};
}

Status WriteVerdicts(const std::string& path, const std::string& text) {
  if (path.empty()) return OkStatus();
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.flush();
  if (file) return OkStatus();
  return EnvironmentError(
      "--verdicts: '{}' could not be written; check the directory and its space", path);
}

}  // namespace lockstep::stress::harness
