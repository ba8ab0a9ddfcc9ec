#include "watch/run/stacks/stacks.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/agent/stack.h"
#include "core/base/deadline.h"
#include "core/base/file_text.h"
#include "watch/run/stacks/python_stacks.h"

namespace lockstep::watch::run::stacks {
namespace {

constexpr double kStackSeconds = 5;

// py-spy would say of any other program that it finds no Python.
bool RunsPython(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::error_code error;
  const std::string program = std::filesystem::read_symlink(folder + "/exe", error).filename();
  return program.starts_with("python") ||
         TextOf(folder + "/maps").find("libpython") != std::string::npos;
}

}  // namespace

std::string JoinStacks(std::string_view native, std::string_view python) {
  const std::size_t main = std::min(native.find("; thread "), native.size());
  std::string text(native.substr(0, main));
  text += python;
  return text.append(native.substr(main));
}

std::string StacksOf(pid_t pid) {
  const std::string python = RunsPython(pid) ? PythonThreads(pid) : "";
  return JoinStacks(agent::StackText(pid, Deadline::AfterSeconds(kStackSeconds)), python);
}

}  // namespace lockstep::watch::run::stacks
