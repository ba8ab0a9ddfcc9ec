// A graph where the host does the work: what several streams were given, and what comes after what.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/native_stream.h"

namespace lockstep::comm {

// Streams are lanes, numbered from 0. Work of a lane comes after what the lane got before, and
// after the points it was told to come after: nothing else is ordered, and a launch makes use of
// that. It runs the lanes' work one by one, in the first launch as much of lane 0 as can run before
// any of the others, in the next one the other way round, so that an order that nobody asked for
// shows.
class WorkGraph final : public device::StreamGraph {
 public:
  // The nodes that a lane's next work comes after.
  using Point = std::vector<std::size_t>;

  WorkGraph() : lanes_(1) {}
  int AddLane();
  void Add(int lane, device::Stream::Work work);
  Point Mark(int lane) const;
  void After(int lane, const Point& point);
  // kInvalidInput, as CUDA's capture, where a lane has work that lane 0 does not come after.
  Status Joined() const;

  // `handle` is the address of a Stream, on which all of it runs as one piece of work. Its first
  // error ends it.
  Status LaunchOn(void* handle) override;

 private:
  struct Node {
    std::size_t lane = 0;
    Point after;
    device::Stream::Work work;
  };
  Status Run(bool backwards) const;

  std::vector<Node> nodes_;
  std::vector<Point> lanes_;  // what each one's next work comes after
  bool backwards_ = false;
};

// A stream whose work becomes part of a graph: what a stream of CUDA's does while it is captured.
// It keeps what is enqueued, and runs nothing. Events and waits fail it: they need a StreamPoint.
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
