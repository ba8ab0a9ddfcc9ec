// The bytes of a simulated rank times the ranks, against what the kernel lets this process have. A
// stack is mapped whole, but only the pages that were used need memory, so the two are counted
// apart.
#include "stress/simulate/sim_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string_view>

#include "core/base/units.h"
#include "core/comm/sim/sim_world.h"
#include "core/device/host/available_memory.h"
#include "core/journal/journal.h"

namespace lockstep::stress::simulate {
namespace {

constexpr int kManyRanks = 64;
constexpr std::size_t kEvents = 1 << 14;
constexpr std::size_t kFewEvents = 1 << 8;

// Measured with 16,000 ranks in a barrier: the used pages of a rank's stack, its communicator, its
// evidence and its row in the file; the journal comes on top.
constexpr std::int64_t kUsedBytes = 48 << 10;

Status TooMany(int ranks, std::int64_t each, std::int64_t room, std::string_view what,
               std::string_view remedy) {
  if (room / each >= ranks) return OkStatus();
  room = std::max<std::int64_t>(0, room);
  return InvalidInput(
      "{} simulated ranks may need {} of {} ({} each), and this process may have {}: simulate at "
      "most {} ranks, or {}",
      ranks, FormatBytes(each * ranks), what, FormatBytes(each), FormatBytes(room), room / each,
      remedy);
}

}  // namespace

MemoryRoom RoomOfThisProcess() {
  MemoryRoom room = {std::numeric_limits<std::int64_t>::max(),
                     device::host::AvailableMemoryBytes()};
  rlimit limit{};
  std::int64_t pages = 0;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      std::ifstream("/proc/self/statm") >> pages) {
    room.address_space = static_cast<std::int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE);
  }
  return room;
}

std::size_t SimJournalEvents(int ranks) { return ranks > kManyRanks ? kFewEvents : kEvents; }

Status CheckSimMemory(int ranks, int fifos, const MemoryRoom& room) {
  // The evidence holds a copy of the journal.
  const auto used =
      static_cast<std::int64_t>(2 * journal::JournalBytes(SimJournalEvents(ranks))) + kUsedBytes;
  const auto stacks = static_cast<std::int64_t>(comm::sim::SimOptions().stack_bytes) * (1 + fifos);
  LOCKSTEP_RETURN_IF_ERROR(TooMany(ranks, used + stacks, room.address_space, "address space",
                                   "raise the limit (ulimit -v)"));
  return TooMany(ranks, used, room.memory, "memory",
                 "free some (MemAvailable, the memory limit of the control group)");
}

Status SimOutOfMemory() {
  return EnvironmentError(
      "all ranks together need more memory than this process may have; simulate fewer ranks or a "
      "smaller model, or raise ulimit -v");
}

}  // namespace lockstep::stress::simulate
