// Loads NVIDIA's management library and calls what this driver has of it. Any function may be
// missing, and any question may go unanswered; then a fact says unknown. Calls can block in the
// driver, so only an expendable process makes them.
#include "core/environment/nvml.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "core/base/deadline.h"
#include "core/environment/nvml_abi.h"

namespace lockstep::environment {
namespace {

constexpr unsigned kMostLinks = 18;  // NVML_NVLINK_MAX_LINKS
constexpr Code kNoPermission = 4;    // NVML_ERROR_NO_PERMISSION

template <typename Function>
void Load(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
}

void LoadAll(void* handle, Api& api) {
#define LOCKSTEP_LOAD(name, parameters) Load(handle, #name, api.name);
  LOCKSTEP_NVML_FUNCTIONS(LOCKSTEP_LOAD)
#undef LOCKSTEP_LOAD
  Load(handle, "nvmlErrorString", api.nvmlErrorString);
}

// Calls what may be missing from an old driver; false: no answer.
template <typename Function, typename... Arguments>
bool Ask(Function function, Arguments... arguments) {
  return function != nullptr && function(arguments...) == 0;
}

template <typename Function, typename... Arguments>
std::int64_t Number(Function function, Arguments... arguments) {
  unsigned value = 0;
  return Ask(function, arguments..., &value) ? static_cast<std::int64_t>(value) : -1;
}

std::string TextOf(std::int64_t value) { return value < 0 ? "unknown" : fmt::format("{}", value); }

// nvmlGpuTopologyLevel_t, in nvidia-smi's words.
std::string_view WayOf(int level) {
  static constexpr std::string_view kWays[] = {
      "one board", "one PCIe switch", "several PCIe switches", "one host bridge", "one NUMA node"};
  const bool known = level >= 0 && level % 10 == 0 && level < 50;
  return known ? kWays[level / 10] : "across NUMA nodes";
}

}  // namespace

struct Nvml::Library {
  std::string Why(Code code) const {
    return fmt::format("'{}' ({})", api.nvmlErrorString != nullptr ? api.nvmlErrorString(code) : "",
                       code);
  }

  Api api;
  std::vector<Device> devices;
  std::vector<std::pair<unsigned, std::string>> lost;  // those it counts and can't open; why
  EventSet events = nullptr;
  std::vector<std::int64_t> xids;  // of each device; -1: it does not tell

  void DescribeDevice(int gpu, Facts& facts) const {
    Device device = devices[static_cast<std::size_t>(gpu)];
    const std::string group = fmt::format("gpu/{}", gpu);
    char text[96] = "unknown";
    Ask(api.nvmlDeviceGetName, device, text, unsigned{sizeof(text)});
    facts.emplace_back(group + "/name", text);
    if (Ask(api.nvmlDeviceGetUUID, device, text, unsigned{sizeof(text)})) {
      facts.emplace_back(group + "/uuid", text);
    }
    PciInfo pci{};
    if (Ask(api.nvmlDeviceGetPciInfo_v3, device, &pci)) {
      facts.emplace_back(group + "/bus", pci.bus_id);
    }
    int major = 0, minor = 0;
    if (Ask(api.nvmlDeviceGetCudaComputeCapability, device, &major, &minor)) {
      facts.emplace_back(group + "/compute_capability", fmt::format("{}.{}", major, minor));
    }
    Memory memory{};
    if (Ask(api.nvmlDeviceGetMemoryInfo, device, &memory)) {
      facts.emplace_back(group + "/memory_bytes", fmt::format("{}", memory.total));
      facts.emplace_back(group + "/memory_used_bytes", fmt::format("{}", memory.used));
    }
    int current = 0, pending = 0;
    facts.emplace_back(group + "/ecc", !Ask(api.nvmlDeviceGetEccMode, device, &current, &pending)
                                           ? "not there"
                                       : current != 0 ? "on"
                                                      : "off");
    unsigned long long errors = 0;
    if (Ask(api.nvmlDeviceGetTotalEccErrors, device, kEccUncorrected, kEccVolatile, &errors)) {
      facts.emplace_back(group + "/uncorrected_ecc_errors", fmt::format("{}", errors));
    }
    facts.emplace_back(group + "/sm_clock_mhz_max",
                       TextOf(Number(api.nvmlDeviceGetMaxClockInfo, device, kClockSm)));
    facts.emplace_back(group + "/sm_clock_mhz",
                       TextOf(Number(api.nvmlDeviceGetClockInfo, device, kClockSm)));
    unsigned long long reasons = 0;
    if (Ask(api.nvmlDeviceGetCurrentClocksThrottleReasons, device, &reasons)) {
      facts.emplace_back(group + "/throttling",
                         journal::DescribeThrottling(static_cast<std::int64_t>(reasons)));
    }
    DescribeModes(group, device, facts);
    DescribeLink(group, device, facts);
  }

