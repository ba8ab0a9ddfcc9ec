// Two pairs of streams behind one interface. Host lanes keep functions in a WorkGraph; native lanes
// capture launches in the device's own graph. What a graph cannot hold, such as waiting or memory,
// fails the capture with its first error. An event of another device stops the program.
#include "core/comm/graph_streams.h"

#include <string>
#include <thread>
#include <typeinfo>
#include <utility>

#include "core/base/check.h"
#include "core/comm/work_graph.h"

namespace lockstep::comm {
namespace {

// What both streams are in the middle of.
struct Keeping {
  bool on = false;
  Status first;                      // error of the capture
  std::unique_ptr<WorkGraph> graph;  // of the host's work

  void Refuse(const char* what) { Fail(Unsupported(std::string("a graph cannot hold ") + what)); }
  void Fail(const Status& status) {
    if (first.ok() && !status.ok()) first = status;
  }
};

// Of a device's streams its point; of the host's an event outside a capture, and nodes in one.
class GraphEvent final : public device::Event {
 public:
  explicit GraphEvent(std::unique_ptr<device::Event> the_real) : real(std::move(the_real)) {}

  bool Reached() const override {
    if (captured) return false;
    return real == nullptr ? point != nullptr && point->Reached() : real->Reached();
  }
  Ticks ReachedAt() const override {
    LOCKSTEP_CHECK(real != nullptr, "points of a device's stream have no time");
    return real->ReachedAt();
  }
  Status Await(Deadline deadline) override {
    LOCKSTEP_CHECK(!captured, "what is captured does not run");
    if (real != nullptr) return real->Await(deadline);
    while (!Reached()) {
      if (deadline.Passed()) return DeadlineExceeded("the event was not reached in time");
      std::this_thread::yield();
    }
    return OkStatus();
  }
  void Reset() override {
    captured = failed = false;
    point.reset();
    if (real != nullptr) real->Reset();
  }

  std::unique_ptr<device::Event> real;  // nullptr: the streams have handles
  std::unique_ptr<device::StreamPoint> point;
  WorkGraph::Point nodes;
  bool captured = false;
  bool failed = false;  // to be recorded
};

GraphEvent& AsGraphEvent(device::Event& event) {
  LOCKSTEP_CHECK(typeid(event) == typeid(GraphEvent), "an event of another device");
  return static_cast<GraphEvent&>(event);
}

class HostLane final : public device::Stream {
 public:
  HostLane(device::Stream& real, int lane, Keeping& keeping)
      : real_(real), lane_(lane), keeping_(keeping) {}

  bool inline_execution() const override { return !keeping_.on && real_.inline_execution(); }
  void Enqueue(Work work) override {
    keeping_.on ? keeping_.graph->Add(lane_, std::move(work)) : real_.Enqueue(std::move(work));
  }
  void Record(device::Event& event) override {
    GraphEvent& graph_event = AsGraphEvent(event);
    if (!keeping_.on) return real_.Record(*graph_event.real);
    graph_event.captured = true;
    graph_event.nodes = keeping_.graph->Mark(lane_);
  }
  void WaitFor(device::Event& event) override {
    GraphEvent& graph_event = AsGraphEvent(event);
    if (!keeping_.on) return real_.WaitFor(*graph_event.real);
    if (!graph_event.captured) return keeping_.Refuse("a wait for what it does not hold");
    keeping_.graph->After(lane_, graph_event.nodes);
  }
  Status Synchronize(Deadline deadline) override {
    if (!keeping_.on) return real_.Synchronize(deadline);
    keeping_.Refuse("a synchronization");
    return keeping_.first;
  }
  Status status() const override { return keeping_.on ? keeping_.first : real_.status(); }

 private:
  device::Stream& real_;
  const int lane_;
  Keeping& keeping_;
};

class NativeLane final : public device::Stream, public device::NativeStream {
 public:
  NativeLane(device::Stream& real, bool inline_execution, Keeping& keeping)
      : real_(real),
        native_(dynamic_cast<device::NativeStream&>(real)),
        inline_(inline_execution),
        keeping_(keeping) {}

  bool inline_execution() const override { return inline_; }
  void Enqueue(Work work) override {
    keeping_.on ? keeping_.Refuse("work of the host") : real_.Enqueue(std::move(work));
  }
  void Record(device::Event& event) override {
    GraphEvent& graph_event = AsGraphEvent(event);
    auto point = native_.Mark();
    graph_event.failed = !point.ok();
    if (graph_event.failed) return Fail(point.status());
    graph_event.captured = keeping_.on;
    graph_event.point = std::move(point).value();
  }
  void WaitFor(device::Event& event) override {
    const GraphEvent& graph_event = AsGraphEvent(event);
    if (graph_event.failed) return;  // its stream says why
    LOCKSTEP_CHECK(graph_event.point != nullptr, "an event is recorded before it is waited for");
    if (keeping_.on && !graph_event.captured) {
      return keeping_.Refuse("a wait for what it does not hold");
    }
    Fail(native_.After(*graph_event.point));
  }
  Status Synchronize(Deadline deadline) override {
    if (!keeping_.on) return real_.Synchronize(deadline);
    keeping_.Refuse("a synchronization");
    return keeping_.first;
  }
  // The stream itself is not asked for anything while it is captured.
  Status status() const override { return keeping_.on ? keeping_.first : real_.status(); }
  Status LaunchOn(const Launch& launch) override {
    if (!keeping_.on) return native_.LaunchOn(launch);
    LOCKSTEP_RETURN_IF_ERROR(keeping_.first);
    keeping_.Fail(native_.LaunchOn(launch));
    return keeping_.first;
  }
  Result<std::unique_ptr<device::StreamGraph>> Capture(const Launch&) override {
    return Unsupported("a stream of GraphStreams is captured with the other one");
  }
  Result<std::unique_ptr<device::StreamPoint>> Mark() override { return native_.Mark(); }
  Status After(const device::StreamPoint& point) override { return native_.After(point); }
  Status WriteWord(std::uint64_t* word, std::uint64_t value) override {
    if (!keeping_.on) return native_.WriteWord(word, value);
    return Unsupported("a word that a graph writes would be the same in every replay");
  }
  Status IncrementWord(std::uint64_t* word) override { return native_.IncrementWord(word); }

