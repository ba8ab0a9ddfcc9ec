// `lockstep export RUN.h5 --format=FORMAT`: a run in the format of another program.
#include <fmt/core.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "cli/subcommand.h"
#include "core/flight/write.h"
#include "results/report/exports/exports.h"
#include "results/report/report.h"
#include "results/store/atomic_file.h"
#include "results/store/lifetimes.h"
#include "results/store/store.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

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

// 0 when the text is no time.
std::int64_t UnixNsOf(const std::string& iso) {
  std::tm time = {};
  if (strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time) == nullptr) return 0;
  return static_cast<std::int64_t>(timegm(&time)) * 1'000'000'000;
}

Status MakeEmpty(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return EnvironmentError("{}: {}; name one that can be made with --output-folder", directory,
                            error.message());
  }
  if (fs::is_empty(directory, error) && !error) return OkStatus();
  return InvalidInput(
      "{}: is not empty, and dumps of two runs must not mix; name a new one with --output-folder",
      directory);
}

// Writes DIR/nccl_trace_rank_<rank>, the dumps of PyTorch's Flight Recorder that one lifetime of
// the workers would have left; several lifetimes get a directory each, DIR/lifetime_<n>. DIR is
// made, or empty: dumps of two runs do not mix.
Status ExportFlightRecorder(const results::store::Run& run, const std::string& path,
                            const std::string& directory) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<results::store::Lifetime> lifetimes,
                            results::store::LifetimesOf(run, path));
  LOCKSTEP_RETURN_IF_ERROR(MakeEmpty(directory));
  const flight::FlightClock clock = {.ns_per_tick = run.ns_per_tick,
                                     .origin_ticks = run.origin_ticks,
                                     .origin_unix_ns = UnixNsOf(run.started_at)};
  for (const results::store::Lifetime& lifetime : lifetimes) {
    std::string place = directory;
    if (lifetimes.size() > 1) {
      place = (fs::path(directory) / fmt::format("lifetime_{}", lifetime.number)).string();
      LOCKSTEP_RETURN_IF_ERROR(MakeEmpty(place));
    }
    const auto dumps = flight::FlightDumpsOf(lifetime.evidence, clock,
                                             results::store::SettingOf(run).deadline_seconds);
    for (const auto& [rank, bytes] : dumps) {
      const fs::path file = fs::path(place) / fmt::format("nccl_trace_rank_{}", rank);
      LOCKSTEP_RETURN_IF_ERROR(results::store::WriteAtomically(
          file.string(), {std::as_bytes(std::span<const char>(bytes))}));
    }
  }
  return OkStatus();
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
    return InvalidInput(
        "--output-folder goes with --format=flight-recorder; name a file for {} with --output",
        options.format);
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
