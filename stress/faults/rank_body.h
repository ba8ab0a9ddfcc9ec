// The rank that faults befall: a process, or a rank of a simulation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"

namespace lockstep::stress::faults {

// What stays of faults that do not end their rank.
struct RankMarks {
  bool raised = false;  // an error of the program's own: it ends, and nobody recovers it
  std::atomic<bool> abort_hangs = false;  // asked by the thread that aborts
  bool wrong_membership = false;
  std::vector<std::unique_ptr<device::Buffer>> taken = {};  // of the device's memory
};

// What no call of the operating system does to a rank of a simulation.
class SimulatedRank {
 public:
  virtual ~SimulatedRank() = default;
  // Ends it; does not return.
  virtual void CrashBy(int signal) = 0;
  // It stays where it is; does not return.
  virtual void Hang() = 0;
};

class RankBody {
 public:
  virtual ~RankBody() = default;
  // A moment of its program at which faults are looked for, whether there is one or not.
  virtual void AtMoment() {}
  // Writes down that a fault fired, before it takes effect.
  virtual void Journal(std::size_t fault_index) = 0;
  // Asks outside for the fault and waits (bounded) until it was applied.
  virtual Status ApplyOutside(std::size_t fault_index) = 0;
  virtual double SecondsSinceStart() = 0;
  // Leaves at once, finalizing nothing.
  virtual void Exit(int code) = 0;
  // Passes time without using the processor.
  virtual Status Sleep(std::int64_t ns) = 0;
  // That it computes on; nullptr before it is open.
  virtual device::Device* device() { return nullptr; }
  // nullptr: it is a process.
  virtual SimulatedRank* simulated() { return nullptr; }
  virtual RankMarks& marks() = 0;
};

}  // namespace lockstep::stress::faults
