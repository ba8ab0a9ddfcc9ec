// What a worker says of itself, in the memory that it shares with its agent: known also when the
// worker is wedged or dead.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep::control {

struct WorkerCard {
  std::string gpu_bus;   // where its device sits, as "0000:3b:00.0"; empty: nowhere
  std::string log_file;  // what its library writes of its trouble; empty: nothing
};

inline constexpr std::size_t kWorkerCardBytes = 2048;

// Texts that are too long are left out.
void WriteCard(std::span<std::byte> memory, const WorkerCard& card);
// The worker is under test, and may have written anything: texts end with the memory.
WorkerCard ReadCard(std::span<const std::byte> memory);

}  // namespace lockstep::control
