// `lockstep SUBCOMMAND …`: what Lockstep knows, on the console.
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/exec_script.h"
#include "cli/subcommand.h"
#include "core/base/program.h"

namespace lockstep::cli {
namespace {

Status Absent(const Subcommand& subcommand) {
  return EnvironmentError(
      "'{}' starts or watches programs, which the Python wheel does not; install another package "
      "of "
      "Lockstep, or build it",
      subcommand.name);
}

// Leaves this process to the program of a subcommand; returns only on an error.
Status RunScript(const Subcommand& subcommand, const std::vector<std::string>& arguments) {
  const Script& script = *subcommand.script;
  std::vector<std::string> words;
  if (script.runs_programs) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::filesystem::path folder, ProgramsFolder());
    words.push_back("--programs=" + folder.string());  // one of the user's comes later and counts
  }
  words.insert(words.end(), arguments.begin() + 1, arguments.end());
  setenv("LOCKSTEP_COMMAND", fmt::format("lockstep {}", subcommand.name).c_str(), 1);
  return ExecScript(fmt::format("libexec/lockstep/{}", script.name),
                    fmt::format("scripts/{}", script.name), words);
}

Result<ExitCode> Main(int argc, char** argv) {
  ArgumentParser parser(
      "Lockstep: what the communication of data-parallel training does on this machine",
      "lockstep");
  std::vector<std::string> arguments(argv + 1, argv + argc);
  Work chosen;
  for (const Subcommand& each : Subcommands()) {
    const bool named = !arguments.empty() && arguments.front() == each.name;
    if (named && !IsHere(each)) return Absent(each);
    if (named && each.script != nullptr) return RunScript(each, arguments);
    if (!IsHere(each)) continue;
    const auto work = std::make_shared<Work>();
    ArgumentParser command =
        parser.Subcommand(each.name, each.help, [&chosen, work] { chosen = *work; });
    if (each.script != nullptr) continue;  // listed by --help
    *work = each.add(command);
    if (named && each.rewrite != nullptr) each.rewrite(arguments);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                            parser.Parse(std::move(arguments)));
  if (text) {
    fmt::print("{}", *text);
    return ExitCode::kPass;
  }
  LOCKSTEP_CHECK(chosen, "a subcommand was parsed but left no work");
  return chosen();
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  return lockstep::RunProgram("lockstep", [=] { return lockstep::cli::Main(argc, argv); });
}
