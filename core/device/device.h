// The device port: memory and ordered queues of work. `host` here; `cuda` beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/status.h"

namespace lockstep::device {

// Memory on a device, freed with the object. Host buffers are page-aligned and touched (no page
// fault is left for the timed region).
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual void* data() = 0;
  virtual std::int64_t bytes() const = 0;
};

// A timestamped latch: set once by the stream when it gets there.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool Reached() const = 0;
  virtual Ticks ReachedAt() const = 0;          // only after Reached()
  virtual Status Await(Deadline deadline) = 0;  // kDeadlineExceeded, or the stream's error
  // Only when reached or never recorded. A stream that was told to wait for it passes, or fails, as
  // if it had not been reset.
  virtual void Reset() = 0;
};

// Work in order. Work that returns an error fails the stream: later work is not run, and
// Synchronize and Status give the first error.
class Stream {
 public:
  using Work = std::function<Status()>;
  virtual ~Stream() = default;
  // True when work runs at enqueue on the calling thread (what a latency benchmark must measure).
  virtual bool inline_execution() const = 0;
  virtual void Enqueue(Work work) = 0;
  // Work that cannot fail.
  template <typename Function>
  void Do(Function work) {
    Enqueue([work = std::move(work)] {
      work();
      return OkStatus();
    });
  }
  virtual void Record(Event& event) = 0;   // the event is set when earlier work is done
  virtual void WaitFor(Event& event) = 0;  // later work waits for the event (bounded by 24 h)
  virtual Status Synchronize(Deadline deadline) = 0;
  virtual Status status() const = 0;                 // of the work done so far
  virtual bool ok() const { return status().ok(); }  // the same, cheaper
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;  // "host"
  virtual Result<std::unique_ptr<Buffer>> Allocate(std::int64_t bytes) = 0;
  virtual std::unique_ptr<Event> NewEvent() = 0;
  virtual std::unique_ptr<Stream> NewStream() = 0;  // a FIFO that runs beside the caller
  // A stream that runs work at enqueue; nullptr where the device has no such thing.
  virtual std::unique_ptr<Stream> NewInlineStream() = 0;
};

}  // namespace lockstep::device
