#include "cli/exec_script.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<fs::path> ThisProgram() {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (!error) return binary;
  return EnvironmentError(fmt::format("/proc/self/exe: {}; is /proc mounted?", error.message()));
}

Status ExecScript(const std::string& installed, const std::string& in_tree,
                  const std::vector<std::string>& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path binary, ThisProgram());
  const fs::path in_runfiles = fs::path("lockstep") / in_tree;
  std::vector<fs::path> candidates = {binary.parent_path().parent_path() / installed,
                                      fs::path(binary.string() + ".runfiles") / in_runfiles};
  for (const char* variable : {"RUNFILES_DIR", "TEST_SRCDIR"}) {
    if (const char* root = std::getenv(variable))
      candidates.push_back(fs::path(root) / in_runfiles);
  }
  std::error_code error;
  for (const fs::path& candidate : candidates) {
    if (!fs::exists(candidate, error)) continue;
    std::vector<std::string> words = {candidate.string()};
    // Of the wheel, whose Python has the packages that the script needs.
    if (const char* python = std::getenv("LOCKSTEP_PYTHON")) words.insert(words.begin(), python);
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    return EnvironmentError(fmt::format("{}: cannot be run ({}); it needs /usr/bin/python3",
                                        words.front(), std::strerror(errno)));
  }
  return EnvironmentError(fmt::format("{}: not found; install Lockstep with scripts/install",
                                      candidates.front().string()));
}

Result<fs::path> ProgramsFolder() {
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path binary, ThisProgram());
  const fs::path folder = binary.parent_path();
  std::error_code error;
  return fs::exists(folder / "bench_allreduce", error) ? folder : folder.parent_path();
}

}  // namespace lockstep::cli
