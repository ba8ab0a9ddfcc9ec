// Reads /proc/meminfo and the limits of both versions of control groups. A group is limited by each
// group above it, so the walk goes up to the root. Page cache that the kernel gives back first
// counts as free.
#include "core/device/host/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/process_stat.h"

namespace lockstep::device::host {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::optional<std::int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // absent, or "max"
}

// How the two versions of control groups name things.
struct GroupKind {
  std::string_view line;  // /proc/self/cgroup: what stands between the id and the path
  std::string_view root;
  std::string_view limit;
  std::string_view used;
  std::string_view reclaimable;  // in memory.stat: page cache given back before anything is killed
};
constexpr GroupKind kGroupKinds[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file"},
};

std::int64_t ReclaimableIn(const std::string& group, std::string_view wanted) {
  std::ifstream stat(group + "/memory.stat");
  std::string name;
  std::int64_t bytes = 0;
  while (stat >> name >> bytes) {
    if (name == wanted) return bytes;
  }
  return 0;
}

// The path of this process's group below the root, starting with '/'; empty if it has none.
std::string PathOf(const GroupKind& kind) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t id_end = line.find(':');
    if (id_end != std::string::npos && line.compare(id_end, kind.line.size(), kind.line) == 0) {
      return line.substr(id_end + kind.line.size());
    }
  }
  return "";
}

// A group is limited by every group above it.
std::int64_t RoomInControlGroups(const GroupKind& kind) {
  std::int64_t room = kUnlimited;
  std::string path = PathOf(kind);
  while (!path.empty()) {
    const std::string group = std::string(kind.root) + path + "/";
    const auto limit = NumberIn(group + std::string(kind.limit));
    const auto used = NumberIn(group + std::string(kind.used));
    if (limit && used && *limit - *used < room) {
      room = std::max<std::int64_t>(0, *limit - *used + ReclaimableIn(group, kind.reclaimable));
    }
    path.resize(path.rfind('/'));
  }
  return room;
}

}  // namespace

std::int64_t AvailableMemoryBytes() {
  std::int64_t available = MemAvailableBytes().value_or(kUnlimited);
  for (const GroupKind& kind : kGroupKinds) {
    available = std::min(available, RoomInControlGroups(kind));
  }
  return available;
}

}  // namespace lockstep::device::host
