// Reads PCI configuration space for bridges that redirect traffic between peers. Without root only
// 64 bytes can be read, and the fact says unknown. NUMA nodes, IOMMU and driver modules come from
// /sys and /proc.
#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "core/base/fd.h"
#include "core/base/file_text.h"
#include "core/environment/facts.h"

namespace lockstep::environment {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kExtendedBegin = 0x100;  // extended capabilities (PCIe base spec 7.6)
constexpr std::size_t kConfigBytes = 4096;
constexpr std::uint16_t kAccessControl = 0x000d;  // its capability (PCIe base spec 7.7.11)
// Peer requests or completions are sent up to the root complex instead of across the switch.
constexpr std::uint16_t kRedirects = 0x4 | 0x8;

std::uint32_t Word(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 |
         static_cast<std::uint32_t>(bytes[at + 3]) << 24;
}

// The control register of the device's access control services; nothing without the capability.
std::optional<std::uint16_t> AccessControlOf(const std::vector<std::uint8_t>& config) {
  std::size_t at = kExtendedBegin;
  for (int bound = 0; bound < 64 && at >= kExtendedBegin && at + 8 <= config.size(); ++bound) {
    const std::uint32_t header = Word(config, at);
    if ((header & 0xffff) == kAccessControl) return Word(config, at + 4) >> 16;
    at = header >> 20;
  }
  return std::nullopt;
}

std::vector<std::uint8_t> ConfigOf(const fs::path& device) {
  std::ifstream file(device / "config", std::ios::binary);
  std::vector<std::uint8_t> bytes(kConfigBytes);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

void AddPci(Facts& facts) {
  int bridges = 0, redirecting = 0, unreadable = 0, gpus = 0;
  for (const fs::path& device : EntriesOf("/sys/bus/pci/devices")) {
    const std::string kind = FirstLine(device / "class");  // 0xCCSSPP
    if (kind.starts_with("0x0604")) {
      ++bridges;
      const std::vector<std::uint8_t> config = ConfigOf(device);
      if (config.size() <= kExtendedBegin) ++unreadable;  // only root sees more than 64 bytes
      const std::optional<std::uint16_t> control = AccessControlOf(config);
      redirecting += control && (*control & kRedirects) != 0 ? 1 : 0;
    }
    const bool gpu = kind.starts_with("0x0302") || kind.starts_with("0x0300");
    if (!gpu || FirstLine(device / "vendor") != "0x10de") continue;
    facts.emplace_back(fmt::format("topology/gpu{}", gpus++),
                       fmt::format("{}, NUMA node {}", device.filename().string(),
                                   FirstLine(device / "numa_node")));
  }
  facts.emplace_back("topology/pci_gpus", fmt::format("{}", gpus));
  facts.emplace_back("topology/pci_bridges", fmt::format("{}", bridges));
  facts.emplace_back("topology/pci_bridges_redirecting_peers",
                     bridges > 0 && unreadable == bridges
                         ? "unknown: only root can read it (or the bridges are not PCI Express)"
                         : fmt::format("{}", redirecting));
}

std::ptrdiff_t CountEntries(const char* directory, std::string_view prefix) {
  return std::ranges::count_if(EntriesOf(directory), [&](const fs::path& entry) {
    return entry.filename().string().starts_with(prefix);
  });
}

bool ModuleLoaded(std::string_view name) {
  std::ifstream file("/proc/modules");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(std::string(name) + " ")) return true;
  }
  return false;
}

bool ProcessRuns(std::string_view name) {
  return std::ranges::any_of(EntriesOf("/proc"), [&](const fs::path& process) {
    return FirstLine(process / "comm") == name;
  });
}

std::string_view YesNo(bool yes) { return yes ? "yes" : "no"; }

// Device files that the driver made of GPUs, without those that a scheduler or container keeps for
// others: /dev/nvidia<number> (NVIDIA driver README, "device nodes").
std::ptrdiff_t CountGpuFiles() {
  return std::ranges::count_if(EntriesOf("/dev"), [](const fs::path& file) {
    const std::string name = file.filename().string();
    if (!name.starts_with("nvidia") || name.find_first_not_of("0123456789", 6) != name.npos ||
        name.size() == 6) {
      return false;
    }
    const Fd opened(open(file.c_str(), O_RDWR | O_CLOEXEC));
    return opened.valid() || (errno != EPERM && errno != EACCES);
  });
}

void AddDriver(Facts& facts) {
  facts.emplace_back("topology/gpu_files", fmt::format("{}", CountGpuFiles()));
  facts.emplace_back("gpu/peer_memory_module",
                     YesNo(ModuleLoaded("nvidia_peermem") || ModuleLoaded("nv_peer_mem")));
  const bool switches = CountEntries("/proc/driver/nvidia-nvswitch/devices", "0") > 0;
  facts.emplace_back("gpu/nvswitch", YesNo(switches));
  // The kernel cuts names of processes at 15 characters.
  if (switches) facts.emplace_back("gpu/fabric_manager", YesNo(ProcessRuns("nv-fabricmanage")));
}

}  // namespace

Facts TopologyFacts() {
  Facts facts;
  facts.emplace_back("topology/numa_nodes",
                     fmt::format("{}", CountEntries("/sys/devices/system/node", "node")));
  facts.emplace_back("topology/iommu_units",
                     fmt::format("{}", CountEntries("/sys/class/iommu", "")));
  const std::string command_line = FirstLine("/proc/cmdline");
  facts.emplace_back("topology/iommu_pass_through",
                     YesNo(command_line.find("iommu=pt") != std::string::npos ||
                           command_line.find("iommu.passthrough=1") != std::string::npos));
  AddPci(facts);
  AddDriver(facts);
  return facts;
}

}  // namespace lockstep::environment
