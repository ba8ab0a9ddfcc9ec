// The part of NVML's C interface that is called, declared anew, so that no NVIDIA header is needed
// to build. Signatures: NVML API reference guide; the types' sizes are part of its ABI.
#pragma once

namespace lockstep::environment {

using Code = int;  // nvmlReturn_t; 0: success
using Device = struct nvmlDevice_st*;

struct PciInfo {  // nvmlPciInfo_t
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
struct Utilization {  // nvmlUtilization_t
  unsigned gpu, memory;
};

struct EventData {  // nvmlEventData_t; the call that takes two fields less writes no more than that
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
using EventSet = struct nvmlEventSet_st*;

inline constexpr int kTemperatureGpu = 0;
inline constexpr int kClockSm = 1;
inline constexpr int kClockMemory = 2;
inline constexpr int kEccCorrected = 0;
inline constexpr int kEccUncorrected = 1;
inline constexpr int kEccVolatile = 0;
inline constexpr int kP2pRead = 0;                    // nvmlGpuP2PCapsIndex_t
inline constexpr unsigned long long kXidEvent = 0x8;  // nvmlEventTypeXidCriticalError

// The functions that give a Code, and what they take. Any may be missing from a driver: null.
#define LOCKSTEP_NVML_FUNCTIONS(DO)                                            \
  DO(nvmlInit_v2, ())                                                          \
  DO(nvmlShutdown, ())                                                         \
  DO(nvmlSystemGetDriverVersion, (char*, unsigned))                            \
  DO(nvmlSystemGetCudaDriverVersion_v2, (int*))                                \
  DO(nvmlDeviceGetCount_v2, (unsigned*))                                       \
  DO(nvmlDeviceGetHandleByIndex_v2, (unsigned, Device*))                       \
  DO(nvmlDeviceGetName, (Device, char*, unsigned))                             \
  DO(nvmlDeviceGetUUID, (Device, char*, unsigned))                             \
  DO(nvmlDeviceGetPciInfo_v3, (Device, PciInfo*))                              \
  DO(nvmlDeviceGetMemoryInfo, (Device, Memory*))                               \
  DO(nvmlDeviceGetEccMode, (Device, int*, int*))                               \
  DO(nvmlDeviceGetTotalEccErrors, (Device, int, int, unsigned long long*))     \
  DO(nvmlDeviceGetClockInfo, (Device, int, unsigned*))                         \
  DO(nvmlDeviceGetMaxClockInfo, (Device, int, unsigned*))                      \
  DO(nvmlDeviceGetCurrentClocksThrottleReasons, (Device, unsigned long long*)) \
  DO(nvmlDeviceGetTemperature, (Device, int, unsigned*))                       \
  DO(nvmlDeviceGetPowerUsage, (Device, unsigned*))                             \
  DO(nvmlDeviceGetEnforcedPowerLimit, (Device, unsigned*))                     \
  DO(nvmlDeviceGetUtilizationRates, (Device, Utilization*))                    \
  DO(nvmlDeviceGetPersistenceMode, (Device, int*))                             \
  DO(nvmlDeviceGetComputeMode, (Device, int*))                                 \
  DO(nvmlDeviceGetCudaComputeCapability, (Device, int*, int*))                 \
  DO(nvmlDeviceGetMigMode, (Device, unsigned*, unsigned*))                     \
  DO(nvmlDeviceGetCurrPcieLinkGeneration, (Device, unsigned*))                 \
  DO(nvmlDeviceGetMaxPcieLinkGeneration, (Device, unsigned*))                  \
  DO(nvmlDeviceGetCurrPcieLinkWidth, (Device, unsigned*))                      \
  DO(nvmlDeviceGetMaxPcieLinkWidth, (Device, unsigned*))                       \
  DO(nvmlDeviceGetNvLinkState, (Device, unsigned, int*))                       \
  DO(nvmlDeviceGetTopologyCommonAncestor, (Device, Device, int*))              \
  DO(nvmlDeviceGetP2PStatus, (Device, Device, int, int*))                      \
  DO(nvmlEventSetCreate, (EventSet*))                                          \
  DO(nvmlDeviceRegisterEvents, (Device, unsigned long long, EventSet))         \
  DO(nvmlEventSetWait, (EventSet, EventData*, unsigned))                       \
  DO(nvmlEventSetFree, (EventSet))

struct Api {
#define LOCKSTEP_NVML_POINTER(name, parameters) Code(*name) parameters = nullptr;
  LOCKSTEP_NVML_FUNCTIONS(LOCKSTEP_NVML_POINTER)
#undef LOCKSTEP_NVML_POINTER
  const char* (*nvmlErrorString)(Code) = nullptr;
};

}  // namespace lockstep::environment
