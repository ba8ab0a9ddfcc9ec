// `lockstep status`: what every rank that `lockstep watch` watches on this host is in, now.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/subcommand.h"
#include "core/base/program.h"
#include "watch/status/jobs.h"
#include "watch/status/print.h"

namespace lockstep::cli {
namespace {

constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

struct StatusArguments {
  double every_seconds = 0;  // 0: once
  std::string format = "text";
};

Result<ExitCode> Watch(double every_seconds) {
  const bool screen = isatty(STDOUT_FILENO) != 0;
  for (bool first = true;; first = false) {
    const std::string table = watch::status::FormatTable(watch::status::LookAtJobs());
    fmt::print("{}{}", screen ? kClearScreen : first ? "" : "\n", table);
    LOCKSTEP_RETURN_IF_ERROR(FlushOutput());
    std::this_thread::sleep_for(std::chrono::duration<double>(every_seconds));
  }
}

Result<ExitCode> RunStatus(const StatusArguments& options) {
  const bool json = options.format == "json";
  if (json && options.every_seconds > 0) {
    return InvalidInput("--format=json prints one document; leave out --watch");
  }
  if (options.every_seconds > 0) return Watch(options.every_seconds);
  const std::vector<watch::status::JobNow> jobs = watch::status::LookAtJobs();
  fmt::print("{}", json ? watch::status::FormatJson(jobs) : watch::status::FormatTable(jobs));
  return ExitCode::kPass;
}

}  // namespace

Work AddStatus(ArgumentParser& parser) {
  auto options = std::make_shared<StatusArguments>();
  parser
      .Add("--watch=TIME", options->every_seconds,
           "Print the table again, until Ctrl-C (without a value: every 2 s)")
      .BetweenReals(0.1, 3600)
      .WithoutWordMeans(1, "2");
  parser.Add("--format=WORD", options->format, "Form of what is printed (text or json)")
      .OneOf({"text", "json"})
      .ShowDefault();
  parser.Renamed("--json", "--format=json");
  return [options] { return RunStatus(*options); };
}

}  // namespace lockstep::cli
