// How a user chooses an NCCL library and what it works on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace lockstep::comm::nccl {

// What a user chooses. A benchmark's plan carries it to the workers. Others inherit
// it through the environment, where the library's adapter looks for it.
struct NcclChoices {
  std::string library;     // LOCKSTEP_NCCL_LIBRARY; empty: the dynamic linker's libnccl.so.2
  int ranks_per_gpu = 1;   // LOCKSTEP_RANKS_PER_GPU
  bool registers = false;  // LOCKSTEP_NCCL_REGISTER: buffers are registered
  bool graphs = false;     // LOCKSTEP_CUDA_GRAPH: collectives are captured once and replayed
  bool marks = true;       // LOCKSTEP_DEVICE_MARKS (1 or 0): the device tells how far it came

  bool operator==(const NcclChoices&) const = default;
};
// The environment holds these from then on, whatever it held before. kInvalidInput names the
// option: --ranks-per-gpu from 1 to 64.
Status ExportNcclChoices(const NcclChoices& choices);
// `marks`: where no variable says it.
NcclChoices NcclChoicesFromEnvironment(bool marks = true);

// Which of the devices that it sees is the rank's, by the number of its process on its host. One
// that sees a single one by CUDA_VISIBLE_DEVICES was given that: `srun --gpus-per-task=1` and
// wrappers around a program do so.
int DeviceOf(int local_rank, int ranks_per_gpu);

// Several ranks on one GPU, which NCCL refuses unless it is talked into it.

// The variables that make it possible. Up to 2.30.2 (and for more than two ranks) each rank tells
// NCCL that it is a host of its own, so that they are joined by sockets and the check for duplicate
// GPUs passes; from 2.30.3 two ranks of a GPU are allowed. NVLink multicast, cuMem handles and
// multi-node NVLink need a GPU for each rank; kernels of one block leave room for the other rank's.
// Sources: NVIDIA/nccl src/init.cc initTransportsRank, src/misc/utils.cc getHostHash; env.rst.
std::vector<std::pair<std::string, std::string>> SharedGpuVariables(int version, int local_rank,
                                                                    int ranks_per_gpu);

// Whether NCCL allows it by itself.
bool SharesDirectly(int version, int ranks_per_gpu);

// Sets those that the user did not set.
void ShareGpu(int version, int local_rank, int ranks_per_gpu);

}  // namespace lockstep::comm::nccl