  void DescribeModes(const std::string& group, Device device, Facts& facts) const {
    int mode = 0;
    if (Ask(api.nvmlDeviceGetPersistenceMode, device, &mode)) {
      facts.emplace_back(group + "/persistence_mode", mode != 0 ? "on" : "off");
    }
    if (Ask(api.nvmlDeviceGetComputeMode, device, &mode)) {
      static constexpr const char* kModes[] = {"default", "exclusive thread", "prohibited",
                                               "exclusive process"};
      facts.emplace_back(group + "/compute_mode", mode >= 0 && mode < 4 ? kModes[mode] : "unknown");
    }
    unsigned mig = 0, pending = 0;
    if (Ask(api.nvmlDeviceGetMigMode, device, &mig, &pending)) {
      facts.emplace_back(group + "/mig", mig != 0 ? "on" : "off");
    }
  }

  void DescribeLink(const std::string& group, Device device, Facts& facts) const {
    const std::int64_t generation = Number(api.nvmlDeviceGetCurrPcieLinkGeneration, device);
    const std::int64_t width = Number(api.nvmlDeviceGetCurrPcieLinkWidth, device);
    const std::int64_t best_width = Number(api.nvmlDeviceGetMaxPcieLinkWidth, device);
    facts.emplace_back(group + "/pcie",
                       fmt::format("generation {} of {}, x{} of x{}", TextOf(generation),
                                   TextOf(Number(api.nvmlDeviceGetMaxPcieLinkGeneration, device)),
                                   TextOf(width), TextOf(best_width)));
    // The generation sinks when a GPU is idle; the width never should.
    facts.emplace_back(group + "/pcie_lanes_missing", width < 0 || best_width < 0
                                                          ? "unknown"
                                                          : fmt::format("{}", best_width - width));
    int active = 0;
    for (unsigned link = 0; link < kMostLinks; ++link) {
      int state = 0;
      active += Ask(api.nvmlDeviceGetNvLinkState, device, link, &state) && state == 1 ? 1 : 0;
    }
    facts.emplace_back(group + "/nvlinks", fmt::format("{}", active));
  }

