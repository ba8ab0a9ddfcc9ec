// What all rooms of a launch share: who is there, what it is started with, told and done to.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"

namespace lockstep::control {

// What an agent knows of its machine when it joins.
struct AgentInfo {
  int rank = 0;
  std::string host;          // host name
  std::string boot_id = {};  // the same value: the same kernel, hence a common tick counter
  int pid = 0;
  std::vector<int> cpus = {};  // the processors this rank may run on (its affinity mask)
  std::int64_t memory_available_bytes = 0;
  static void Describe(auto& fields, auto& info) {
    fields(info.rank, info.host, info.boot_id, info.pid, info.memory_available_bytes, info.cpus);
  }
};

// What a rank's worker is started with beyond its agent's own environment.
struct WorkerSetup {
  std::vector<std::string> environment;  // "NAME=VALUE", in place of the agent's
  // Names the memory of an offset, for a program that adds it to its time of day.
  bool movable_clock = false;
  // A small /dev/shm instead of the machine's, shared by the ranks of this host that ask for one.
  // Where that is not permitted the worker keeps the machine's; the fault that wants it says so.
  bool private_shm = false;

  bool empty() const { return environment.empty() && !movable_clock && !private_shm; }
  static void Describe(auto& fields, auto& setup) {
    fields(setup.environment, setup.movable_clock, setup.private_shm);
  }
};

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

// An order to do something to a worker from outside, and what comes of it.
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

// The clocks of one host at one moment, as its agent reads them.
struct ClockReading {
  Ticks ticks = 0;
  std::int64_t raw_ns = 0;     // CLOCK_MONOTONIC_RAW: what its quartz takes for time
  std::int64_t day_ns = 0;     // CLOCK_REALTIME: what its people do
  std::int64_t window_ns = 0;  // in which all three were read
  double ns_per_tick = 1;      // as the agent calibrated it when it started
  static void Describe(auto& fields, auto& reading) {
    fields(reading.ticks, reading.raw_ns, reading.day_ns, reading.window_ns, reading.ns_per_tick);
    fields.Require(std::isfinite(reading.ns_per_tick) && reading.ns_per_tick > 0);
  }
};
ClockReading ReadClock(double ns_per_tick);

// What a child is told of itself, through one environment variable.
struct ChildRole {
  // kExchange: only serves one exchange of addresses over MPI, then leaves.
  // kExchangingWorker: serves it with the MPI that it will work with, then is a worker.
  enum class Kind : int { kWorker, kExchange, kExchangingWorker };
  Kind kind = Kind::kWorker;
  int channel_fd = -1;
  int segment_fd = -1;  // -1: none
  int agent_pid = 0;
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int lifetime = 0;
  unsigned long long open_files = 0;  // soft limit (RLIMIT_NOFILE) that the launcher gave
};
inline constexpr char kRoleVariable[] = "LOCKSTEP_WORKER";
std::string EncodeRole(const ChildRole& role);
std::optional<ChildRole> DecodeRole(const std::string& text);

}  // namespace lockstep::control
