// Puts collectives on the communication stream beside the compute stream, tells the observer, and
// keeps when each of them ran.
#ifndef LOCKSTEP_CORE_DDP_LAUNCHER_H_
#define LOCKSTEP_CORE_DDP_LAUNCHER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/communicator.h"
#include "core/ddp/observer.h"
#include "core/device/device.h"
#include "core/device/kernels.h"

namespace lockstep {

// What an engine works with; all of it outlives the engine. `compute` and `communication` may be
// one stream. When both are inline everything blocks; with a communication stream that runs beside
// the caller, collectives overlap with what the caller computes. A compute stream that runs beside
// the caller is never waited for but where PyTorch's CPU side waits too (.item()).
struct EnginePorts {
  Communicator& communicator;
  Device& device;
  Kernels& kernels;
  Stream& compute;
  Stream& communication;
  EngineObserver* observer = nullptr;
};

// When one collective ran, in the device's ticks.
struct CollectiveTimes {
  Operation operation;
  Annotation annotation;
  Ticks ready = 0;  // the compute stream got to where it was launched
  Ticks start = 0;  // the communication stream began it
  Ticks end = 0;
};

// A collective that was launched.
class Work {
 public:
  bool launched() const { return done_ != nullptr; }

 private:
  friend class Launcher;
  std::shared_ptr<Event> done_;
};

class Launcher {
 public:
  // `deadline_seconds` bounds every wait on the host.
  Launcher(const EnginePorts& ports, double deadline_seconds);

  // Of the annotations of what follows.
  void set_iteration(std::int32_t iteration) { iteration_ = iteration; }

  // Enqueues the operation on the communication stream, behind all work that the compute stream has
  // so far. Buffers live until the work is done.
  Result<Work> Launch(const Operation& operation, const Buffers& buffers, Purpose purpose,
                      std::int32_t detail = 0);
  // Later work of the compute stream comes after it. Blocks when compute is an inline stream.
  Status Wait(Work& work);
  // Blocks until it is done: its result is read on the host.
  Status WaitOnHost(Work& work);
  // Everything launched since the last call, in order; waits for it.
  Result<std::vector<CollectiveTimes>> TakeTimes();

  const EnginePorts& ports() const { return ports_; }
  double deadline_seconds() const { return deadline_seconds_; }

 private:
  struct Flight;  // the events of a collective

  EnginePorts ports_;
  double deadline_seconds_;
  std::int32_t iteration_ = -1;
  std::vector<std::shared_ptr<Flight>> flights_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_DDP_LAUNCHER_H_
