// Reads a directory of dumps, has core/flight judge each job, and prints the diagnosis. What is
// specific to dumps is here: their format, missing ranks, and why nothing was found.
#include "cli/diagnose/flight.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/diagnose/print.h"
#include "core/base/version.h"
#include "core/flight/diagnosis.h"
#include "core/flight/files.h"
#include "core/flight/job.h"
#include "core/ras/witness.h"
#include "core/verdict/wording.h"

namespace lockstep::cli::diagnose {
namespace {

using Json = nlohmann::ordered_json;

std::string Versions(const flight::FlightJob& job) {
  const std::string& first = job.dumps.front().version;
  for (const flight::FlightDump& dump : job.dumps) {
    if (dump.version != first) return first + " and others";
  }
  return first;
}

// What is to be said of dumps in which nothing is found.
std::string WhyNothing(const flight::FlightDiagnosis& diagnosis, bool by_option) {
  if (!diagnosis.judgement.findings.empty()) return "";
  if (diagnosis.judgement.verdict == verdict::Verdict::kPass) {
    return "  every call in the dumps is done: what hangs, if anything does, is no collective\n";
  }
  if (!diagnosis.under_way || diagnosis.seconds >= diagnosis.deadline_seconds) return "";
  return fmt::format("  calls are under way, the newest for {:.3g} s: no hang before {}{:.3g}{}\n",
                     diagnosis.seconds, by_option ? "--timeout=" : "", diagnosis.deadline_seconds,
                     by_option ? "" : " s or their own time-out");
}

std::string FormatText(const flight::FlightJob& job, const flight::FlightDiagnosis& diagnosis,
                       bool by_option) {
  std::string text =
      FormatFirstLine(diagnosis.judgement) +
      fmt::format("{} dump{} of format {}, backend {}{}: {}\n", job.dumps.size(),
                  job.dumps.size() == 1 ? "" : "s", Versions(job), diagnosis.backend,
                  job.missing.empty() ? "" : ", none of " + verdict::FormatRanks(job.missing),
                  verdict::NameOf(diagnosis.judgement.verdict));
  for (const verdict::Finding& finding : diagnosis.judgement.findings)
    text += FormatFinding(finding, "  ");
  text += WhyNothing(diagnosis, by_option);
  for (const std::string& note : diagnosis.notes) text += fmt::format("  note: {}\n", note);
  if (!diagnosis.judgement.findings.empty()) text += FormatOutcomes(diagnosis.judgement);
  const std::string trace = verdict::FormatTrace(diagnosis.trace);
  if (trace.empty()) return text;
  return text + fmt::format("\nLast calls on {}\n{}", diagnosis.trace.communicator, trace);
}

Json ToJson(const std::string& directory, const flight::FlightFiles& files,
            const flight::FlightJob& job, const flight::FlightDiagnosis& diagnosis) {
  Json json = {{"directory", directory},
               {"prefix", files.prefix},
               {"hosts", Json::object()},
               {"lockstep", ThisVersionText()},
               {"dumps", job.dumps.size()},
               {"missing", job.missing},
               {"version", Versions(job)},
               {"backend", diagnosis.backend},
               {"verdict", verdict::NameOf(diagnosis.judgement.verdict)},
               {"seconds_silent", diagnosis.seconds},
               {"outcomes", diagnose::ToJson(diagnosis.judgement.outcomes)},
               {"findings", diagnose::ToJson(diagnosis.judgement.findings)},
               {"notes", diagnosis.notes}};
  for (const flight::FlightHost& host : files.hosts) json["hosts"][host.name] = host.ranks;
  json["trace"] = diagnose::ToJson(diagnosis.trace);
  return json;
}

}  // namespace

Result<ExitCode> DiagnoseFlightRecorder(const FlightOptions& options, const RasWitness* ras) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<flight::FlightFiles> jobs,
                            flight::FindFlightFiles(options.directory, options.prefix));
  if (ras != nullptr && jobs.size() > 1) {
    return InvalidInput(
        "--ras: {} holds dumps of {} jobs, and RAS is of one; choose one with --prefix",
        options.directory, jobs.size());
  }
  verdict::Verdict verdict = verdict::Verdict::kPass;
  if (options.format == "csv") fmt::print("{}", CsvHead());
  for (const flight::FlightFiles& files : jobs) {
    LOCKSTEP_ASSIGN_OR_RETURN(const flight::FlightJob job, flight::ReadFlightJob(files));
    LOCKSTEP_ASSIGN_OR_RETURN(
        flight::FlightDiagnosis diagnosis,
        flight::DiagnoseFlight(job, options.deadline_seconds, options.limits));
    if (ras != nullptr) {
      const bool one_group = job.teams.size() == 1 && ras->status.communicators.size() == 1;
      ras::Join(ras->testimony, one_group, diagnosis.judgement, diagnosis.notes);
    }
    verdict = Worse(verdict, diagnosis.judgement.verdict);
    if (options.format == "csv") {
      fmt::print("{}",
                 CsvRows(options.directory, files.prefix, diagnosis.backend, diagnosis.judgement));
      continue;
    }
    if (options.format == "jsonl") {
      Json json = ToJson(options.directory, files, job, diagnosis);
      if (ras != nullptr) json["ras"] = diagnose::ToJson(*ras);
      fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
      continue;
    }
    if (jobs.size() > 1) fmt::print("{}/{}\n", options.directory, files.prefix);
    fmt::print("{}", FormatText(job, diagnosis, options.deadline_seconds.has_value()));
  }
  const ExitCode code = verdict::ExitCodeOf(verdict);
  if (options.format == "text") fmt::print("exit code {}\n", static_cast<int>(code));
  return code;
}

}  // namespace lockstep::cli::diagnose
