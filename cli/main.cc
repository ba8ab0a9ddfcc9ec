// `lockstep SUBCOMMAND …`: what Lockstep knows, on the console.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/exec_script.h"
#include "cli/subcommand.h"

namespace lockstep::cli {
namespace {

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

int FailOutput() {
  return Fail("cannot write to standard output; free space there or redirect it",
              ExitCode::kEnvironment);
}

int FailAbsent(const Subcommand& subcommand) {
  return Fail(fmt::format("'{}' starts or watches programs, which the Python wheel does not; "
                          "install another package of Lockstep, or build it",
                          subcommand.name),
              ExitCode::kEnvironment);
}

// Leaves this process to the program of a subcommand; returns only on an error.
int RunScript(const Subcommand& subcommand, const std::vector<std::string>& arguments) {
  const Script& script = *subcommand.script;
  std::vector<std::string> words;
  if (script.runs_programs) {
    const Result<std::filesystem::path> folder = ProgramsFolder();
    if (!folder.ok()) return Fail(folder.status().message(), ExitCodeOf(folder.status().code()));
    words.push_back("--programs=" + folder->string());  // one of the user's comes later and counts
  }
  words.insert(words.end(), arguments.begin() + 1, arguments.end());
  setenv("LOCKSTEP_COMMAND", fmt::format("lockstep {}", subcommand.name).c_str(), 1);
  const Status failed = ExecScript(fmt::format("libexec/lockstep/{}", script.name),
                                   fmt::format("scripts/{}", script.name), words);
  return Fail(failed.message(), ExitCodeOf(failed.code()));
}

int Do(const Work& work) {
  const Result<ExitCode> result = work();
  if (!result.ok()) return Fail(result.status().message(), ExitCodeOf(result.status().code()));
  return FlushOutput() ? static_cast<int>(*result) : FailOutput();
}

int Main(int argc, char** argv) {
  ArgumentParser parser(
      "Lockstep: what the communication of data-parallel training does on this machine",
      "lockstep");
  std::vector<std::string> arguments(argv + 1, argv + argc);
  Work chosen;
  for (const Subcommand& each : Subcommands()) {
    const bool named = !arguments.empty() && arguments.front() == each.name;
    if (named && !IsHere(each)) return FailAbsent(each);
    if (named && each.script != nullptr) return RunScript(each, arguments);
    if (!IsHere(each)) continue;
    const auto work = std::make_shared<Work>();
    ArgumentParser command =
        parser.Subcommand(each.name, each.help, [&chosen, work] { chosen = *work; });
    if (each.script != nullptr) continue;  // listed by --help
    *work = each.add(command);
    if (named && each.rewrite != nullptr) each.rewrite(arguments);
  }
  const Result<std::optional<std::string>> text = parser.Parse(std::move(arguments));
  if (!text.ok()) return Fail(text.status().message(), ExitCode::kUsage);
  if (*text) {
    fmt::print("{}", **text);
    return FlushOutput() ? static_cast<int>(ExitCode::kPass) : FailOutput();
  }
  LOCKSTEP_CHECK(chosen, "a subcommand was parsed but left no work");
  return Do(chosen);
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  try {
    return lockstep::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    // fmt::print throws where fwrite fails, which it does once its buffer is full.
    if (std::ferror(stdout) != 0) return lockstep::cli::FailOutput();
    return lockstep::cli::Fail(fmt::format("internal error: {}", error.what()),
                               lockstep::ExitCode::kInternal);
  }
}
