// `lockstep diagnose RUN.h5 …`: what a stored run found, case by case, with the histories that show
// why. It judges again only where other rules are asked for, or where the run judged nothing.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/diagnose/cases.h"
#include "cli/diagnose/flight.h"
#include "cli/diagnose/print.h"
#include "cli/diagnose/ras.h"
#include "cli/subcommand.h"
#include "core/base/version.h"
#include "core/verdict/finders/find.h"
#include "core/verdict/judge.h"
#include "core/verdict/trace.h"
#include "results/store/store.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DiagnoseArguments {
  std::vector<std::string> paths;
  diagnose::FlightOptions flight;
  diagnose::RasOptions ras;
  std::string format = "text";
  std::string backend;
  double deadline_seconds = 0;  // 0: the run's
  int rows = 6;
  int columns = 8;
};

struct Diagnosis {
  diagnose::StoredCase of;
  verdict::Judgement judgement;
  bool again = false;  // by other rules than the run's, or of what the run did not judge
  std::vector<verdict::Finding> notes;  // of what is no failure
  verdict::Trace trace;
};

// Who was slow does not tell why ranks failed. What the findings say of the same rank already is no
// note.
std::vector<verdict::Finding> NotesOf(const std::vector<verdict::RankEvidence>& evidence,
                                      const verdict::Judgement& judgement) {
  if (judgement.verdict == verdict::Verdict::kFail) return {};
  std::vector<verdict::Finding> notes = verdict::finders::FindSlowRanks(evidence);
  std::erase_if(notes, [&](const verdict::Finding& note) {
    return std::ranges::any_of(judgement.findings, [&](const verdict::Finding& f) {
      return f.cause == note.cause && f.culprits == note.culprits;
    });
  });
  return notes;
}

Diagnosis Diagnose(diagnose::StoredCase stored_case, const DiagnoseArguments& options) {
  Diagnosis diagnosis;
  verdict::Setting& setting = stored_case.setting;
  const bool other_rules = !options.backend.empty() || options.deadline_seconds > 0;
  if (!options.backend.empty()) setting.backend = options.backend;
  if (options.deadline_seconds > 0) setting.deadline_seconds = options.deadline_seconds;
  const verdict::Judgement again = diagnose::JudgeAgain(stored_case);
  // What ranks recovered from was judged with what was known before they did.
  const bool recovered = stored_case.record != nullptr && !stored_case.record->recoveries.empty();
  diagnosis.again = (other_rules && !recovered) || stored_case.stored == nullptr;
  diagnosis.judgement = diagnosis.again ? again : diagnose::AsStored(stored_case, again);
  diagnosis.notes = NotesOf(stored_case.evidence, diagnosis.judgement);
  verdict::TraceLimits limits{.rows_before = static_cast<std::size_t>(options.rows),
                              .columns = static_cast<std::size_t>(options.columns)};
  diagnosis.trace = verdict::TraceOf(stored_case.evidence, setting, diagnosis.judgement, limits);
  diagnosis.of = std::move(stored_case);
  return diagnosis;
}

// How sure one may be of what is said here.
std::string GroundsOf(const Diagnosis& diagnosis) {
  const results::store::CaseRecord* record = diagnosis.of.record;
  if (!diagnosis.again) {
    if (record == nullptr) return "";
    return fmt::format("  the run's verdict: {}, {}{}\n",
                       verdict::NameOf(record->judgement.verdict),
                       record->trial ? record->trial->why : "",
                       record->recoveries.empty() ? "" : "; ranks recovered: never judged again");
  }
  if (diagnosis.of.whole) return "  judged again, by the evidence that the run had\n";
  return "  judged again, by the journals: the file lacks what else was known of the ranks\n";
}

std::string NameOf(const diagnose::StoredCase& of) {
  if (of.record != nullptr) return of.record->name;
  return of.lifetime < 0 ? "Before lifetime 0" : fmt::format("Lifetime {}", of.lifetime);
}

std::string FormatText(const Diagnosis& diagnosis) {
  const diagnose::StoredCase& of = diagnosis.of;
  const std::string& backend = of.setting.backend;
  std::string text =
      diagnose::FormatFirstLine(diagnosis.judgement) +
      fmt::format("{}, {} ranks, backend {}: {}\n", NameOf(of), diagnosis.judgement.outcomes.size(),
                  backend.empty() ? "unknown" : backend,
                  verdict::NameOf(diagnosis.judgement.verdict));
  for (const verdict::Finding& finding : diagnosis.judgement.findings)
    text += diagnose::FormatFinding(finding, "  ");
  for (const verdict::Finding& note : diagnosis.notes)
    text += diagnose::FormatFinding(note, "  ", "note: ");
  text += diagnose::FormatOutcomes(diagnosis.judgement) + GroundsOf(diagnosis);
  const std::string trace = verdict::FormatTrace(diagnosis.trace);
  if (!trace.empty()) {
    text += fmt::format("\nLast collectives of communicator {}\n{}", diagnosis.trace.communicator,
                        trace);
  }
  return text;
}

Json ToJson(const std::string& path, const Diagnosis& diagnosis) {
  Json json = {{"file", path},
               {"lockstep", ThisVersionText()},
               {"lifetime", diagnosis.of.lifetime},
               {"backend", diagnosis.of.setting.backend},
               {"verdict", verdict::NameOf(diagnosis.judgement.verdict)},
               {"judged_again", diagnosis.again},
               {"whole_evidence", diagnosis.of.whole},
               {"outcomes", diagnose::ToJson(diagnosis.judgement.outcomes)},
               {"findings", diagnose::ToJson(diagnosis.judgement.findings)},
               {"notes", diagnose::ToJson(diagnosis.notes)}};
  if (const results::store::CaseRecord* record = diagnosis.of.record) {
    json["case"] = record->name;
    json["run_verdict"] = verdict::NameOf(record->judgement.verdict);
    if (record->trial) json["why"] = record->trial->why;
  }
  json["trace"] = diagnose::ToJson(diagnosis.trace);
  return json;
}

