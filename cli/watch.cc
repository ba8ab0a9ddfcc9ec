// `lockstep watch`: looks on while an unmodified program runs, and names what went wrong.
#include "watch/run/watch.h"

#include <filesystem>
#include <memory>
#include <string>

#include "cli/exec_script.h"
#include "cli/subcommand.h"

namespace lockstep::cli {

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
  parser.Flag("--leaks", options->leaks,
              "Also tell of communicators, datatypes and other objects that nobody freed");
  parser
      .Add(
          "-T,--timeout=TIME", options->silence_s,
          "Silence of a rank that is taken for a hang (of NCCL, where nothing is proved; 0: never)")
      .BetweenReals(0, 1e6)
      .ShowDefault();
  parser.Renamed("--silence", "--timeout");
  parser.Add("--findings=FILE", options->findings,
             "Also write the findings to this file (one line each, fields between tabs)");
  parser
      .Flag("--report", options->report,
            "At the end print who waited for whom (the result holds it, too)")
      .ValueMoved("--output=");
  parser.Add("--output=FILE", options->output,
             "File to write (the result; default: below results/runs, with --report or where "
             "something was found)");
  parser.Add("--output-folder=FOLDER", options->output_folder,
             "Folder to write (a new result in it, instead of --output)");
  return [options]() -> Result<ExitCode> {
    if (!options->output.empty() && !options->output_folder.empty()) {
      return InvalidInput("--output names one file, --output-folder a new one; give one of both");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::filesystem::path library,
        FindData("lib/liblockstep_watch.so", "watch/preload/liblockstep_watch.so"));
    options->library = library.string();
    LOCKSTEP_ASSIGN_OR_RETURN(const int code, watch::run::Watch(*options));
    return static_cast<ExitCode>(code);  // the launcher's own
  };
}

}  // namespace lockstep::cli
