// `lockstep export RUN.h5 --format=FORMAT`: a run in the format of another program.
#include <fmt/core.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/export_flight.h"
#include "cli/subcommand.h"
#include "results/report/exports/exports.h"
#include "results/report/report.h"
#include "results/store/atomic_file.h"
#include "results/store/store.h"

namespace lockstep::cli {
namespace {

using Formatter = std::string(const results::store::Run&);

const std::map<std::string, Formatter*>& Formatters() {
  static const std::map<std::string, Formatter*> formatters = {
      {"chrome-trace", results::report::exports::FormatChromeTrace},
      {"prometheus", results::report::exports::FormatPrometheus},
      {"openmetrics", results::report::exports::FormatOpenMetrics},
      {"junit", results::report::exports::FormatJunit},
      {"jsonl", results::report::FormatJsonLines},
      {"csv", results::report::FormatCsv},
      {"gbench", results::report::exports::FormatGoogleBenchmark}};
  return formatters;
}

// A directory with a file a rank.
constexpr const char* kFlightRecorder = "flight-recorder";

std::vector<std::string> FormatNames() {
  std::vector<std::string> names = {kFlightRecorder};
  for (const auto& [name, formatter] : Formatters()) names.push_back(name);
  return names;
}

struct Options {
  std::string path;
  std::string format;
  std::string output = "-";
};

Result<ExitCode> Export(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const results::store::Run run, results::store::ReadRun(options.path));
  if (options.format == kFlightRecorder) {
    LOCKSTEP_RETURN_IF_ERROR(ExportFlightRecorder(run, options.path, options.output));
    return ExitCode::kPass;
  }
  const std::string text = Formatters().at(options.format)(run);
  if (options.output == "-") {
    fmt::print("{}", text);
  } else {
    LOCKSTEP_RETURN_IF_ERROR(results::store::WriteAtomically(
        options.output, {std::as_bytes(std::span<const char>(text))}));
  }
  return ExitCode::kPass;
}

}  // namespace

Work AddExport(ArgumentParser& parser) {
  auto options = std::make_shared<Options>();
  parser.Add("RUN", options->path, "A run file (.h5)").Required();
  parser
      .Add("--format", options->format,
           "chrome-trace (Perfetto), prometheus, openmetrics, junit, jsonl, csv, gbench, or "
           "flight-recorder (PyTorch's: -o names a directory)")
      .OneOf(FormatNames())
      .Required();
  parser.Add("-o,--output", options->output, "File to write (atomically); - for stdout")
      .ShowDefault();
  return [options] { return Export(*options); };
}

}  // namespace lockstep::cli
