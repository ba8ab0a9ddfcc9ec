// `lockstep watch`: looks on while an unmodified MPI program runs, and names what went wrong.
#include "watch/run/watch.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/exec_script.h"
#include "cli/subcommand.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// Beside this program in an installation, among the run files in a build tree.
Result<std::string> FindLibrary() {
  constexpr const char* kName = "liblockstep_watch.so";
  const fs::path in_tree = fs::path("lockstep") / "watch" / "preload" / kName;
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path binary, ThisProgram());
  std::vector<fs::path> candidates = {binary.parent_path().parent_path() / "lib" / kName,
                                      fs::path(binary.string() + ".runfiles") / in_tree};
  for (const char* variable : {"RUNFILES_DIR", "TEST_SRCDIR"}) {
    if (const char* root = std::getenv(variable)) candidates.push_back(fs::path(root) / in_tree);
  }
  std::error_code error;
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate, error)) return fs::absolute(candidate).string();
  }
  return EnvironmentError(fmt::format("{}: not found; install Lockstep with scripts/install",
                                      candidates.front().string()));
}

}  // namespace

Work AddWatch(ArgumentParser& parser) {
  auto options = std::make_shared<watch::run::WatchOptions>();
  parser.Add("COMMAND", options->command, "After `--`: the launcher and its arguments").Required();
  parser.Add("--on-hang", options->on_hang, "What to do when ranks are proved to be stuck")
      .OneOf({"report", "kill"})
      .ShowDefault();
  parser.Flag("--races", options->races, "Also tell of messages that race for MPI_ANY_SOURCE");
  parser.Add("--findings", options->findings, "A file: one line a finding, fields between tabs");
  return [options]() -> Result<ExitCode> {
    LOCKSTEP_ASSIGN_OR_RETURN(options->library, FindLibrary());
    LOCKSTEP_ASSIGN_OR_RETURN(const int code, watch::run::Watch(*options));
    return static_cast<ExitCode>(code);  // the launcher's own
  };
}

}  // namespace lockstep::cli
