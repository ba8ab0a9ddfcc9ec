// An order to do something to a worker from outside, and what comes of it.
#pragma once

#include <cstdint>

namespace lockstep::control {

struct AgentFault {
  enum class Kind : std::uint8_t {
    // Binds the worker to the processor it runs on, and `amount` processes that spin beside it.
    kCpuHog,
    // Stops and continues the worker, so that it may run this part (0 to 1) of the time.
    kCpuThrottle,
    // So many bytes more may it map (RLIMIT_AS); nothing is taken from it.
    kMemoryLimit,
    // So many descriptors more may it open (RLIMIT_NOFILE).
    kDescriptorLimit,
    // So many bytes may it lock (RLIMIT_MEMLOCK).
    kLockedMemoryLimit,
    // So many bytes are left in its private /dev/shm (WorkerSetup::private_shm).
    kShmFull,
    // Its CLOCK_REALTIME jumps by so many seconds (WorkerSetup::movable_clock); no other does.
    kClockJump,
    // What its WorkerSetup says was done when it was started; nothing is left to do.
    kSetup,
  };
  Kind kind = Kind::kSetup;
  double amount = 0;
  double duration_seconds = 0;  // 0: to the end of the worker
  static void Describe(auto& fields, auto& fault) {
    fields.UpTo(fault.kind, Kind::kSetup);
    fields(fault.amount, fault.duration_seconds);
  }
};

// Where the program finds the nanoseconds to add: a file of 8 bytes, which only the agent has.
inline constexpr char kClockOffsetVariable[] = "LOCKSTEP_CLOCK_OFFSET";

enum class FaultNews : std::uint8_t { kApplied, kImpossible, kHealed };

}  // namespace lockstep::control
