// `lockstep export RUN.h5 --format=FORMAT`: a run in the format of another program.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "results/report/exports/exports.h"
#include "results/report/report.h"
#include "results/store/atomic_file.h"
#include "results/store/store.h"
#include "scripts/lockstep/commands.h"

namespace lockstep {
namespace {

using Formatter = std::string(const Run&);

const std::map<std::string, Formatter*>& Formatters() {
  static const std::map<std::string, Formatter*> formatters = {
      {"chrome-trace", FormatChromeTrace}, {"prometheus", FormatPrometheus},
      {"openmetrics", FormatOpenMetrics},  {"junit", FormatJunit},
      {"jsonl", FormatJsonLines},          {"gbench", FormatGoogleBenchmark}};
  return formatters;
}

struct Options {
  std::string path;
  std::string format;
  std::string output = "-";
};

Result<ExitCode> Export(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Run run, ReadRun(options.path));
  const std::string text = Formatters().at(options.format)(run);
  if (options.output == "-") {
    fmt::print("{}", text);
  } else {
    LOCKSTEP_RETURN_IF_ERROR(
        WriteAtomically(options.output, {std::as_bytes(std::span<const char>(text))}));
  }
  return ExitCode::kPass;
}

}  // namespace

void AddExport(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("export", "Write a run in another program's format");
  command->add_option("RUN", options->path, "A run file (.h5)")->required();
  command
      ->add_option("--format", options->format,
                   "chrome-trace (Perfetto), prometheus, openmetrics, junit, jsonl or gbench")
      ->check(CLI::IsMember(Formatters()))
      ->required();
  command->add_option("-o,--output", options->output, "File to write (atomically); - for stdout")
      ->capture_default_str();
  command->callback([options, &chosen] { chosen = [options] { return Export(*options); }; });
}

}  // namespace lockstep
