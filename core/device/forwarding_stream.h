// Streams that pass everything on to another one: for those that change a part of it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/device/device.h"
#include "core/device/native_stream.h"

namespace lockstep::device {

class ForwardingStream : public Stream {
 public:
  explicit ForwardingStream(Stream& inner) : inner_(inner) {}  // which outlives it

  bool inline_execution() const override { return inner_.inline_execution(); }
  void Enqueue(Work work) override { inner_.Enqueue(std::move(work)); }
  void Record(Event& event) override { inner_.Record(event); }
  void WaitFor(Event& event) override { inner_.WaitFor(event); }
  Status Synchronize(Deadline deadline) override { return inner_.Synchronize(deadline); }
  Status status() const override { return inner_.status(); }

 protected:
  Stream& inner() { return inner_; }

 private:
  Stream& inner_;
};

// `inner` and `native` are one object. It has no points to come after.
class ForwardingNativeStream : public ForwardingStream, public NativeStream {
 public:
  ForwardingNativeStream(Stream& inner, NativeStream& native)
      : ForwardingStream(inner), native_(native) {}

  Status LaunchOn(const Launch& launch) override { return native_.LaunchOn(launch); }
  Result<std::unique_ptr<StreamGraph>> Capture(const Launch& launch) override {
    return native_.Capture(launch);
  }
  Status WriteWord(std::uint64_t* word, std::uint64_t value) override {
    return native_.WriteWord(word, value);
  }
  Status IncrementWord(std::uint64_t* word) override { return native_.IncrementWord(word); }

 protected:
  NativeStream& native() { return native_; }

 private:
  NativeStream& native_;
};

}  // namespace lockstep::device
