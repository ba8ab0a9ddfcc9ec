// A stream whose work becomes part of a graph: what a stream of CUDA's does while it is captured.
#pragma once

#include <utility>

#include "core/comm/work_graph.h"
#include "core/device/device.h"

namespace lockstep::comm {

// Keeps what is enqueued, and runs nothing. Events and waits fail it: they need a StreamPoint.
class KeepingStream final : public device::Stream {
 public:
  KeepingStream(WorkGraph& graph, int lane) : graph_(graph), lane_(lane) {}

  bool inline_execution() const override { return false; }
  void Enqueue(Work work) override { graph_.Add(lane_, std::move(work)); }
  void Record(device::Event&) override { Refuse(); }
  void WaitFor(device::Event&) override { Refuse(); }
  Status Synchronize(Deadline) override { return Refuse(), status_; }
  Status status() const override { return status_; }

 private:
  void Refuse() {
    if (status_.ok()) status_ = Unsupported("a graph of the host's work holds nothing but work");
  }

  WorkGraph& graph_;
  const int lane_;
  Status status_;
};

}  // namespace lockstep::comm