  void DescribePairs(Facts& facts) const {
    for (std::size_t a = 0; a < devices.size(); ++a) {
      for (std::size_t b = a + 1; b < devices.size(); ++b) {
        int level = -1, status = -1;
        const bool way =
            Ask(api.nvmlDeviceGetTopologyCommonAncestor, devices[a], devices[b], &level);
        const bool known =
            Ask(api.nvmlDeviceGetP2PStatus, devices[a], devices[b], kP2pRead, &status);
        facts.emplace_back(fmt::format("gpu/pair/{}-{}", a, b),
                           fmt::format("{}, peer access {}", way ? WayOf(level) : "unknown way",
                                       !known        ? "unknown"
                                       : status == 0 ? "yes"
                                                     : "no"));
      }
    }
  }
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::~Nvml() {
  if (library_->events != nullptr) Ask(library_->api.nvmlEventSetFree, library_->events);
  library_->api.nvmlShutdown();
}
int Nvml::gpus() const { return static_cast<int>(library_->devices.size()); }

Result<std::unique_ptr<Nvml>> Nvml::Open(const std::string& path) {
  const std::string name = path.empty() ? "libnvidia-ml.so.1" : path;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded
  if (handle == nullptr) {
    return EnvironmentError(
        "no GPU driver: {} can't be opened; install NVIDIA's driver, or let the container see it "
        "(--gpus all)",
        name);
  }
  auto library = std::make_unique<Library>();
  LoadAll(handle, library->api);
  const Api& api = library->api;
  if (api.nvmlInit_v2 == nullptr || api.nvmlShutdown == nullptr ||
      api.nvmlDeviceGetCount_v2 == nullptr || api.nvmlDeviceGetHandleByIndex_v2 == nullptr) {
    return EnvironmentError("no GPU driver: {} is no NVML; name another", name);
  }
  if (const Code code = api.nvmlInit_v2(); code != 0) {
    return EnvironmentError(
        "no GPU driver: NVML says {}; is the kernel module loaded, and of the same version?",
        library->Why(code));
  }
  unsigned count = 0;
  if (const Code code = api.nvmlDeviceGetCount_v2(&count); code != 0) {
    api.nvmlShutdown();
    return EnvironmentError("no GPU driver: NVML can't count the GPUs, {}; read dmesg",
                            library->Why(code));
  }
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    const Code code = api.nvmlDeviceGetHandleByIndex_v2(i, &device);
    if (code == 0) library->devices.push_back(device);
    // It also counts those that a scheduler or container gave to others.
    if (code != 0 && code != kNoPermission) library->lost.emplace_back(i, library->Why(code));
  }
  library->xids.assign(library->devices.size(), -1);
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

Facts Nvml::Describe() const {
  const Api& api = library_->api;
  Facts facts;
  char driver[96] = "unknown";
  Ask(api.nvmlSystemGetDriverVersion, driver, unsigned{sizeof(driver)});
  facts.emplace_back("gpu/driver", driver);
  int cuda = 0;
  if (Ask(api.nvmlSystemGetCudaDriverVersion_v2, &cuda)) {
    facts.emplace_back("gpu/driver_cuda", fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10));
  }
  facts.emplace_back("gpu/count",
                     fmt::format("{}", library_->devices.size() + library_->lost.size()));
  for (const auto& [gpu, why] : library_->lost) {
    facts.emplace_back(fmt::format("gpu/lost/{}", gpu), why);
  }
  for (int gpu = 0; gpu < gpus(); ++gpu) library_->DescribeDevice(gpu, facts);
  library_->DescribePairs(facts);
  return facts;
}

std::vector<std::string> Nvml::Buses() const {
  std::vector<std::string> buses;
  for (Device device : library_->devices) {
    PciInfo pci{};
    const bool told = Ask(library_->api.nvmlDeviceGetPciInfo_v3, device, &pci);
    buses.emplace_back(told ? pci.bus_id : "");
  }
  return buses;
}

bool Nvml::ListenForXids() {
  const Api& api = library_->api;
  if (api.nvmlEventSetWait == nullptr || !Ask(api.nvmlEventSetCreate, &library_->events)) {
    library_->events = nullptr;
    return false;
  }
  bool any = false;
  for (std::size_t i = 0; i < library_->devices.size(); ++i) {
    const bool tells =
        Ask(api.nvmlDeviceRegisterEvents, library_->devices[i], kXidEvent, library_->events);
    library_->xids[i] = tells ? 0 : -1;
    any = any || tells;
  }
  return any;
}

void Nvml::Rest(int milliseconds) {
  const Deadline deadline = Deadline::AfterSeconds(milliseconds * 1e-3);
  // One event a call; a set that does not wait (no GPU tells) is no clock.
  while (library_->events != nullptr && !deadline.Passed()) {
    EventData event{};
    if (library_->api.nvmlEventSetWait(library_->events, &event,
                                       static_cast<unsigned>(deadline.RemainingMs())) != 0) {
      break;
    }
    const auto& devices = library_->devices;
    const auto found = std::ranges::find(devices, event.device);
    if (event.type != kXidEvent || found == devices.end()) continue;
    library_->xids[static_cast<std::size_t>(found - devices.begin())] =
        static_cast<std::int64_t>(event.data);
  }
  const std::int64_t left_ns = deadline.RemainingNs();
  if (left_ns <= 0) return;
  const timespec rest{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  nanosleep(&rest, nullptr);
}

journal::GpuSample Nvml::Sample(int gpu) const {
  const Api& api = library_->api;
  Device device = library_->devices[static_cast<std::size_t>(gpu)];
  journal::GpuSample sample{.ticks = NowTicks(),
                            .unix_ns = ClockNs(CLOCK_REALTIME),
                            .gpu = gpu,
                            .xid = library_->xids[static_cast<std::size_t>(gpu)]};
  Utilization utilization{};
  if (Ask(api.nvmlDeviceGetUtilizationRates, device, &utilization)) {
    sample.utilization_percent = utilization.gpu;
    sample.memory_utilization_percent = utilization.memory;
  }
  Memory memory{};
  if (Ask(api.nvmlDeviceGetMemoryInfo, device, &memory)) {
    sample.memory_used_bytes = static_cast<std::int64_t>(memory.used);
  }
  sample.power_mw = Number(api.nvmlDeviceGetPowerUsage, device);
  sample.power_limit_mw = Number(api.nvmlDeviceGetEnforcedPowerLimit, device);
  sample.temperature_celsius = Number(api.nvmlDeviceGetTemperature, device, kTemperatureGpu);
  sample.sm_clock_mhz = Number(api.nvmlDeviceGetClockInfo, device, kClockSm);
  sample.memory_clock_mhz = Number(api.nvmlDeviceGetClockInfo, device, kClockMemory);
  unsigned long long value = 0;
  if (Ask(api.nvmlDeviceGetCurrentClocksThrottleReasons, device, &value)) {
    sample.throttle_reasons = static_cast<std::int64_t>(value);
  }
  if (Ask(api.nvmlDeviceGetTotalEccErrors, device, kEccUncorrected, kEccVolatile, &value)) {
    sample.uncorrected_ecc_errors = static_cast<std::int64_t>(value);
  }
  if (Ask(api.nvmlDeviceGetTotalEccErrors, device, kEccCorrected, kEccVolatile, &value)) {
    sample.corrected_ecc_errors = static_cast<std::int64_t>(value);
  }
  return sample;
}

}  // namespace lockstep::environment
