// Streams and events of a GPU. Internal to this room.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "core/device/device.h"
#include "core/device/host/host_event.h"
#include "core/device/native_stream.h"

namespace lockstep::device::cuda {

// What a stream waits for: CUDA's event once it is recorded, and before that a word of mapped
// memory, which each recording sets to the number of its turn.
struct Signal {
  cudaEvent_t event = nullptr;
  std::uint32_t* word = nullptr;
  std::uint32_t turn = 0;
  Status made;  // not OK: CUDA could not make it
};

// Keeps signals, because it takes long to make them. Thread-safe.
class Signals {
 public:
  // One at its next turn, which the device is done with: it wrote the word of the last turn.
  Signal Take();
  void Give(const Signal& signal, bool recorded);
  // Destroys those that the device is done with. The others stay until the process ends, as do
  // those that come later: a host function may give them, which may not call CUDA.
  void Clear();

 private:
  std::mutex mutex_;
  std::deque<Signal> free_;
};

// Set by the stream: a latch of the host for those who ask and for the stamp, and a signal for
// streams. A device is late: it may still look at what the host has reset or destroyed.
class CudaEvent final : public Event {
 public:
  explicit CudaEvent(std::shared_ptr<Signals> signals);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  bool Reached() const override { return turn_->latch.Reached(); }
  Ticks ReachedAt() const override { return turn_->latch.ReachedAt(); }
  Status Await(Deadline deadline) override { return turn_->latch.Await(deadline); }
  void Reset() override;

 private:
  friend class CudaStream;
  // From one reset to the next, shared with the streams that record it or wait for it.
  struct Turn {
    explicit Turn(std::shared_ptr<Signals> its_signals);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    std::shared_ptr<Signals> signals;
    Signal signal;
    host::HostLatch latch;
    std::atomic<bool> recorded{false};
  };
  std::shared_ptr<Signals> signals_;
  std::shared_ptr<Turn> turn_;
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
