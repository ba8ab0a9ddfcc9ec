// A step of two streams, kept as a graph: what runs in a replay, and that an order that nobody
// asked for is not there. Over streams of the host, and over ones with handles as CUDA's.
#include "core/comm/graph_streams.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/testing/native_fifo.h"
#include "core/comm/work_graph.h"
#include "core/device/host/host_device.h"
#include "gtest/gtest.h"

namespace lockstep::comm {
namespace {

Deadline Soon() { return Deadline::AfterSeconds(20); }

class GraphStreamsTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      compute_ = std::make_unique<NativeFifo>();
      communication_ = std::make_unique<NativeFifo>();
    } else {
      compute_ = device_.NewInlineStream();
      communication_ = device_.NewStream();
    }
    streams_ = GraphStreams::Make(device_, *compute_, *communication_);
    ASSERT_EQ(streams_->native(), GetParam());
  }
  static void Put(device::Stream& stream, const std::function<void()>& work) {
    const device::Stream::Work piece = [work] { return work(), OkStatus(); };
    auto* const native = dynamic_cast<device::NativeStream*>(&stream);
    if (native == nullptr) return stream.Enqueue(piece);
    static_cast<void>(native->LaunchOn([&](void* handle) {
      static_cast<device::Stream*>(handle)->Enqueue(piece);
      return OkStatus();
    }));
  }
  // Later work of `later` comes after what `earlier` has so far.
  void Order(device::Stream& later, device::Stream& earlier) {
    events_.push_back(streams_->device().NewEvent());
    earlier.Record(*events_.back());
    later.WaitFor(*events_.back());
  }
  // A step number, its tenfold on the other stream, and one more: 11, 21, 31 …
  Status Step(bool waits_before = true, bool waits_after = true) {
    Put(streams_->compute(), [this] { gradient_ = ++step_; });
    if (waits_before) Order(streams_->communication(), streams_->compute());
    Put(streams_->communication(), [this] { sum_ = 10 * gradient_; });
    if (waits_after) Order(streams_->compute(), streams_->communication());
    Put(streams_->compute(), [this] { result_ = sum_ + 1; });
    return OkStatus();
  }
  // The results of so many replays.
  std::vector<int> Replay(device::StreamGraph& graph, int times) {
    std::vector<int> results;
    for (int i = 0; i < times; ++i) {
      auto* const native = dynamic_cast<device::NativeStream*>(compute_.get());
      const auto launch = [&](void* handle) { return graph.LaunchOn(handle); };
      EXPECT_TRUE((native == nullptr ? launch(compute_.get()) : native->LaunchOn(launch)).ok());
      EXPECT_TRUE(compute_->Synchronize(Soon()).ok());
      results.push_back(result_);
    }
    return results;
  }

  device::host::HostDevice device_;
  std::unique_ptr<device::Stream> compute_, communication_;
  std::unique_ptr<GraphStreams> streams_;
  std::vector<std::unique_ptr<device::Event>> events_;
  int step_ = 0, gradient_ = 0, sum_ = 0, result_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, GraphStreamsTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Native" : "Host"; });

TEST_P(GraphStreamsTest, PassesOnWhatIsNotCaptured) {
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(Step().ok());
    ASSERT_TRUE(streams_->compute().Synchronize(Soon()).ok());
    EXPECT_EQ(result_, 10 * step + 1);
  }
  events_.push_back(streams_->device().NewEvent());
  streams_->communication().Record(*events_.back());
  EXPECT_TRUE(events_.back()->Await(Soon()).ok());
  EXPECT_TRUE(events_.back()->Reached());
}

