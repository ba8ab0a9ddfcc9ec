// A stream with a handle whose device notes by itself what it begins and ends.
#ifndef LOCKSTEP_CORE_COMM_MARKING_STREAM_H_
#define LOCKSTEP_CORE_COMM_MARKING_STREAM_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "core/device/device.h"
#include "core/device/native_stream.h"
#include "core/journal/device_marks.h"

namespace lockstep::comm {

// What is launched through it, one operation, stands between two writes of the device into `words`.
// `stream` and `native` are one object, which outlives it.
class MarkingStream final : public device::Stream, public device::NativeStream {
 public:
  MarkingStream(device::Stream& stream, device::NativeStream& native,
                const journal::MarkWords& words, std::uint64_t number)
      : stream_(stream), native_(native), words_(words), number_(number) {}

  bool inline_execution() const override { return stream_.inline_execution(); }
  void Enqueue(Work work) override { stream_.Enqueue(std::move(work)); }
  void Record(device::Event& event) override { stream_.Record(event); }
  void WaitFor(device::Event& event) override { stream_.WaitFor(event); }
  Status Synchronize(Deadline deadline) override { return stream_.Synchronize(deadline); }
  Status status() const override { return stream_.status(); }

  Status LaunchOn(const Launch& launch) override {
    LOCKSTEP_RETURN_IF_ERROR(native_.WriteWord(words_.started, number_));
    LOCKSTEP_RETURN_IF_ERROR(native_.LaunchOn(launch));
    return native_.WriteWord(words_.ended, number_);
  }
  Result<std::unique_ptr<device::StreamGraph>> Capture(const Launch& launch) override {
    return native_.Capture(launch);
  }
  Status WriteWord(std::uint64_t* word, std::uint64_t value) override {
    return native_.WriteWord(word, value);
  }
  device::NativeStream& Bare() override { return native_; }

 private:
  device::Stream& stream_;
  device::NativeStream& native_;
  const journal::MarkWords words_;
  const std::uint64_t number_;
};

}  // namespace lockstep::comm

#endif  // LOCKSTEP_CORE_COMM_MARKING_STREAM_H_
