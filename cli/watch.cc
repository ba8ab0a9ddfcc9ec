// `lockstep watch`: looks on while an unmodified MPI program runs, and names what went wrong.
#include "watch/run/watch.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/exec_script.h"
#include "cli/subcommand.h"

namespace lockstep::cli {

// --report stands alone or with =FILE: a word behind it would be the launcher, or its `--`.
void NameReport(std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  std::replace(arguments.begin(), end, std::string("--report"),
               std::string("--report=results/runs"));
}

Work AddWatch(ArgumentParser& parser) {
  auto options = std::make_shared<watch::run::WatchOptions>();
  parser.Add("COMMAND=WORD", options->command, "After `--`: the launcher and its arguments")
      .Required();
  parser
      .Add("--on-hang=WORD", options->on_hang,
           "What to do when ranks are proved to be stuck: only report, print their stacks, too, or "
           "end the launch")
      .OneOf({"report", "stacks", "kill"})
      .ShowDefault();
  parser.Flag("--races", options->races, "Also tell of messages that race for MPI_ANY_SOURCE");
  parser
      .Add("--silence=TIME", options->silence_s,
           "Suspect a missing call of NCCL when nothing was called for so long (0: never)")
      .BetweenReals(0, 1e6)
      .ShowDefault();
  parser.Add("--findings=FILE", options->findings,
             "Write the findings to this file (one line each, fields between tabs)");
  parser.Add("--report=FILE", options->report,
             "At the end print who waited for whom, and write it to this file (.h5), or to a new "
             "one in this folder (without =FILE: results/runs)");
  return [options]() -> Result<ExitCode> {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::filesystem::path library,
        FindData("lib/liblockstep_watch.so", "watch/preload/liblockstep_watch.so"));
    options->library = library.string();
    LOCKSTEP_ASSIGN_OR_RETURN(const int code, watch::run::Watch(*options));
    return static_cast<ExitCode>(code);  // the launcher's own
  };
}

}  // namespace lockstep::cli
