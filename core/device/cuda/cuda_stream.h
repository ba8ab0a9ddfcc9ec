// Streams and events of a GPU. Internal to this room.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/device/device.h"
#include "core/device/host/host_event.h"
#include "core/device/native_stream.h"

namespace lockstep::device::cuda {

// Set by the stream: a latch of the host for those who ask and for the stamp, CUDA's event for
// streams that wait once it is recorded, and a word of memory for streams that wait before.
class CudaEvent final : public Event {
 public:
  CudaEvent();
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  bool Reached() const override { return parts_->latch.Reached(); }
  Ticks ReachedAt() const override { return parts_->latch.ReachedAt(); }
  Status Await(Deadline deadline) override { return parts_->latch.Await(deadline); }
  void Reset() override;

 private:
  friend class CudaStream;
  // Shared with the streams: a waiter may destroy the event while a stream is still at it.
  struct Parts {
    ~Parts();
    host::HostLatch latch;
    cudaEvent_t event = nullptr;
    std::uint32_t* word = nullptr;  // of the host, mapped: 0, then 1
    std::atomic<bool> recorded{false};
    Status made;  // not OK: CUDA could not make it
  };
  std::shared_ptr<Parts> parts_ = std::make_shared<Parts>();
};

class CudaStream final : public Stream, public NativeStream {
 public:
  CudaStream(int device, bool inline_execution);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  bool inline_execution() const override { return inline_; }
  void Enqueue(Work work) override;
  void Record(Event& event) override;
  void WaitFor(Event& event) override;
  Status Synchronize(Deadline deadline) override;
  Status status() const override;
  Status LaunchOn(const Launch& launch) override;
  Result<std::unique_ptr<StreamGraph>> Capture(const Launch& launch) override;
  Result<std::unique_ptr<StreamPoint>> Mark() override;
  Status After(const StreamPoint& point) override;
  Status WriteWord(std::uint64_t* word, std::uint64_t value) override;
  Status IncrementWord(std::uint64_t* word) override;

 private:
  struct State;
  struct Item;
  void Fail(const Status& status);
  // Runs `work` on a thread of CUDA's, in stream order; unless `always`, only on a healthy stream.
  void EnqueueHost(Work work, bool always);

  int device_;
  bool inline_;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep::device::cuda
