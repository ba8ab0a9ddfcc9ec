// How a user chooses an NCCL library and what it works on.
#pragma once

#include <string>

#include "core/base/status.h"

namespace lockstep::comm::nccl {

// What a user chooses. A benchmark's plan carries it to the workers. Others inherit
// it through the environment, where the library's adapter looks for it.
struct NcclChoices {
  std::string library;     // LOCKSTEP_NCCL_LIBRARY; empty: the dynamic linker's libnccl.so.2
  int ranks_per_gpu = 1;   // LOCKSTEP_RANKS_PER_GPU
  bool registers = false;  // LOCKSTEP_NCCL_REGISTER: buffers are registered
  bool graphs = false;     // LOCKSTEP_CUDA_GRAPH: collectives are captured once and replayed
  bool marks = true;       // LOCKSTEP_DEVICE_MARKS=0: the device does not tell how far it came

  bool operator==(const NcclChoices&) const = default;
};
// The environment holds these from then on, whatever it held before. kInvalidInput names the
// option: --ranks-per-gpu from 1 to 64.
Status ExportNcclChoices(const NcclChoices& choices);
NcclChoices NcclChoicesFromEnvironment();

}  // namespace lockstep::comm::nccl
