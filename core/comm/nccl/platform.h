// Where NCCL's ranks compute. platform_cuda.cc is built where CUDA is, platform_none.cc elsewhere.
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/collective/pattern_memory.h"
#include "core/comm/nccl/nccl_communicator.h"
#include "core/device/device.h"
#include "core/device/kernels.h"

namespace lockstep::comm::nccl {

struct NcclPlatform {
  std::unique_ptr<device::Device>
      device;  // CUDA's; nullptr: the library is a stand-in for the host
  std::unique_ptr<device::Kernels> kernels;  // with the device
  std::unique_ptr<collective::PatternMemory>
      pattern_memory;    // where the host can't reach its memory
  std::string gpu_bus;   // where the device sits
  std::string log_file;  // NCCL's own; empty: we cannot follow it
  std::string remark;    // what makes the figures no figures of NCCL
};

// The device of rank `local_rank` of this host, as OpenNccl says, without log and remark.
Result<NcclPlatform> OpenOnCuda(const NcclLibraryFacts& library, int local_rank, bool host_access);

}  // namespace lockstep::comm::nccl
