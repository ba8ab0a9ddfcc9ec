// Runs a launcher on this host, or one rank of a launch, watches the programs that it starts, and
// tells what goes wrong.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace lockstep::watch::run {

struct WatchOptions {
  std::vector<std::string> command;
  std::string library;             // liblockstep_watch.so
  std::string on_hang = "report";  // or "stacks" or "kill"
  std::string findings;            // a file, one line a finding; empty: none
  bool races = false;
  bool leaks = false;
  double silence_s = 300;  // after which a call of NCCL's that members miss is suspected; 0: never
  bool report = false;     // who waited for whom
  // The result: this file, or a new one in this folder. Both empty: below results/runs, with
  // `report` or where something is found.
  std::string output, output_folder;
};

// The command's own exit code (128 and the signal where one ended it); with on_hang "kill", 1
// after a hang.
Result<int> Watch(const WatchOptions& options);

}  // namespace lockstep::watch::run
