// A stream with a handle whose device notes by itself what it begins and ends.
#ifndef LOCKSTEP_CORE_COMM_MARKING_STREAM_H_
#define LOCKSTEP_CORE_COMM_MARKING_STREAM_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "core/device/device.h"
#include "core/device/native_stream.h"
#include "core/journal/device_marks.h"

namespace lockstep {

// What is launched through it stands between two writes of the device into `words`. For one
// operation, or for a graph of several, in which the device cannot say how far it is: it is in the
// first one until it ended the last. `stream` and `native` are one object, which outlives it.
class MarkingStream final : public Stream, public NativeStream {
 public:
  MarkingStream(Stream& stream, NativeStream& native, const MarkWords& words, std::uint64_t first,
                std::uint64_t last)
      : stream_(stream), native_(native), words_(words), first_(first), last_(last) {}

  bool inline_execution() const override { return stream_.inline_execution(); }
  void Enqueue(Work work) override { stream_.Enqueue(std::move(work)); }
  void Record(Event& event) override { stream_.Record(event); }
  void WaitFor(Event& event) override { stream_.WaitFor(event); }
  Status Synchronize(Deadline deadline) override { return stream_.Synchronize(deadline); }
  Status status() const override { return stream_.status(); }

  Status LaunchOn(const Launch& launch) override {
    LOCKSTEP_RETURN_IF_ERROR(native_.WriteWord(words_.started, first_));
    LOCKSTEP_RETURN_IF_ERROR(native_.LaunchOn(launch));
    LOCKSTEP_RETURN_IF_ERROR(native_.WriteWord(words_.ended, last_));
    return first_ == last_ ? OkStatus() : native_.WriteWord(words_.started, last_);
  }
  Result<std::unique_ptr<StreamGraph>> Capture(const Launch& launch) override {
    return native_.Capture(launch);
  }
  Status WriteWord(std::uint64_t* word, std::uint64_t value) override {
    return native_.WriteWord(word, value);
  }
  NativeStream& Bare() override { return native_; }

 private:
  Stream& stream_;
  NativeStream& native_;
  const MarkWords words_;
  const std::uint64_t first_;
  const std::uint64_t last_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_COMM_MARKING_STREAM_H_
