// NVIDIA's management library, opened at run time: what the driver knows of the GPUs, without a
// CUDA context (an agent may ask). NVML API reference: docs.nvidia.com/deploy/nvml-api.
#ifndef LOCKSTEP_CORE_ENVIRONMENT_NVML_H_
#define LOCKSTEP_CORE_ENVIRONMENT_NVML_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/environment/facts.h"

namespace lockstep {

// What changes while a GPU works. -1: the GPU or the driver does not tell.
struct GpuSample {
  int gpu = 0;
  std::int64_t utilization_percent = -1;
  std::int64_t memory_used_bytes = -1;
  std::int64_t power_mw = -1;
  std::int64_t temperature_celsius = -1;
  std::int64_t sm_clock_mhz = -1;
  std::int64_t throttle_reasons = -1;        // bits of nvmlClocksThrottleReasons
  std::int64_t uncorrected_ecc_errors = -1;  // since the driver was loaded
};

class Nvml {
 public:
  // `path`: a file, or empty for the driver's libnvidia-ml.so.1. kEnvironment: "no GPU driver: …".
  static Result<std::unique_ptr<Nvml>> Open(const std::string& path = "");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  int gpus() const;
  // Driver and CUDA version; of every GPU name, bus, memory, ECC, clocks, throttling, links; of
  // every pair the way between them and whether it may be used (gpu/<i>/…, gpu/pair/<i>-<j>).
  Facts Describe() const;
  GpuSample Sample(int gpu) const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

// "thermal, power cap"; "none". Idle and clocks that a person has set are no throttling.
std::string DescribeThrottling(std::int64_t reasons);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_ENVIRONMENT_NVML_H_
