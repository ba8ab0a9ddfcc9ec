// One launch of a program of ours under its launcher, from start to end.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace lockstep::cli {

struct LaunchOrder {
  std::vector<std::string> words;  // mpirun …
  std::string log;                 // a file for what it says
  // The last file that the launch writes; "": none tells its end. Once it is there, the launcher
  // has 10 s to leave: Open MPI 4.1's mpirun now and then waits for ever in PMIx_server_finalize
  // after a rank was lost.
  std::string result;
  double limit_seconds = 0;  // then it is ended
};

// How the launcher ended. Its exit code is no verdict: mpirun reports 1 for a case that ended as it
// should, when a worker of it was killed.
struct LaunchEnd {
  int exit_code = 0;
  // This process was told to end (SIGINT, SIGTERM), and passed that on before the launch was over:
  // what the launch left says how it was ended, and is no result.
  bool interrupted = false;
};

// While it lives, SIGINT and SIGTERM end launches, running ones and those to come, instead of this
// process, so that what is over is still stored and told.
class SignalsNoted {
 public:
  SignalsNoted();
  ~SignalsNoted();
  SignalsNoted(const SignalsNoted&) = delete;
  SignalsNoted& operator=(const SignalsNoted&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

// Runs it to its end. Where the launcher failed, also what it left behind has 10 s to end.
// kEnvironment when it can't be started.
Result<LaunchEnd> RunLaunch(const LaunchOrder& order);

}  // namespace lockstep::cli
