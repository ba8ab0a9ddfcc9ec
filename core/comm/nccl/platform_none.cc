#include "core/comm/nccl/platform.h"

namespace lockstep::comm::nccl {

Result<NcclPlatform> OpenOnCuda(const NcclLibraryFacts&, int, bool) {
  return EnvironmentError(
      "--backend=nccl: this program was built without CUDA; install the CUDA toolkit (or set "
      "CUDA_PATH) and build again, or choose another backend");
}

}  // namespace lockstep::comm::nccl
