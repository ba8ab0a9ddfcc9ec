// A management library of a machine with two GPUs, the second of which is ill. FAKE_NVML says what
// else is wrong. With "init" it fails to begin. With "uncounted" it can't count the GPUs; with
// "lost" it can't open the second, with "others" it may not. With "old" it knows no clocks, by an
// error as of an old driver; with "xid" it has one to tell. With "stuck" it answers nothing after
// the first sample, as a driver whose GPU fell off the bus.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/environment/nvml_abi.h"

namespace {

constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kDriverNotLoaded = 9;
constexpr int kTimeout = 10;
constexpr int kGpuIsLost = 15;
constexpr int kUnknown = 999;
char boards[2];

bool Is(const char* wanted) {
  const char* mode = std::getenv("FAKE_NVML");
  return mode != nullptr && std::strcmp(mode, wanted) == 0;
}
int IndexOf(lockstep::environment::Device device) {
  return reinterpret_cast<char*>(device) == &boards[1] ? 1 : 0;
}

}  // namespace

extern "C" {

using lockstep::environment::Device;

int nvmlInit_v2() { return Is("init") ? kDriverNotLoaded : 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int code) {
  return code == kDriverNotLoaded ? "Driver Not Loaded"
         : code == kGpuIsLost     ? "GPU is lost"
                                  : "Unknown Error";
}
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
  return Is("uncounted") ? kUnknown : 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = reinterpret_cast<Device>(&boards[index]);
  if (index == 1 && Is("lost")) return kGpuIsLost;
  return index == 1 && Is("others") ? kNoPermission : 0;
}
int nvmlDeviceGetName(Device device, char* text, unsigned size) {
  std::snprintf(text, size, "Fake GPU %d", IndexOf(device));
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  *major = IndexOf(device) == 1 ? 7 : 9;
  *minor = 0;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(Device device, int type, int, unsigned long long* errors) {
  *errors = IndexOf(device) == 1 && type == lockstep::environment::kEccUncorrected ? 7 : 0;
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
int nvmlDeviceGetPciInfo_v3(Device device, lockstep::environment::PciInfo* info) {
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", IndexOf(device) + 1);
  return 0;
}
int nvmlDeviceGetUtilizationRates(Device device, lockstep::environment::Utilization* rates) {
  static int asked = 0;
  if (Is("stuck") && IndexOf(device) == 0 && asked++ > 0) {
    for (;;) pause();
  }
  *rates = {100, 0};
  return 0;
}
int nvmlDeviceGetPowerUsage(Device, unsigned* milliwatts) {
  *milliwatts = 95'000;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
int nvmlEventSetCreate(lockstep::environment::EventSet* set) {
  *set = reinterpret_cast<lockstep::environment::EventSet>(boards);
  return 0;
}
int nvmlDeviceRegisterEvents(Device device, unsigned long long, lockstep::environment::EventSet) {
  return IndexOf(device) == 1 ? 0 : kNotSupported;
}
int nvmlEventSetWait(lockstep::environment::EventSet, lockstep::environment::EventData* event,
                     unsigned ms) {
  static bool told = false;
  if (!Is("xid") || told) {
    usleep(ms * 1000);
    return kTimeout;
  }
  told = true;
  *event = {reinterpret_cast<Device>(&boards[1]), lockstep::environment::kXidEvent, 79, 0, 0};
  return 0;
}
int nvmlEventSetFree(lockstep::environment::EventSet) { return 0; }
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
