// Takes two looks, hears the witness, and prints what it suspects. One look is never enough: ranks
// of a job that is well are always a few launches apart.
#include "cli/diagnose/ras.h"

#include <fmt/core.h>
#include <time.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/diagnose/print.h"
#include "core/base/file_text.h"
#include "core/base/version.h"
#include "core/ras/status.h"
#include "core/ras/witness.h"
#include "results/report/findings.h"

namespace lockstep::cli::diagnose {
namespace {

using Json = nlohmann::ordered_json;

bool IsFile(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(name, ignored);
}

Result<ras::JobStatus> Look(const std::string& name) {
  if (!IsFile(name)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string answer, ras::Ask(name));
    return ras::ParseStatus(answer, name);
  }
  const std::optional<std::string> text = ReadText(name);
  if (!text) return EnvironmentError("--ras {}: cannot be read; check its mode", name);
  return ras::ParseStatus(*text, name);
}

Status Check(const RasOptions& options) {
  if (options.of.size() > 2) {
    return InvalidInput("--ras is given {} times; give HOST:PORT once, or two files",
                        options.of.size());
  }
  if (options.of.size() == 1 && IsFile(options.of.front())) {
    return InvalidInput(
        "--ras {}: one look shows no progress; give a second file, taken some seconds later",
        options.of.front());
  }
  return OkStatus();
}

void Sleep(double seconds) {
  const double whole = std::floor(seconds);
  timespec left{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  nanosleep(&left, nullptr);
}

std::string FormatText(const RasWitness& witness) {
  const auto& [status, testimony] = witness;
  const verdict::Judgement judgement{testimony.verdict, {}, testimony.findings};
  std::string text = FormatFirstLine(judgement);
  if (text.empty()) {
    text = fmt::format("{}: {}\n", results::report::Shout(testimony.verdict), testimony.sentence);
  }
  text += fmt::format("two looks by the RAS of NCCL {}, {} communicator{}: a suspicion at most\n",
                      status.version.empty() ? "?" : status.version, status.communicators.size(),
                      status.communicators.size() == 1 ? "" : "s");
  for (const verdict::Finding& finding : testimony.findings) text += FormatFinding(finding, "  ");
  return text;
}

}  // namespace

Json ToJson(const RasWitness& witness) {
  return {{"lockstep", ThisVersionText()},
          {"nccl_version", witness.status.version},
          {"verdict", verdict::NameOf(witness.testimony.verdict)},
          {"why", witness.testimony.sentence},
          {"findings", ToJson(witness.testimony.findings)}};
}

Result<RasWitness> HearRas(const RasOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(Check(options));
  LOCKSTEP_ASSIGN_OR_RETURN(const ras::JobStatus first, Look(options.of.front()));
  if (options.of.size() == 1) Sleep(options.seconds);
  LOCKSTEP_ASSIGN_OR_RETURN(ras::JobStatus second, Look(options.of.back()));
  ras::Testimony testimony = ras::Hear(first, second);
  return RasWitness{std::move(second), std::move(testimony)};
}

Result<ExitCode> DiagnoseRas(const RasOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const RasWitness witness, HearRas(options));
  const ExitCode code = verdict::ExitCodeOf(witness.testimony.verdict);
  if (options.format == "jsonl") {
    fmt::print("{}\n", ToJson(witness).dump(-1, ' ', false, Json::error_handler_t::replace));
  } else if (options.format == "csv") {
    const verdict::Judgement judgement{witness.testimony.verdict, {}, witness.testimony.findings};
    fmt::print("{}{}", CsvHead(), CsvRows(options.of.front(), "", "nccl", judgement));
  } else {
    fmt::print("{}exit code {}\n", FormatText(witness), static_cast<int>(code));
  }
  return code;
}

}  // namespace lockstep::cli::diagnose
