// A stream with a handle while what is enqueued on it is captured.
#ifndef LOCKSTEP_CORE_COMM_CAPTURING_STREAM_H_
#define LOCKSTEP_CORE_COMM_CAPTURING_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/native_stream.h"

namespace lockstep::comm {

// What a backend sees of it: only launches can be captured. Anything else makes it sick, and so the
// capture fail; the stream itself must not be asked for anything meanwhile.
class CapturingStream final : public device::Stream, public device::NativeStream {
 public:
  // `native` is captured, and `handle` its own.
  CapturingStream(device::NativeStream& native, void* handle) : native_(native), handle_(handle) {}

  bool inline_execution() const override { return false; }
  void Enqueue(Work) override { Refuse("work of the host"); }
  void Record(device::Event&) override { Refuse("an event"); }
  void WaitFor(device::Event&) override { Refuse("a wait for an event"); }
  Status Synchronize(Deadline) override {
    Refuse("a synchronization");
    return status_;
  }
  Status status() const override { return status_; }
  Status LaunchOn(const Launch& launch) override {
    LOCKSTEP_RETURN_IF_ERROR(status_);
    return launch(handle_);
  }
  Result<std::unique_ptr<device::StreamGraph>> Capture(const Launch&) override {
    return Unsupported("a graph cannot be captured within another");
  }
  Status WriteWord(std::uint64_t*, std::uint64_t) override {
    return Unsupported("a word that a graph writes would be the same in every replay");
  }
  Status IncrementWord(std::uint64_t* word) override { return native_.IncrementWord(word); }

 private:
  void Refuse(const char* what) {
    if (status_.ok()) status_ = Unsupported(std::string("a graph cannot hold ") + what);
  }

  device::NativeStream& native_;
  void* handle_;
  Status status_;
};

}  // namespace lockstep::comm

#endif  // LOCKSTEP_CORE_COMM_CAPTURING_STREAM_H_
