// Several ranks on one GPU, which NCCL refuses unless it is talked into it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::comm::nccl {

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
