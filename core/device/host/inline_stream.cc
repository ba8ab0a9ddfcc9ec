#include "core/device/host/inline_stream.h"

#include "core/device/host/fifo_stream.h"
#include "core/device/host/host_event.h"

namespace lockstep::device::host {

void InlineStream::Enqueue(Work work) {
  if (status_.ok()) [[likely]]
    status_ = work();
}

void InlineStream::Record(Event& event) {
  const auto latch = HostEvent::LatchOf(event);
  latch->Promise();
  if (status_.ok()) {
    latch->Set();
  } else {
    latch->Fail(status_);
  }
}

void InlineStream::WaitFor(Event& event) {
  if (!status_.ok()) return;
  status_ = HostEvent::LatchOf(event)->Await(Deadline::AfterSeconds(kLongestWaitSeconds));
}

}  // namespace lockstep::device::host
