// Puts collectives on the communication stream beside the compute stream, tells the observer, and
// keeps when each of them ran.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/communicator.h"
#include "core/ddp/observer.h"
#include "core/device/device.h"
#include "core/device/kernels.h"

namespace lockstep::ddp {

// Memory of the buckets that engines of one rank share when they are used one after the other, each
// with its streams idle when the next one begins. It grows and stays.
class BucketMemory {
 public:
  enum class Area : std::uint8_t { kBuckets, kCompressed };
  // At least `bytes`; what was there is lost when it grows.
  Result<void*> Reserve(device::Device& device, Area area, std::int64_t bytes);

 private:
  std::unique_ptr<device::Buffer> areas_[2];
};

// What an engine works with; all of it outlives the engine. `compute` and `communication` may be
// one stream. When both are inline everything blocks; with a communication stream that runs beside
// the caller, collectives overlap with what the caller computes. A compute stream that runs beside
// the caller is never waited for but where PyTorch's CPU side waits too (.item()).
struct EnginePorts {
  comm::Communicator& communicator;
  device::Device& device;
  device::Kernels& kernels;
  device::Stream& compute;
  device::Stream& communication;
  EngineObserver* observer = nullptr;
  BucketMemory* bucket_memory = nullptr;  // null: memory of its own
};

// When one collective ran, in the device's ticks.
struct CollectiveTimes {
  Operation operation;
  journal::Annotation annotation;
  Ticks ready = 0;  // the compute stream got to where it was launched
  Ticks start = 0;  // the communication stream began it
  Ticks end = 0;
};

// A collective that was launched.
class Work {
 public:
  bool launched() const { return done_ != nullptr; }
  // It is over (or was never launched).
  bool done() const;

 private:
  friend class Launcher;
  std::shared_ptr<device::Event> done_;
};

class Launcher {
 public:
  // `deadline_seconds` bounds every wait on the host.
  Launcher(const EnginePorts& ports, double deadline_seconds)
      : ports_(ports), deadline_seconds_(deadline_seconds) {}
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Of the annotations of what follows.
  void set_iteration(std::int32_t iteration) { iteration_ = iteration; }

  // Enqueues the operation on the communication stream, behind all work that the compute stream has
  // so far. Buffers live until the work is done.
  Result<Work> Launch(const Operation& operation, const collective::Buffers& buffers,
                      Purpose purpose, std::int32_t detail = 0);
  // Later work of the communication stream comes after what the compute stream has so far: after
  // the event that is returned.
  std::shared_ptr<device::Event> OrderBehindCompute();
  // Done when the communication stream has done everything it has so far.
  Work MarkCommunication();
  // Later work of the compute stream comes after it. Blocks when compute is an inline stream.
  Status Wait(const Work& work);
  // Blocks until it is done.
  Status WaitOnHost(const Work& work);
  // Blocks until all work of the compute stream so far is done.
  Status Synchronize();

  // Whether the times of what is launched are kept until they are taken.
  void set_keep_times(bool keep) { keep_times_ = keep; }
  bool keep_times() const { return keep_times_; }
  // Of everything launched since the last call, in order; waits for it.
  Result<std::vector<CollectiveTimes>> TakeTimes();
  // An event of the device; used again when nobody else holds it and it was reached.
  std::shared_ptr<device::Event> NewEvent();

  const EnginePorts& ports() const { return ports_; }
  Deadline deadline() const { return Deadline::AfterSeconds(deadline_seconds_); }

 private:
  struct Flight {
    Operation operation;
    journal::Annotation annotation;
    std::shared_ptr<device::Event> ready;
    std::shared_ptr<device::Event> start;
    std::shared_ptr<device::Event> done;
  };

  EnginePorts ports_;
  double deadline_seconds_;
  bool keep_times_ = false;
  std::int32_t iteration_ = -1;
  std::vector<Flight> flights_;
  std::deque<std::shared_ptr<device::Event>> events_;
};

}  // namespace lockstep::ddp
