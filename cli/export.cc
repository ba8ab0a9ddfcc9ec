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

struct ExportArguments {
  std::string path;
  std::string format;
  std::string output = "-";
  std::string folder;
};

Result<ExitCode> Export(const ExportArguments& options) {
  const bool folder = options.format == kFlightRecorder;
  if (folder && (options.folder.empty() || options.output != "-")) {
    return InvalidInput(
        "--format=flight-recorder writes a file for each rank; name a folder with --output-folder");
  }
  if (!folder && !options.folder.empty()) {
    return InvalidInput(fmt::format(
        "--output-folder goes with --format=flight-recorder; name a file for {} with --output",
        options.format));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const results::store::Run run, results::store::ReadRun(options.path));
  if (folder) {
    LOCKSTEP_RETURN_IF_ERROR(ExportFlightRecorder(run, options.path, options.folder));
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
  auto options = std::make_shared<ExportArguments>();
  parser.Add("RUN=FILE", options->path, "A run file (.h5)").Required();
  parser
      .Add("--format=WORD", options->format,
           "Form of what is printed (chrome-trace is Perfetto's; flight-recorder is PyTorch's, and "
           "needs --output-folder)")
      .OneOf(FormatNames())
      .Required();
  parser.Add("--output=FILE", options->output, "File to write (atomically; - for stdout)")
      .ShowDefault();
  parser.Add("--output-folder=FOLDER", options->folder,
             "Folder to write (a new or empty one, for flight-recorder's file of each rank)");
  parser.Renamed("-o", "--output");
  return [options] { return Export(*options); };
}

}  // namespace lockstep::cli
