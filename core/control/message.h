// What a suite tells its workers, and they tell it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::control {

// A framed message between a suite (on the coordinator) and its workers. Types below
// kReservedMessageType belong to the suite. At most kMaxPayloadBytes.
struct Message {
  std::uint32_t type = 0;
  std::string payload;
  static void Describe(auto& fields, auto& message) {
    fields(message.type);
    fields.Rest(message.payload);
  }
};
inline constexpr std::uint32_t kReservedMessageType = 1u << 16;
inline constexpr std::size_t kMaxPayloadBytes = 16u << 20;

}  // namespace lockstep::control
