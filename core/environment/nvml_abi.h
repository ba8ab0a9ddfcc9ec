// The part of NVML's C interface that is called, declared anew, so that no NVIDIA header is needed
// to build. Signatures: NVML API reference guide; the types' sizes are part of its ABI.
#ifndef LOCKSTEP_CORE_ENVIRONMENT_NVML_ABI_H_
#define LOCKSTEP_CORE_ENVIRONMENT_NVML_ABI_H_

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

struct Api {
  Code (*nvmlInit_v2)() = nullptr;
  Code (*nvmlShutdown)() = nullptr;
  const char* (*nvmlErrorString)(Code) = nullptr;
  Code (*nvmlSystemGetDriverVersion)(char*, unsigned) = nullptr;
  Code (*nvmlSystemGetCudaDriverVersion_v2)(int*) = nullptr;
  Code (*nvmlDeviceGetCount_v2)(unsigned*) = nullptr;
  Code (*nvmlDeviceGetHandleByIndex_v2)(unsigned, Device*) = nullptr;
  Code (*nvmlDeviceGetName)(Device, char*, unsigned) = nullptr;
  Code (*nvmlDeviceGetUUID)(Device, char*, unsigned) = nullptr;
  Code (*nvmlDeviceGetPciInfo_v3)(Device, PciInfo*) = nullptr;
  Code (*nvmlDeviceGetMemoryInfo)(Device, Memory*) = nullptr;
  Code (*nvmlDeviceGetEccMode)(Device, int*, int*) = nullptr;
  Code (*nvmlDeviceGetTotalEccErrors)(Device, int, int, unsigned long long*) = nullptr;
  Code (*nvmlDeviceGetClockInfo)(Device, int, unsigned*) = nullptr;
  Code (*nvmlDeviceGetMaxClockInfo)(Device, int, unsigned*) = nullptr;
  Code (*nvmlDeviceGetCurrentClocksThrottleReasons)(Device, unsigned long long*) = nullptr;
  Code (*nvmlDeviceGetTemperature)(Device, int, unsigned*) = nullptr;
  Code (*nvmlDeviceGetPowerUsage)(Device, unsigned*) = nullptr;
  Code (*nvmlDeviceGetEnforcedPowerLimit)(Device, unsigned*) = nullptr;
  Code (*nvmlDeviceGetUtilizationRates)(Device, Utilization*) = nullptr;
  Code (*nvmlDeviceGetPersistenceMode)(Device, int*) = nullptr;
  Code (*nvmlDeviceGetComputeMode)(Device, int*) = nullptr;
  Code (*nvmlDeviceGetCudaComputeCapability)(Device, int*, int*) = nullptr;
  Code (*nvmlDeviceGetMigMode)(Device, unsigned*, unsigned*) = nullptr;
  Code (*nvmlDeviceGetCurrPcieLinkGeneration)(Device, unsigned*) = nullptr;
  Code (*nvmlDeviceGetMaxPcieLinkGeneration)(Device, unsigned*) = nullptr;
  Code (*nvmlDeviceGetCurrPcieLinkWidth)(Device, unsigned*) = nullptr;
  Code (*nvmlDeviceGetMaxPcieLinkWidth)(Device, unsigned*) = nullptr;
  Code (*nvmlDeviceGetNvLinkState)(Device, unsigned, int*) = nullptr;
  Code (*nvmlDeviceGetTopologyCommonAncestor)(Device, Device, int*) = nullptr;
  Code (*nvmlDeviceGetP2PStatus)(Device, Device, int, int*) = nullptr;
  Code (*nvmlEventSetCreate)(EventSet*) = nullptr;
  Code (*nvmlDeviceRegisterEvents)(Device, unsigned long long, EventSet) = nullptr;
  Code (*nvmlEventSetWait)(EventSet, EventData*, unsigned) = nullptr;
  Code (*nvmlEventSetFree)(EventSet) = nullptr;
};

}  // namespace lockstep::environment

#endif  // LOCKSTEP_CORE_ENVIRONMENT_NVML_ABI_H_
