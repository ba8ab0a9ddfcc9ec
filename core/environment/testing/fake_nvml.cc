// A management library of a machine with two GPUs, the second of which is ill. FAKE_NVML: "init"
// fails to begin; "old" knows no clocks (by an error, as an old driver's does).
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/environment/nvml_abi.h"

namespace {

constexpr int kNotSupported = 3;
constexpr int kDriverNotLoaded = 9;
char boards[2];

bool Is(const char* wanted) {
  const char* mode = std::getenv("FAKE_NVML");
  return mode != nullptr && std::strcmp(mode, wanted) == 0;
}
int IndexOf(lockstep::nvml::Device device) {
  return reinterpret_cast<char*>(device) == &boards[1] ? 1 : 0;
}

}  // namespace

extern "C" {

using lockstep::nvml::Device;

int nvmlInit_v2() { return Is("init") ? kDriverNotLoaded : 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "Driver Not Loaded"; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "535.104.05");
  return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 12020;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = reinterpret_cast<Device>(&boards[index]);
  return 0;
}
int nvmlDeviceGetName(Device device, char* text, unsigned size) {
  std::snprintf(text, size, "Fake GPU %d", IndexOf(device));
  return 0;
}
int nvmlDeviceGetTotalEccErrors(Device device, int type, int, unsigned long long* errors) {
  *errors = IndexOf(device) == 1 && type == lockstep::nvml::kEccUncorrected ? 7 : 0;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  *reasons = IndexOf(device) == 1 ? 0x41 : 0x1;  // hot and idle; idle
  return 0;
}
int nvmlDeviceGetClockInfo(Device, int, unsigned* mhz) {
  *mhz = 1410;
  return Is("old") ? kNotSupported : 0;
}
int nvmlDeviceGetUtilizationRates(Device, lockstep::nvml::Utilization* rates) {
  *rates = {100, 0};
  return 0;
}
int nvmlDeviceGetPowerUsage(Device, unsigned* milliwatts) {
  *milliwatts = 95'000;
  return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned* width) {
  *width = IndexOf(device) == 1 ? 8 : 16;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(Device, unsigned* width) {
  *width = 16;
  return 0;
}
int nvmlDeviceGetP2PStatus(Device, Device, int, int* status) {
  *status = 1;
  return 0;
}

}  // extern "C"
