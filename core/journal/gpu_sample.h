// What a GPU's driver says of it, at one moment while a run goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/clock.h"

namespace lockstep::journal {

// -1: the GPU or the driver does not tell. Words of one size, so that a sample lies in shared
// memory as it is.
struct GpuSample {
  std::uint64_t ticks = 0;                       // when, on the clock of its host
  std::int64_t unix_ns = 0;                      // the same by the time of day
  std::int64_t gpu = 0;                          // the management library's number
  std::int64_t utilization_percent = -1;         // of the time a kernel was there, working or not
  std::int64_t memory_utilization_percent = -1;  // of the time memory was read or written
  std::int64_t memory_used_bytes = -1;
  std::int64_t power_mw = -1;
  std::int64_t power_limit_mw = -1;
  std::int64_t temperature_celsius = -1;
  std::int64_t sm_clock_mhz = -1;
  std::int64_t memory_clock_mhz = -1;
  std::int64_t throttle_reasons = -1;        // bits of nvmlClocksThrottleReasons
  std::int64_t corrected_ecc_errors = -1;    // since the driver was loaded
  std::int64_t uncorrected_ecc_errors = -1;  // the same
  std::int64_t xid = -1;  // the newest since the sampling began; 0: none; -1: can't be heard
};

// The samples of one host: of the GPUs that the lowest rank's agent there sees.
struct GpuSamples {
  int rank = 0;                    // whose agent had them taken
  std::vector<std::string> buses;  // of each GPU, as "00000000:3b:00.0"
  std::uint64_t missed = 0;        // older ones that were overwritten
  std::vector<GpuSample> samples;  // oldest first
};

// A sample with its place, as it is stored.
struct PlacedGpuSample {
  int rank = 0;
  std::string bus;
  GpuSample sample;
};
std::vector<PlacedGpuSample> PlaceSamples(const std::vector<GpuSamples>& hosts);

// "thermal, power cap"; "none". Idle and clocks that a person has set are no throttling.
std::string DescribeThrottling(std::int64_t reasons);

// Whether two texts name one place on the PCI bus: "0000:3B:00.0" and "00000000:3b:00.0" do.
bool SameBus(const std::string& a, const std::string& b);

}  // namespace lockstep::journal
