// Data and scripts that belong to the command: in an installation below its prefix, in a build tree
// among the run files of the target that runs. A script replaces this process.
#include "cli/exec_script.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace lockstep::cli {

namespace fs = std::filesystem;

Result<fs::path> ThisProgram() {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (!error) return binary;
  return EnvironmentError("/proc/self/exe: {}; is /proc mounted?", error.message());
}

Result<fs::path> FindData(const std::string& installed, const std::string& in_tree) {
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path binary, ThisProgram());
  std::vector<fs::path> roots;
  // A test's own are the newest: those of this program may be of an earlier build.
  for (const char* variable : {"RUNFILES_DIR", "TEST_SRCDIR"}) {
    if (const char* root = std::getenv(variable)) roots.emplace_back(root);
  }
  roots.emplace_back(binary.string() + ".runfiles");
  const fs::path in_prefix = binary.parent_path().parent_path() / installed;
  std::error_code error;
  if (fs::exists(in_prefix, error)) return in_prefix;
  for (const fs::path& root : roots) {
    const fs::path candidate = root / "lockstep" / in_tree;
    if (fs::exists(candidate, error)) return fs::absolute(candidate);
  }
  return EnvironmentError("{}: not found; install Lockstep with scripts/install",
                          in_prefix.string());
}

Status ExecScript(const std::string& installed, const std::string& in_tree,
                  const std::vector<std::string>& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path script, FindData(installed, in_tree));
  std::vector<std::string> words = {script.string()};
  // Of the wheel, whose Python has the packages that the script needs.
  if (const char* python = std::getenv("LOCKSTEP_PYTHON")) words.insert(words.begin(), python);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  return EnvironmentError("{}: cannot be run ({}); it needs /usr/bin/python3", words.front(),
                          std::strerror(errno));
}

Result<fs::path> ProgramsFolder() {
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path binary, ThisProgram());
  const fs::path folder = binary.parent_path();
  std::error_code error;
  return fs::exists(folder / "bench_allreduce", error) ? folder : folder.parent_path();
}

}  // namespace lockstep::cli
