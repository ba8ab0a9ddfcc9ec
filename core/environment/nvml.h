// NVIDIA's management library, opened at run time: what the driver knows of the GPUs, without a
// CUDA context (an agent may ask). NVML API reference: docs.nvidia.com/deploy/nvml-api.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/environment/facts.h"
#include "core/journal/gpu_sample.h"

namespace lockstep::environment {

class Nvml {
 public:
  // `path`: a file, or empty for the driver's libnvidia-ml.so.1. kEnvironment: "no GPU driver: …".
  static Result<std::unique_ptr<Nvml>> Open(const std::string& path = "");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  int gpus() const;
  // Driver and CUDA version; how many GPUs it counts, and why it can't open one of them
  // (gpu/count, gpu/lost/<index>); of every other GPU name, bus, memory, ECC, clocks, throttling,
  // links; of every pair the way between them and whether it may be used (gpu/<i>/…,
  // gpu/pair/<i>-<j>).
  Facts Describe() const;
  // Of each GPU its place, "00000000:3b:00.0"; empty where the driver does not tell.
  std::vector<std::string> Buses() const;
  journal::GpuSample Sample(int gpu) const;

  // From now on Sample() tells Xids: the driver's errors of a GPU. False: it does not tell them.
  bool ListenForXids();
  // Sleeps for so long at most, and hears what Xids come meanwhile.
  void Rest(int milliseconds);

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace lockstep::environment