TEST_P(GraphStreamsTest, AStepIsKeptAndReplayedInItsOrder) {
  auto graph = streams_->Capture([this] { return Step(); });
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ASSERT_TRUE(streams_->compute().Synchronize(Soon()).ok());
  EXPECT_EQ(step_, 0);
  EXPECT_EQ(Replay(**graph, 4), (std::vector<int>{11, 21, 31, 41}));
  // Called, and captured again, as before.
  ASSERT_TRUE(Step().ok());
  ASSERT_TRUE(streams_->compute().Synchronize(Soon()).ok());
  EXPECT_EQ(result_, 51);
  auto again = streams_->Capture([this] { return Step(); });
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(Replay(**again, 2), (std::vector<int>{61, 71}));
}

TEST_P(GraphStreamsTest, AnEventThatIsMissingShows) {
  auto before = streams_->Capture([this] { return Step(/*waits_before=*/false); });
  ASSERT_TRUE(before.ok()) << before.status().message();
  EXPECT_NE(Replay(**before, 2), (std::vector<int>{11, 21}));
  step_ = gradient_ = sum_ = result_ = 0;
  auto after = streams_->Capture([this] { return Step(true, /*waits_after=*/false); });
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_NE(Replay(**after, 2), (std::vector<int>{11, 21}));
}

TEST_P(GraphStreamsTest, WhatCannotBeKeptIsRefusedInOneLine) {
  const auto refused = [&](const std::function<void()>& what) {
    const auto graph = streams_->Capture([&] { return what(), Step(); });
    return graph.ok() ? "" : graph.status().message();
  };
  EXPECT_EQ(refused([&] { static_cast<void>(streams_->compute().Synchronize(Soon())); }),
            "a graph cannot hold a synchronization");
  EXPECT_EQ(refused([&] {
              const auto memory = streams_->device().Allocate(8);
              EXPECT_EQ(memory.status().message(), "a graph cannot hold an allocation of memory");
            }),
            "");
  const auto early = streams_->device().NewEvent();
  streams_->compute().Record(*early);
  EXPECT_EQ(refused([&] { streams_->communication().WaitFor(*early); }),
            "a graph cannot hold a wait for what it does not hold");
  if (GetParam()) {
    EXPECT_EQ(refused([&] { streams_->compute().Enqueue([] { return OkStatus(); }); }),
              "a graph cannot hold work of the host");
    EXPECT_FALSE(dynamic_cast<NativeFifo&>(*compute_).disturbed);
  }
  const auto failed = streams_->Capture([] { return SystemFailed("no such call"); });
  EXPECT_EQ(failed.status().message(), "no such call");
  step_ = 0;
  ASSERT_TRUE(Step().ok());
  ASSERT_TRUE(streams_->compute().Synchronize(Soon()).ok());
  EXPECT_EQ(result_, 11);
}

TEST(WorkGraph, SaysWhichWorkNobodyWaitsFor) {
  WorkGraph graph;
  const int lane = graph.AddLane();
  graph.Add(0, [] { return OkStatus(); });
  EXPECT_TRUE(graph.Joined().ok());
  graph.After(lane, graph.Mark(0));
  graph.Add(lane, [] { return OkStatus(); });
  EXPECT_FALSE(graph.Joined().ok());
  graph.After(0, graph.Mark(lane));
  EXPECT_TRUE(graph.Joined().ok());
}

TEST(WorkGraph, LanesGoFirstInTurnAndAnErrorEndsALaunch) {
  WorkGraph graph;
  const int lane = graph.AddLane();
  std::string ran;
  bool fails = false;
  for (const int to : {0, lane, 0, lane}) {
    graph.Add(to, [&, to] {
      ran += to == 0 ? 'a' : 'b';
      return fails ? SystemFailed("the cable is out") : OkStatus();
    });
  }
  const auto stream = device::host::HostDevice().NewInlineStream();
  ASSERT_TRUE(graph.LaunchOn(stream.get()).ok());
  ASSERT_TRUE(graph.LaunchOn(stream.get()).ok());
  EXPECT_EQ(ran, "aabbbbaa");
  fails = true;
  EXPECT_EQ(graph.LaunchOn(stream.get()).message(), "the cable is out");
  EXPECT_EQ(ran, "aabbbbaaa");
}

}  // namespace
}  // namespace lockstep::comm
