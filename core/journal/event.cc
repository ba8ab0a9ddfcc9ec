#include "core/journal/event.h"

#include <array>
#include <cstddef>

namespace lockstep::journal {
namespace {

// Names come from shared memory too, so a value outside the enum is no reason to end.
template <std::size_t kSize, typename Enum>
std::string_view NameIn(const std::array<std::string_view, kSize>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < kSize ? names[index] : "unknown";
}

}  // namespace

std::string_view NameOf(EventKind kind) {
  static constexpr std::array<std::string_view, 13> kNames = {
      "none", "enqueue", "start", "end",   "error", "phase",    "case",
      "idle", "exit",    "fault", "death", "split", "split_end"};
  return NameIn(kNames, kind);
}

std::string_view NameOf(Phase phase) {
  static constexpr std::array<std::string_view, 14> kNames = {
      "start",    "connect",   "allocate", "measure",  "check",     "load",     "compute",
      "finalize", "construct", "forward",  "backward", "join_exit", "evaluate", "barrier"};
  return NameIn(kNames, phase);
}

}  // namespace lockstep::journal
