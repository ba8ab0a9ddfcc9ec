// A stream that runs work at enqueue, on the calling thread.
#ifndef LOCKSTEP_CORE_DEVICE_HOST_INLINE_STREAM_H_
#define LOCKSTEP_CORE_DEVICE_HOST_INLINE_STREAM_H_

#include "core/device/device.h"

namespace lockstep::device::host {

// One thread uses it. Allocates nothing.
class InlineStream final : public Stream {
 public:
  bool inline_execution() const override { return true; }
  void Enqueue(Work work) override;
  void Record(Event& event) override;
  void WaitFor(Event& event) override;
  Status Synchronize(Deadline) override { return status_; }
  Status status() const override { return status_; }
  bool ok() const override { return status_.ok(); }

 private:
  Status status_;
};

}  // namespace lockstep::device::host

#endif  // LOCKSTEP_CORE_DEVICE_HOST_INLINE_STREAM_H_
