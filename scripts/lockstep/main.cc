// `lockstep SUBCOMMAND …`: what Lockstep knows, on the console.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "scripts/lockstep/commands.h"

namespace lockstep {
namespace {

constexpr const char* kVersion = "lockstep 0.1.0";

// In the order of --help.
constexpr AddCommand* kCommands[] = {
    AddBuckets, AddCompare, AddDiagnose, AddDoctor, AddExport, AddMakeDataset, AddNightly,
    AddReport,  AddSampler, AddScore,    AddShow,   AddStress, AddTraceDdp,    AddTrend,
};

std::string OneLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int Fail(const std::string& message, ExitCode code) {
  fmt::print(stderr, "lockstep: {}\n", OneLine(message));
  return static_cast<int>(code);
}

// Output that could not be written (a full disk, a closed pipe) must not look like success.
bool FlushOutput() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

// CLI11 says only that a subcommand is missing when the word given is none.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> words = app.remaining();
  const bool unknown = app.get_subcommands().empty() && !words.empty();
  if (!unknown || words.front().starts_with('-')) return OneLine(error.what());
  std::string names;
  for (const CLI::App* known : app.get_subcommands([](const CLI::App*) { return true; })) {
    names += " " + known->get_name();
  }
  return fmt::format("'{}' is not a subcommand; choose from:{}", OneLine(words.front()), names);
}

int Main(int argc, char** argv) {
  CLI::App app("Lockstep: what the communication of data-parallel training does on this machine");
  app.name("lockstep");
  app.set_version_flag("--version", kVersion, "Print the version and exit");
  app.require_subcommand(1);
  Command chosen;
  for (AddCommand* add : kCommands) add(app, chosen);
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    SeparateSides(arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
  } catch (const CLI::Success& request) {  // --help, --version
    app.exit(request);
    return static_cast<int>(ExitCode::kPass);
  } catch (const CLI::ParseError& error) {
    return Fail(fmt::format("{}; try lockstep --help", Explain(app, error)), ExitCode::kUsage);
  }
  LOCKSTEP_CHECK(chosen, "a subcommand was parsed but left no work");
  const Result<ExitCode> result = chosen();
  if (!result.ok()) return Fail(result.status().message(), ExitCodeOf(result.status().code()));
  if (!FlushOutput()) {
    return Fail("cannot write to standard output; free space there or redirect it",
                ExitCode::kEnvironment);
  }
  return static_cast<int>(*result);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    return lockstep::Main(argc, argv);
  } catch (const std::exception& error) {
    return lockstep::Fail(fmt::format("internal error: {}", error.what()),
                          lockstep::ExitCode::kInternal);
  }
}
