// Kernels of a rank in simulation: computing takes virtual time and no other.
#pragma once

#include <cstdint>

#include "core/comm/sim/sim_world.h"
#include "core/device/host/host_kernels.h"

namespace lockstep::comm::sim {

class SimKernels final : public device::host::HostKernels {
 public:
  explicit SimKernels(RankContext& context) : context_(context) {}
  void Compute(Stream& stream, double ns, const void*, std::int64_t) override { Pass(stream, ns); }
  void ComputeProducts(Stream& stream, double ns, DataType) override { Pass(stream, ns); }

 private:
  void Pass(Stream& stream, double ns) {
    stream.Do([this, ns] { context_.Compute(static_cast<std::int64_t>(ns)); });
  }

  RankContext& context_;
};

}  // namespace lockstep::comm::sim
