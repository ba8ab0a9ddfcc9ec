// How far a device came in a rank's collectives, written by the device itself: words of memory that
// worker, agent and device share. They say where the GPU is when the process is stopped, wedged or
// dead and its host writes no journal any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::journal {

// One page, so that it can be mapped for a device. Word 0 says who writes, then two words for each
// communicator of a number below kMarkedCommunicators.
inline constexpr std::size_t kDeviceMarksBytes = 4096;
inline constexpr std::uint16_t kMarkedCommunicators = 255;

// How a stream writes a word.
enum class MarkMethod : std::uint64_t {
  kNone = 0,              // nobody marks, or not yet
  kStreamOperations = 1,  // the driver's stream memory operations
  kKernel = 2,            // a kernel of one thread
  kOff = 3,               // nobody is to: --device-marks=off
};
std::string_view NameOf(MarkMethod method);

// Of one communicator: the newest collective that the device began, and that it ended, counted from
// 1 (the sequence number of a journal's event plus 1). 0: none.
struct DeviceMark {
  std::uint16_t communicator = 0;
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
};

// What is known of a rank's device; none: no communicator was marked.
struct DeviceMarks {
  MarkMethod method = MarkMethod::kNone;
  std::vector<DeviceMark> marks;
};

// The words of a communicator for the device to write; nullptr beyond those that are marked.
struct MarkWords {
  std::uint64_t* started = nullptr;
  std::uint64_t* ended = nullptr;
};
MarkWords MarkWordsOf(std::span<std::byte> memory, std::uint16_t communicator);
void SetMarkMethod(std::span<std::byte> memory, MarkMethod method);

// Those of communicators whose words are not both 0. Safe while they are written.
DeviceMarks ReadDeviceMarks(std::span<const std::byte> memory);

}  // namespace lockstep::journal
