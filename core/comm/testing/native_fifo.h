// For tests: a stream with a handle, as CUDA's, on the host. Its handle is the address of a Stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/comm/work_graph.h"
#include "core/device/host/host_device.h"
#include "core/device/native_stream.h"

namespace lockstep::comm {

// What is launched on it is no piece of work of the port's. Captures are CUDA's: they spread to
// streams that come after a point of a captured one, and to no others.
class NativeFifo final : public device::Stream, public device::NativeStream {
 public:
  // Where the work runs.
  explicit NativeFifo(std::unique_ptr<device::Stream> fifo = device::host::HostDevice().NewStream())
      : fifo_(std::move(fifo)) {}
  bool inline_execution() const override { return false; }
  void Enqueue(Work work) override {
    Disturb();
    fifo_->Enqueue(std::move(work));
  }
  void Record(device::Event& event) override {
    Disturb();
    fifo_->Record(event);
  }
  void WaitFor(device::Event& event) override {
    Disturb();
    fifo_->WaitFor(event);
  }
  Status Synchronize(Deadline deadline) override {
    Disturb();
    return fifo_->Synchronize(deadline);
  }
  Status status() const override {
    Disturb();
    return fifo_->status();
  }
  Status LaunchOn(const Launch& launch) override {
    return launch(capture_ == nullptr ? fifo_.get() : static_cast<device::Stream*>(&*keeping_));
  }
  Result<std::unique_ptr<device::StreamGraph>> Capture(const Launch& launch) override {
    ++captures;
    Captured captured;
    Join(captured, 0);
    const Status status = launch(static_cast<device::Stream*>(&*keeping_));
    for (NativeFifo* const member : captured.members) member->capture_ = nullptr;
    LOCKSTEP_RETURN_IF_ERROR(status);
    LOCKSTEP_RETURN_IF_ERROR(captured.graph->Joined());
    return std::unique_ptr<device::StreamGraph>(std::move(captured.graph));
  }
  Result<std::unique_ptr<device::StreamPoint>> Mark() override {
    auto point = std::make_unique<Point>();
    if (capture_ != nullptr) {
      point->capture = capture_;
      point->nodes = capture_->graph->Mark(lane_);
    } else {
      fifo_->Record(*point->event);
      Hold(point->event);
    }
    return std::unique_ptr<device::StreamPoint>(std::move(point));
  }
  Status After(const device::StreamPoint& of) override {
    const auto& point = static_cast<const Point&>(of);
    if (point.capture == nullptr) {
      fifo_->WaitFor(*point.event);
      Hold(point.event);
      return OkStatus();
    }
    if (capture_ == nullptr) Join(*point.capture, point.capture->graph->AddLane());
    capture_->graph->After(lane_, point.nodes);
    return OkStatus();
  }
  Status WriteWord(std::uint64_t* word, std::uint64_t value) override {
    fifo_->Enqueue([word, value] { return std::atomic_ref(*word).store(value), OkStatus(); });
    return OkStatus();
  }

  Status IncrementWord(std::uint64_t* word) override {
    return LaunchOn([word](void* handle) {
      static_cast<device::Stream*>(handle)->Enqueue(
          [word] { return std::atomic_ref(*word).fetch_add(1), OkStatus(); });
      return OkStatus();
    });
  }

  int captures = 0;
  mutable bool disturbed = false;  // used while it was captured, which ends a capture of CUDA's

 private:
  struct Captured {
    std::unique_ptr<WorkGraph> graph = std::make_unique<WorkGraph>();
    std::vector<NativeFifo*> members;
  };
  struct Point final : device::StreamPoint {
    bool Reached() const override { return capture == nullptr && event->Reached(); }
    Captured* capture = nullptr;
    WorkGraph::Point nodes;
    std::shared_ptr<device::Event> event = device::host::HostDevice().NewEvent();
  };

  // Until the queue has got past it.
  void Hold(std::shared_ptr<device::Event> event) {
    fifo_->Enqueue([event = std::move(event)] { return OkStatus(); });
  }
  void Disturb() const { disturbed = disturbed || capture_ != nullptr; }
  void Join(Captured& captured, int lane) {
    capture_ = &captured;
    lane_ = lane;
    keeping_.emplace(*captured.graph, lane);
    captured.members.push_back(this);
  }

  std::unique_ptr<device::Stream> fifo_;
  Captured* capture_ = nullptr;  // under way
  int lane_ = 0;
  std::optional<KeepingStream> keeping_;
};

}  // namespace lockstep::comm
