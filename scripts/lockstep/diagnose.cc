// `lockstep diagnose RUN.h5 …`: judges the histories of a stored run again and shows why.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/verdict/judge.h"
#include "core/verdict/trace.h"
#include "results/store/store.h"
#include "scripts/lockstep/commands.h"
#include "scripts/lockstep/diagnose_evidence.h"
#include "scripts/lockstep/diagnose_flight.h"
#include "scripts/lockstep/diagnose_print.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> paths;
  FlightOptions flight;
  std::string format = "text";
  std::string backend;
  double deadline_seconds = 0;  // 0: the run's
  int rows = 6;
  int columns = 8;
};

struct Diagnosis {
  int lifetime = 0;
  std::size_t ranks = 0;
  Setting setting;
  Judgement judgement;
  std::vector<Finding> notes;  // of what is no failure
  Trace trace;
};

// A failure outweighs what nobody knows.
Verdict Worse(Verdict a, Verdict b) {
  if (a == Verdict::kFail || b == Verdict::kFail) return Verdict::kFail;
  return a == Verdict::kUnknown ? a : b;
}

Diagnosis Diagnose(const Lifetime& lifetime, const Setting& setting, const Options& options) {
  Diagnosis diagnosis;
  diagnosis.lifetime = lifetime.number;
  diagnosis.ranks = lifetime.evidence.size();
  diagnosis.setting = setting;
  diagnosis.judgement = Judge(lifetime.evidence, setting);
  diagnosis.notes = FindSlowRanks(lifetime.evidence);
  TraceLimits limits;
  limits.rows_before = static_cast<std::size_t>(options.rows);
  limits.columns = static_cast<std::size_t>(options.columns);
  diagnosis.trace = TraceOf(lifetime.evidence, setting, diagnosis.judgement, limits);
  return diagnosis;
}

std::string FormatText(const Diagnosis& diagnosis) {
  std::string text =
      fmt::format("Lifetime {}, {} ranks, backend {}: {}\n", diagnosis.lifetime, diagnosis.ranks,
                  diagnosis.setting.backend.empty() ? "unknown" : diagnosis.setting.backend,
                  NameOf(diagnosis.judgement.verdict));
  for (const Finding& finding : diagnosis.judgement.findings) text += FormatFinding(finding, "  ");
  for (const Finding& note : diagnosis.notes) text += FormatFinding(note, "  ");
  text += FormatOutcomes(diagnosis.judgement);
  const std::string trace = FormatTrace(diagnosis.trace);
  if (!trace.empty()) {
    text +=
        fmt::format("Last collectives of communicator {}\n{}", diagnosis.trace.communicator, trace);
  }
  return text;
}

Json ToJson(const std::string& path, const Diagnosis& diagnosis) {
  Json json = {{"file", path},
               {"lifetime", diagnosis.lifetime},
               {"backend", diagnosis.setting.backend},
               {"verdict", NameOf(diagnosis.judgement.verdict)},
               {"outcomes", Json::array()},
               {"findings", Json::array()},
               {"notes", Json::array()}};
  for (const RankOutcome& rank : diagnosis.judgement.outcomes) {
    json["outcomes"].push_back(ToJson(rank));
  }
  for (const Finding& finding : diagnosis.judgement.findings) {
    json["findings"].push_back(ToJson(finding));
  }
  for (const Finding& note : diagnosis.notes) json["notes"].push_back(ToJson(note));
  json["trace"] = ToJson(diagnosis.trace);
  return json;
}

Result<Verdict> DiagnoseFile(const std::string& path, const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Run run, ReadRun(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Lifetime> lifetimes, LifetimesOf(run, path));
  Setting setting = SettingOf(run);
  if (!options.backend.empty()) setting.backend = options.backend;
  if (options.deadline_seconds > 0) setting.deadline_seconds = options.deadline_seconds;
  Verdict verdict = Verdict::kPass;
  if (options.format == "text" && options.paths.size() > 1) fmt::print("{}\n", path);
  for (const Lifetime& lifetime : lifetimes) {
    const Diagnosis diagnosis = Diagnose(lifetime, setting, options);
    verdict = Worse(verdict, diagnosis.judgement.verdict);
    if (options.format == "json") {
      fmt::print("{}\n",
                 ToJson(path, diagnosis).dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      fmt::print("{}", FormatText(diagnosis));
    }
  }
  return verdict;
}

Result<ExitCode> RunDiagnose(const Options& options) {
  if (!options.flight.directory.empty()) {
    if (!options.paths.empty() || !options.backend.empty()) {
      return InvalidInput("--flight-recorder goes without RUN files and without --backend");
    }
    FlightOptions flight = options.flight;
    flight.json = options.format == "json";
    if (options.deadline_seconds > 0) flight.deadline_seconds = options.deadline_seconds;
    flight.limits.rows_before = static_cast<std::size_t>(options.rows);
    flight.limits.columns = static_cast<std::size_t>(options.columns);
    return DiagnoseFlightRecorder(flight);
  }
  if (options.paths.empty()) {
    return InvalidInput(
        "diagnose: name RUN files (.h5), or --flight-recorder and a directory of dumps");
  }
  Verdict verdict = Verdict::kPass;
  for (const std::string& path : options.paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Verdict one, DiagnoseFile(path, options));
    verdict = Worse(verdict, one);
  }
  const ExitCode code = ExitCodeOf(verdict);
  if (options.format == "text") fmt::print("exit code {}\n", static_cast<int>(code));
  return code;
}

}  // namespace

void AddDiagnose(ArgumentParser& parser, Command& chosen) {
  auto options = std::make_shared<Options>();
  ArgumentParser command = parser.Subcommand(
      "diagnose", "Judge the histories of runs again: who waits for whom, and why",
      [options, &chosen] { chosen = [options] { return RunDiagnose(*options); }; });
  command.Add("RUN", options->paths, "Run files (.h5)");
  command.Add("--flight-recorder", options->flight.directory,
              "Instead of run files: a directory of PyTorch's Flight Recorder dumps");
  command.Add("--prefix", options->flight.prefix,
              "Of the dumps' names, before the rank; needed only where there are several");
  command.Add("--format", options->format, "text, or json: one line a lifetime")
      .OneOf({"text", "json"})
      .ShowDefault();
  command.Add("--backend", options->backend, "Whose rules hold, instead of the run's")
      .OneOf({"nccl", "mpi", "gloo", "null"});
  command
      .Add("--deadline", options->deadline_seconds,
           "Seconds of silence that make a suspicion, instead of the run's (dumps: 30)")
      .BetweenReals(0.001, 1e9);
  command.Add("--rows", options->rows, "Collectives shown before the one in question")
      .Between(0, 10'000)
      .ShowDefault();
  command.Add("--columns", options->columns, "Ranks shown side by side")
      .Between(1, 1000)
      .ShowDefault();
}

}  // namespace lockstep
