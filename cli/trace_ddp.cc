// `lockstep trace-ddp`: the collectives of a training program, without launching anything.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/subcommand.h"
#include "cli/trace_ddp/print.h"
#include "cli/trace_ddp/run.h"
#include "core/base/status.h"
#include "core/ddp/buckets.h"
#include "stress/scenario/scenario.h"

namespace lockstep::cli {
namespace {

// More would be threads or stacks by the thousand, and columns nobody can read.
constexpr int kMaxRanks = 1024;

struct TraceDdpArguments {
  std::vector<std::string> paths;
  std::string format = "text";
  std::string backend = "sim";
  std::string rules = "gloo";
  std::string torch = "2.6";
  int ranks = 0;  // 0: not given
  double timeout_seconds = 10;
};

struct Choice {
  stress::scenario::ScenarioOptions scenario;
  comm::sim::SimRules rules = comm::sim::SimRules::kGloo;
};

Status Check(std::string_view option, std::string_view text,
             std::initializer_list<std::string_view> known) {
  for (const std::string_view name : known) {
    if (text == name) return OkStatus();
  }
  return InvalidInput("{}: '{}' is unknown; choose from {}", option, text, fmt::join(known, ", "));
}

Result<Choice> ReadChoice(const TraceDdpArguments& arguments) {
  Choice choice;
  LOCKSTEP_RETURN_IF_ERROR(Check("--backend", arguments.backend, {"sim", "null", "gloo"}));
  LOCKSTEP_ASSIGN_OR_RETURN(choice.rules, comm::sim::ParseSimRules("--sim-rules", arguments.rules));
  LOCKSTEP_ASSIGN_OR_RETURN(choice.scenario.torch,
                            ddp::ParseTorchRules("--torch", arguments.torch));
  if (arguments.ranks != 0) choice.scenario.ranks = arguments.ranks;
  return choice;
}

Result<stress::scenario::Scenario> Load(const std::string& path, const Choice& choice) {
  LOCKSTEP_ASSIGN_OR_RETURN(stress::scenario::Scenario scenario,
                            stress::scenario::LoadScenario(path, choice.scenario));
  if (!std::holds_alternative<ddp::TrainingProgram>(scenario.workload)) {
    return InvalidInput("{}: key workload.kind: not a training; trace-ddp takes ddp_training",
                        path);
  }
  if (scenario.ranks > kMaxRanks) {
    return InvalidInput(
        "{}: key ranks: {} is more than trace-ddp shows; use --ranks=with at most {}", path,
        scenario.ranks, kMaxRanks);
  }
  return scenario;
}

Result<ExitCode> TraceOne(const stress::scenario::Scenario& scenario,
                          const TraceDdpArguments& arguments, const Choice& choice) {
  const auto& program = std::get<ddp::TrainingProgram>(scenario.workload);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const trace_ddp::TracedRanks ranks,
      arguments.backend == "gloo"
          ? trace_ddp::TraceWithGloo(program, scenario.ranks, arguments.timeout_seconds)
          : trace_ddp::TraceWithSim(program, scenario.ranks, choice.rules));
  const trace_ddp::TraceTitle title = {scenario.name, program, scenario.ranks};
  const auto print = arguments.format == "golden"  ? trace_ddp::GoldenText
                     : arguments.format == "jsonl" ? trace_ddp::JsonText
                     : arguments.format == "csv"   ? trace_ddp::CsvText
                                                   : trace_ddp::TableText;
  fmt::print("{}", print(title, ranks));
  return trace_ddp::ExitCodeOf(ranks);
}

Result<ExitCode> Trace(const TraceDdpArguments& arguments) {
  trace_ddp::EndWhereMemoryLacks();
  LOCKSTEP_ASSIGN_OR_RETURN(const Choice choice, ReadChoice(arguments));
  std::vector<stress::scenario::Scenario> scenarios;  // all are right before one is run
  for (const std::string& path : arguments.paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(stress::scenario::Scenario scenario, Load(path, choice));
    scenarios.push_back(std::move(scenario));
  }
  if (arguments.format == "csv") fmt::print("{}", trace_ddp::CsvHead());
  ExitCode worst = ExitCode::kPass;
  for (const stress::scenario::Scenario& scenario : scenarios) {
    LOCKSTEP_ASSIGN_OR_RETURN(const ExitCode code, TraceOne(scenario, arguments, choice));
    if (worst != ExitCode::kFailed && code != ExitCode::kPass) worst = code;
  }
  return worst;
}

}  // namespace

Work AddTraceDdp(ArgumentParser& parser) {
  auto arguments = std::make_shared<TraceDdpArguments>();
  parser
      .Add("PROGRAM=FILE", arguments->paths,
           "Scenario files whose workload is ddp_training. Exit code 1: a rank fails, or waits for "
           "ever or is suspected to. 3: a rank timed out or did not end, and no more is known")
      .Required();
  parser
      .Add("--format=WORD", arguments->format,
           "Form of what is printed (text: a column for each rank; golden: as recordings of "
           "PyTorch; jsonl: a line for each program; csv: a row for each call of a rank)")
      .OneOf({"text", "golden", "jsonl", "csv"})
      .WordRenamed("json", "jsonl")
      .ShowDefault();
  parser
      .Add("--backend=WORD", arguments->backend,
           "Communication library (sim: virtual time; null: the same, since join's flags must come "
           "from somewhere; gloo: over loopback)")
      .ShowDefault();
  parser
      .Add("--sim-rules=WORD", arguments->rules,
           "Whose rules the simulation follows (nccl, mpi or gloo)")
      .ShowDefault();
  parser.Add("--ranks=COUNT", arguments->ranks, "Number of ranks (default: the program's)")
      .Between(1, kMaxRanks);
  parser.Add("--torch=VERSION", arguments->torch, "PyTorch whose rules count (1.9, 1.13 or 2.6)")
      .ShowDefault();
  parser
      .Add("-T,--timeout=TIME", arguments->timeout_seconds,
           "Silence of a rank that is taken for a hang (by gloo: how long a call may wait)")
      .BetweenReals(0.1, 3600.0)
      .ShowDefault();
  return [arguments] { return Trace(*arguments); };
}

}  // namespace lockstep::cli
