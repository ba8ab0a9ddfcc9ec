// NCCL as a communicator, from a library that is chosen at run time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/comm/communicator.h"

namespace lockstep::comm::nccl {

struct NcclOptions {
  std::string library;              // a file; empty: the libnccl.so.2 that the dynamic linker finds
  double operation_seconds = 1800;  // longest time of a call, and of an operation that blocks
  double abort_seconds = 10;
  double finalize_seconds = 10;
  // Buffers are registered with NCCL (ncclCommRegister, from 2.19) when they are first used.
  bool register_buffers = false;
  // True: gives up what is in progress, above all connecting to ranks that do not come. May be
  // empty.
  std::function<bool()> given_up = {};
  // Called when a call came back neither in its time nor after an abort. Default: prints the line
  // and ends the process with ExitCode::kFailed.
  void (*last_resort)(const std::string& why) = nullptr;
};

// Every collective, type and reduction. A barrier is an all-reduce of one element, as in PyTorch.
// Abort ends what this rank's streams wait for; peers hear of it as ncclRemoteError where a network
// transport connects them, and else have to abort by themselves.
const Capabilities& NcclCapabilities();

class NcclCommunicator : public Communicator {
 public:
  // Ends the communicator like a program that is done, within finalize_seconds; aborts it when that
  // fails or it had failed. The destructor does the same and prints the error.
  virtual Status Close() = 0;

  // From 2.27.3: the ranks that are not excluded, on each of them. `abort` ends what is in flight.
  virtual Result<std::unique_ptr<NcclCommunicator>> Shrink(std::span<const int> excluded,
                                                           bool abort, Deadline deadline) = 0;
  // From 2.28.7: stops what is in flight; then Split, Shrink (with abort) or the end.
  virtual Status Revoke(Deadline deadline) = 0;
};

// Collective over `size` ranks. `device` outlives the communicator; it is CUDA's, or for a library
// of tests the host's. `prefix` is of the meeting's keys: the same on all ranks, used once.
Result<std::unique_ptr<NcclCommunicator>> ConnectNccl(int rank, int size, Meeting& meeting,
                                                      const std::string& prefix,
                                                      device::Device& device,
                                                      const NcclOptions& options,
                                                      Deadline deadline);

// What can be told of a library without a device. kEnvironment when it can't be loaded.
struct NcclLibraryFacts {
  std::string path;
  std::string version;    // "2.28.9"
  int version_code = 0;   // 22809
  bool stand_in = false;  // a library of tests: works on host memory
};
Result<NcclLibraryFacts> ExamineNccl(const std::string& library);

}  // namespace lockstep::comm::nccl