 private:
  void Fail(const Status& status) {
    if (status.ok()) return;
    if (keeping_.on) return keeping_.Fail(status);
    real_.Enqueue([status] { return status; });
  }

  device::Stream& real_;
  device::NativeStream& native_;
  const bool inline_;
  Keeping& keeping_;
};

class GraphDevice final : public device::Device {
 public:
  GraphDevice(device::Device& real, bool native, const Keeping& keeping)
      : real_(real), native_(native), keeping_(keeping) {}
  std::string_view name() const override { return real_.name(); }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t bytes) override {
    if (keeping_.on) return Unsupported("a graph cannot hold an allocation of memory");
    return real_.Allocate(bytes);
  }
  std::unique_ptr<device::Event> NewEvent() override {
    return std::make_unique<GraphEvent>(native_ ? nullptr : real_.NewEvent());
  }
  std::unique_ptr<device::Stream> NewStream() override { return real_.NewStream(); }
  std::unique_ptr<device::Stream> NewInlineStream() override { return real_.NewInlineStream(); }

 private:
  device::Device& real_;
  const bool native_;
  const Keeping& keeping_;
};

class HostStreams final : public GraphStreams {
 public:
  HostStreams(device::Device& device, device::Stream& compute, device::Stream& communication)
      : device_(device, /*native=*/false, keeping_),
        compute_(compute, 0, keeping_),
        communication_(communication, 1, keeping_) {}
  device::Device& device() override { return device_; }
  device::Stream& compute() override { return compute_; }
  device::Stream& communication() override { return communication_; }
  bool native() const override { return false; }

  Result<std::unique_ptr<device::StreamGraph>> Capture(
      const std::function<Status()>& program) override {
    keeping_ = {true, OkStatus(), std::make_unique<WorkGraph>()};
    const int second = keeping_.graph->AddLane();
    keeping_.Fail(program());
    keeping_.on = false;
    LOCKSTEP_RETURN_IF_ERROR(keeping_.first);
    keeping_.graph->After(0, keeping_.graph->Mark(second));
    return std::move(keeping_.graph);
  }

 private:
  Keeping keeping_;
  GraphDevice device_;
  HostLane compute_;
  HostLane communication_;
};

class NativeStreams final : public GraphStreams {
 public:
  NativeStreams(device::Device& device, device::Stream& compute, device::Stream& communication)
      : real_compute_(dynamic_cast<device::NativeStream&>(compute)),
        real_communication_(dynamic_cast<device::NativeStream&>(communication)),
        device_(device, /*native=*/true, keeping_),
        compute_(compute, /*inline_execution=*/false, keeping_),
        communication_(communication, /*inline_execution=*/true, keeping_) {}
  device::Device& device() override { return device_; }
  device::Stream& compute() override { return compute_; }
  device::Stream& communication() override { return communication_; }
  bool native() const override { return true; }

  Result<std::unique_ptr<device::StreamGraph>> Capture(
      const std::function<Status()>& program) override {
    return real_compute_.Capture([&](void*) {
      keeping_ = {true, OkStatus(), nullptr};
      keeping_.Fail(Order(real_communication_, real_compute_));
      if (keeping_.first.ok()) keeping_.Fail(program());
      // Also of a program that failed: the capture has to end on both.
      keeping_.Fail(Order(real_compute_, real_communication_));
      keeping_.on = false;
      return keeping_.first;
    });
  }

 private:
  static Status Order(device::NativeStream& later, device::NativeStream& earlier) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto point, earlier.Mark());
    return later.After(*point);
  }

  device::NativeStream& real_compute_;
  device::NativeStream& real_communication_;
  Keeping keeping_;
  GraphDevice device_;
  NativeLane compute_;
  NativeLane communication_;
};

}  // namespace

std::unique_ptr<GraphStreams> GraphStreams::Make(device::Device& device, device::Stream& compute,
                                                 device::Stream& communication) {
  if (dynamic_cast<device::NativeStream*>(&compute) == nullptr) {
    return std::make_unique<HostStreams>(device, compute, communication);
  }
  return std::make_unique<NativeStreams>(device, compute, communication);
}

}  // namespace lockstep::comm
