// What the stand-in library is told to do wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::comm::nccl {

// From the environment variable LOCKSTEP_FAKE_NCCL: CALL:ACTION[=VALUE][:rank=N][:nth=N], several
// separated by ';'. CALL is NCCL's name; `rank` is of the communicator, -1 where there is none;
// `nth` counts this call on this communicator from 1 (default: each). Actions:
//   error=CODE  the call returns CODE
//   hang        the call returns only when the communicator is aborted
//   freeze      the call never returns
//   kill        the process is killed in the call
//   progress    the call returns ncclInProgress, and stays in progress
//   slow=MS     the call returns ncclInProgress, and is through after so long
//   stuck       the operation never completes on its stream, until it is aborted
//   async=CODE  the same, and ncclCommGetAsyncError says CODE
//   corrupt     the operation's result has one wrong byte
struct FakeFault {
  std::string call;
  std::string action;
  int value = 0;
  int rank = -1;  // any
  int nth = 0;    // any
};

std::vector<FakeFault> FakeFaultsFromEnvironment();

}  // namespace lockstep::comm::nccl
