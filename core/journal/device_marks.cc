// The layout of the page that a GPU writes: the method, then two words a communicator. Words are
// read and written as atomics, because device and host run at the same time. Rubbish of a broken
// process is recognised by an impossible method.
#include "core/journal/device_marks.h"

#include <atomic>

#include "core/base/check.h"

namespace lockstep::journal {
namespace {

std::uint64_t* WordsIn(std::span<const std::byte> memory) {
  LOCKSTEP_CHECK(memory.size() >= kDeviceMarksBytes, "memory for device marks is one page");
  // Only read where it is const; std::atomic_ref<const T> is C++26.
  return reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(memory.data()));
}

std::uint64_t Load(std::uint64_t* word) {
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}

}  // namespace

std::string_view NameOf(MarkMethod method) {
  static constexpr std::string_view kNames[] = {
      "nobody", "stream memory operations", "a kernel of one thread", "none: --device-marks=off"};
  const auto index = static_cast<std::size_t>(method);
  return kNames[index < std::size(kNames) ? index : 0];
}

MarkWords MarkWordsOf(std::span<std::byte> memory, std::uint16_t communicator) {
  if (communicator >= kMarkedCommunicators) return {};
  std::uint64_t* const lane = WordsIn(memory) + 2 * (std::size_t{communicator} + 1);
  return {lane, lane + 1};
}

void SetMarkMethod(std::span<std::byte> memory, MarkMethod method) {
  std::atomic_ref(*WordsIn(memory))
      .store(static_cast<std::uint64_t>(method), std::memory_order_release);
}

DeviceMarks ReadDeviceMarks(std::span<const std::byte> memory) {
  std::uint64_t* const words = WordsIn(memory);
  DeviceMarks known;
  const std::uint64_t method = Load(words);
  // What is no method a broken process wrote over it.
  if (method == 0 || method > static_cast<std::uint64_t>(MarkMethod::kOff)) return known;
  known.method = static_cast<MarkMethod>(method);
  for (std::uint16_t c = 0; c < kMarkedCommunicators; ++c) {
    std::uint64_t* const lane = words + 2 * (std::size_t{c} + 1);
    // The end first: it never is ahead of the start that is read after it.
    const std::uint64_t ended = Load(lane + 1);
    const std::uint64_t started = Load(lane);
    if (started != 0 || ended != 0) known.marks.push_back({c, started, ended});
  }
  return known;
}

}  // namespace lockstep::journal