Result<verdict::Verdict> DiagnoseFile(const std::string& path, const DiagnoseArguments& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const results::store::Run run, results::store::ReadRun(path));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<diagnose::StoredCase> cases,
                            diagnose::StoredCasesOf(run, path));
  verdict::Verdict verdict = verdict::Verdict::kPass;
  if (options.format == "text" && options.paths.size() > 1) fmt::print("{}\n", path);
  for (diagnose::StoredCase& stored_case : cases) {
    const Diagnosis diagnosis = Diagnose(std::move(stored_case), options);
    verdict = diagnose::Worse(verdict, diagnosis.judgement.verdict);
    if (options.format == "jsonl") {
      fmt::print("{}\n",
                 ToJson(path, diagnosis).dump(-1, ' ', false, Json::error_handler_t::replace));
    } else if (options.format == "csv") {
      fmt::print("{}", diagnose::CsvRows(path, NameOf(diagnosis.of), diagnosis.of.setting.backend,
                                         diagnosis.judgement));
    } else {
      fmt::print("{}", FormatText(diagnosis));
    }
  }
  return verdict;
}

Result<ExitCode> RunDiagnose(const DiagnoseArguments& options) {
  if (!options.flight.directory.empty()) {
    if (!options.paths.empty() || !options.backend.empty()) {
      return InvalidInput("--flight-recorder goes without RUN files and without --backend");
    }
    diagnose::FlightOptions flight = options.flight;
    flight.format = options.format;
    if (options.deadline_seconds > 0) flight.deadline_seconds = options.deadline_seconds;
    flight.limits.rows_before = static_cast<std::size_t>(options.rows);
    flight.limits.columns = static_cast<std::size_t>(options.columns);
    if (options.ras.of.empty()) return diagnose::DiagnoseFlightRecorder(flight, nullptr);
    LOCKSTEP_ASSIGN_OR_RETURN(const diagnose::RasWitness ras, diagnose::HearRas(options.ras));
    return diagnose::DiagnoseFlightRecorder(flight, &ras);
  }
  if (!options.ras.of.empty()) {
    if (!options.paths.empty() || !options.backend.empty()) {
      return InvalidInput("--ras goes without RUN files and without --backend");
    }
    diagnose::RasOptions ras = options.ras;
    ras.format = options.format;
    return diagnose::DiagnoseRas(ras);
  }
  if (options.paths.empty()) {
    return InvalidInput(
        "diagnose: name RUN files (.h5), --flight-recorder and a directory of dumps, or --ras");
  }
  verdict::Verdict verdict = verdict::Verdict::kPass;
  if (options.format == "csv") fmt::print("{}", diagnose::CsvHead());
  for (const std::string& path : options.paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(const verdict::Verdict one, DiagnoseFile(path, options));
    verdict = diagnose::Worse(verdict, one);
  }
  const ExitCode code = verdict::ExitCodeOf(verdict);
  if (options.format == "text") fmt::print("exit code {}\n", static_cast<int>(code));
  return code;
}

}  // namespace

Work AddDiagnose(ArgumentParser& parser) {
  auto options = std::make_shared<DiagnoseArguments>();
  parser.Add("RUN=FILE", options->paths, "Run files (.h5)");
  parser.Add("--flight-recorder=FOLDER", options->flight.directory,
             "Instead of run files: a directory of PyTorch's Flight Recorder dumps");
  parser.Add("--prefix=TEXT", options->flight.prefix,
             "A part of the dumps' names: chooses one of several jobs in the directory");
  parser
      .Add("--ras=HOST:PORT", options->ras.of,
           "Instead of run files, or beside dumps: HOST:PORT of NCCL's RAS service (usually "
           "localhost:28028), or two files with its answers")
      .OneWordEach();
  parser.Add("--ras-interval=TIME", options->ras.seconds, "Between two looks at that service")
      .BetweenReals(0, 3600)
      .ShowDefault();
  parser
      .Add("--format=WORD", options->format,
           "Form of what is printed (text; jsonl: a line for each case or lifetime; csv: a row for "
           "each finding)")
      .OneOf({"text", "jsonl", "csv"})
      .WordRenamed("json", "jsonl")
      .ShowDefault();
  parser
      .Add("--backend=WORD", options->backend,
           "Communication library (judge again as of this one, instead of the run's)")
      .OneOf({"nccl", "mpi", "gloo", "null"});
  parser
      .Add("-T,--timeout=TIME", options->deadline_seconds,
           "Silence of a rank that is taken for a hang (judge again by this; default: the run's; "
           "of dumps 30 s, or the own time-out of a call where that is shorter)")
      .BetweenReals(0.001, 1e9);
  parser.Add("--rows=COUNT", options->rows, "Collectives shown before the one in question")
      .Between(0, 10'000)
      .ShowDefault();
  parser.Add("--columns=COUNT", options->columns, "Ranks shown side by side")
      .Between(1, 1000)
      .ShowDefault();
  parser.Renamed("--deadline", "--timeout");
  parser.Renamed("--ras-seconds", "--ras-interval");
  return [options] { return RunDiagnose(*options); };
}

}  // namespace lockstep::cli
