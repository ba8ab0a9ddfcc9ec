// What every communicator must do, as a test suite that each backend instantiates:
//   INSTANTIATE_TEST_SUITE_P(Gloo, CommContract, testing::Values(WorldUnderTest{…}));
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/communicator.h"
#include "core/comm/testing/contract_data.h"
#include "core/device/device.h"
#include "core/device/host/host_device.h"
#include "gtest/gtest.h"

namespace lockstep::comm {

using RankBody = std::function<void(Communicator& world)>;

struct WorldUnderTest {
  std::string name;
  // Runs the body for every rank that lives in this process, with its communicator of all ranks.
  std::function<void(const RankBody& body)> run;
  bool fifo_streams = true;  // the communicator may be used on streams beside the caller
  bool may_break = true;     // a test may leave the communicator unusable
  // Of the rank whose communicator it is; not set: the host's device, and sleep of its thread.
  std::function<device::Device&(Communicator& world)> device = {};
  std::function<void(Communicator& world, double seconds)> sleep = {};
};

// Runs the body in one thread a rank; `connect` is called by each of them.
inline void RunRanksAsThreads(
    int size, const std::function<Result<std::unique_ptr<Communicator>>(int rank)>& connect,
    const RankBody& body) {
  // Communicators go when all ranks are done, as workers leave together.
  std::vector<std::unique_ptr<Communicator>> worlds(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto communicator = connect(rank);
      ASSERT_TRUE(communicator.ok()) << communicator.status().message();
      auto& world = worlds[static_cast<std::size_t>(rank)];
      world = std::move(communicator).value();
      body(*world);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class CommContract : public testing::TestWithParam<WorldUnderTest> {
 protected:
  static Deadline Soon() { return Deadline::AfterSeconds(40); }
  static void Run(const RankBody& body) { GetParam().run(body); }

  static device::Device& DeviceOf(Communicator& world) {
    static device::host::HostDevice host;
    return GetParam().device ? GetParam().device(world) : host;
  }
  static void Sleep(Communicator& world, double seconds) {
    if (GetParam().sleep) return GetParam().sleep(world, seconds);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  // The streams that the contract holds on.
  static std::vector<std::unique_ptr<device::Stream>> Streams(Communicator& world) {
    device::Device& device = DeviceOf(world);
    std::vector<std::unique_ptr<device::Stream>> streams;
    streams.push_back(device.NewInlineStream());
    if (GetParam().fifo_streams) streams.push_back(device.NewStream());
    return streams;
  }

  static void ExpectRight(const Communicator& world, const ContractCall& call) {
    if (world.capabilities().moves_data) {
      EXPECT_EQ(call.Wrong(), "");
    }
  }

  // Every operation that the backend supports, one after the other.
  static void CheckAll(Communicator& world, device::Stream& stream, std::int64_t count,
                       collective::Blocking blocking) {
    for (const collective::Operation& operation :
         ContractOperations(world.size(), count, blocking)) {
      if (!world.Supports(operation).ok()) continue;
      for (const Placement placement : {Placement::kOutOfPlace, Placement::kInPlace}) {
        const bool no_such_call = placement == Placement::kInPlace &&
                                  blocking == collective::Blocking::kNonblocking &&
                                  operation.collective == collective::Collective::kReduceScatter;
        if (no_such_call) continue;
        ContractCall call(operation, world.size(), world.rank(), placement, 17);
        const Status enqueued = world.Enqueue(operation, call.buffers(), stream);
        ASSERT_TRUE(enqueued.ok()) << collective::Describe(operation) << ": " << enqueued.message();
        const Status awaited = world.Await(stream, Soon());
        ASSERT_TRUE(awaited.ok()) << collective::Describe(operation) << ": " << awaited.message();
        ExpectRight(world, call);
      }
    }
  }
};

TEST_P(CommContract, RanksAreNumbered) {
  std::atomic<int> sum{0};
  std::atomic<int> here{0};
  Run([&](Communicator& world) {
    EXPECT_GE(world.size(), 2);
    EXPECT_GE(world.rank(), 0);
    EXPECT_LT(world.rank(), world.size());
    EXPECT_FALSE(world.capabilities().backend.empty());
    sum += world.rank();
    ++here;
  });
  if (here > 1) {
    EXPECT_EQ(sum, here * (here - 1) / 2);
  }
}

TEST_P(CommContract, BlockingResultsAreThoseOfTheReference) {
  Run([](Communicator& world) {
    const auto streams = Streams(world);
    for (const std::int64_t count : {0, 1, 7, 1000}) {
      CheckAll(world, *streams.front(), count, collective::Blocking::kBlocking);
    }
    for (const auto& stream : streams) CheckAll(world, *stream, 2, collective::Blocking::kBlocking);
  });
}

TEST_P(CommContract, NonblockingResultsAreThoseOfTheReference) {
  Run([](Communicator& world) {
    const auto streams = Streams(world);
    for (const std::int64_t count : {0, 1, 7, 1000}) {
      CheckAll(world, *streams.front(), count, collective::Blocking::kNonblocking);
    }
    for (const auto& stream : streams)
      CheckAll(world, *stream, 2, collective::Blocking::kNonblocking);
  });
}

TEST_P(CommContract, LargeCounts) {
  Run([](Communicator& world) {
    for (const auto& stream : Streams(world)) {
      for (const collective::Collective collective :
           {collective::Collective::kAllReduce, collective::Collective::kBroadcast,
            collective::Collective::kAllGather}) {
        collective::Operation operation;
        operation.collective = collective;
        operation.count = (1 << 20) + 3;
        ContractCall call(operation, world.size(), world.rank(), Placement::kOutOfPlace, 5);
        ASSERT_TRUE(world.Enqueue(operation, call.buffers(), *stream).ok());
        ASSERT_TRUE(world.Await(*stream, Soon()).ok());
        ExpectRight(world, call);
      }
    }
  });
}

TEST_P(CommContract, ManyPostedOperationsCompleteInOneAwait) {
  Run([](Communicator& world) {
    collective::Operation operation;
    operation.blocking = collective::Blocking::kNonblocking;
    if (!world.Supports(operation).ok()) return;
    for (const auto& stream : Streams(world)) {
      std::vector<std::unique_ptr<ContractCall>> calls;
      for (int i = 0; i < 50; ++i) {
        operation.count = 1 + 97 * i;
        operation.collective =
            i % 3 == 0 ? collective::Collective::kBroadcast : collective::Collective::kAllReduce;
        operation.root = i % world.size();
        calls.push_back(std::make_unique<ContractCall>(operation, world.size(), world.rank(),
                                                       Placement::kOutOfPlace, i));
        ASSERT_TRUE(world.Enqueue(operation, calls.back()->buffers(), *stream).ok());
      }
      ASSERT_TRUE(world.Await(*stream, Soon()).ok());
      for (const auto& call : calls) ExpectRight(world, *call);
    }
  });
}

TEST_P(CommContract, WorkAndOperationsAlternateInStreamOrder) {
  Run([](Communicator& world) {
    constexpr int kSteps = 200;
    for (const auto& stream : Streams(world)) {
      std::int64_t value = 0;  // the stream's until Await
      collective::Operation operation;
      operation.type = collective::DataType::kI64;
      operation.count = 1;
      for (int step = 0; step < kSteps; ++step) {
        stream->Enqueue([&value, step, rank = world.rank()] {
          value = value % 1000 + step * (rank + 1);
          return OkStatus();
        });
        ASSERT_TRUE(world.Enqueue(operation, {&value, &value}, *stream).ok());
      }
      ASSERT_TRUE(world.Await(*stream, Soon()).ok());
      std::int64_t expected = 0;
      for (int step = 0; step < kSteps; ++step) {
        std::int64_t sum = 0;
        for (int r = 0; r < world.size(); ++r) sum += expected % 1000 + step * (r + 1);
        expected = sum;
      }
      if (world.capabilities().moves_data) {
        EXPECT_EQ(value, expected);
      }
    }
  });
}

TEST_P(CommContract, SendsArriveInOrder) {
  Run([](Communicator& world) {
    for (const auto& stream : Streams(world)) {
      for (int i = 0; i < 20; ++i) {
        if (world.rank() > 1) break;
        collective::Operation operation;
        operation.collective =
            world.rank() == 0 ? collective::Collective::kSend : collective::Collective::kRecv;
        operation.root = 1 - world.rank();
        operation.count = 100 + i;
        ContractCall call(operation, world.size(), world.rank(), Placement::kOutOfPlace, i);
        const Status enqueued = world.Enqueue(operation, call.buffers(), *stream);
        ASSERT_TRUE(enqueued.ok()) << enqueued.message();
        ASSERT_TRUE(world.Await(*stream, Soon()).ok());
        ExpectRight(world, call);
      }
    }
  });
}

TEST_P(CommContract, SplitOrdersByKeyThenRank) {
  Run([](Communicator& world) {
    const auto stream = DeviceOf(world).NewInlineStream();
    const int color = world.rank() % 2;
    auto half = world.Split(color, -world.rank(), Soon());
    ASSERT_TRUE(half.ok()) << half.status().message();
    ASSERT_NE(*half, nullptr);
    const int size = (world.size() + 1 - color) / 2;
    EXPECT_EQ((*half)->size(), size);
    EXPECT_EQ((*half)->rank(), size - 1 - world.rank() / 2);
    for (const collective::Collective collective :
         {collective::Collective::kAllReduce, collective::Collective::kBroadcast,
          collective::Collective::kBarrier, collective::Collective::kAllGather}) {
      collective::Operation operation;
      operation.collective = collective;
      operation.count = collective == collective::Collective::kBarrier ? 0 : 33;
      ContractCall call(operation, size, (*half)->rank(), Placement::kOutOfPlace, 3);
      const Status status = (*half)->Enqueue(operation, call.buffers(), *stream);
      ASSERT_TRUE(status.ok()) << status.message();
      ExpectRight(world, call);
    }
    CheckAll(world, *stream, 5, collective::Blocking::kBlocking);  // the parent is as it was
  });
}

TEST_P(CommContract, SplitLeavesOutNegativeColors) {
  Run([](Communicator& world) {
    const auto stream = DeviceOf(world).NewInlineStream();
    for (int round = 0; round < 3; ++round) {
      auto rest = world.Split(world.rank() == 0 ? -1 : 0, 0, Soon());
      ASSERT_TRUE(rest.ok()) << rest.status().message();
      ASSERT_EQ(*rest == nullptr, world.rank() == 0);
      if (world.rank() == 0) continue;
      EXPECT_EQ((*rest)->size(), world.size() - 1);
      EXPECT_EQ((*rest)->rank(), world.rank() - 1);
      auto alone = (*rest)->Split((*rest)->rank(), 0, Soon());
      ASSERT_TRUE(alone.ok()) << alone.status().message();
      EXPECT_EQ((*alone)->size(), 1);
      CheckAll(**alone, *stream, 4, collective::Blocking::kBlocking);
    }
  });
}

TEST_P(CommContract, WrongCallsAreRefusedAndHarmless) {
  Run([](Communicator& world) {
    for (const auto& stream : Streams(world)) {
      float value = 1;
      collective::Operation operation;
      operation.collective = collective::Collective::kBroadcast;
      operation.count = 1;
      operation.root = world.size();
      EXPECT_EQ(world.Enqueue(operation, {&value, &value}, *stream).code(),
                StatusCode::kInvalidInput);
      operation.root = 0;
      operation.collective = collective::Collective::kAllReduce;
      EXPECT_EQ(world.Enqueue(operation, {nullptr, &value}, *stream).code(),
                StatusCode::kInvalidInput);
      operation.count = -1;
      EXPECT_EQ(world.Enqueue(operation, {&value, &value}, *stream).code(),
                StatusCode::kInvalidInput);
      EXPECT_TRUE(stream->Synchronize(Soon()).ok());
      CheckAll(world, *stream, 3, collective::Blocking::kBlocking);
    }
  });
}

TEST_P(CommContract, UnsupportedOperationsAreRefusedInOneLine) {
  Run([](Communicator& world) {
    const auto stream = DeviceOf(world).NewInlineStream();
    for (const collective::Blocking blocking :
         {collective::Blocking::kBlocking, collective::Blocking::kNonblocking}) {
      for (const collective::Operation& operation : ContractOperations(world.size(), 2, blocking)) {
        const Status supported = world.Supports(operation);
        if (supported.ok()) continue;
        EXPECT_EQ(supported.code(), StatusCode::kUnsupported);
        EXPECT_EQ(supported.message().find('\n'), std::string::npos);
        ContractCall call(operation, world.size(), world.rank(), Placement::kOutOfPlace, 1);
        EXPECT_EQ(world.Enqueue(operation, call.buffers(), *stream).code(),
                  StatusCode::kUnsupported);
      }
    }
    EXPECT_TRUE(stream->status().ok());
  });
}

TEST_P(CommContract, ASickStreamRunsNoOperation) {
  Run([](Communicator& world) {
    for (const auto& stream : Streams(world)) {
      stream->Enqueue([] { return SystemFailed("the kernel failed"); });
      static_cast<void>(stream->Synchronize(Soon()));
      float send = 1;
      float recv = -1;
      collective::Operation operation;
      operation.count = 1;
      const Status status = world.Enqueue(operation, {&send, &recv}, *stream);
      if (stream->inline_execution()) {
        EXPECT_EQ(status.message(), "the kernel failed");
      }
      EXPECT_EQ(world.Await(*stream, Soon()).message(), "the kernel failed");
      EXPECT_EQ(recv, -1);
    }
    const auto healthy = DeviceOf(world).NewInlineStream();
    CheckAll(world, *healthy, 3, collective::Blocking::kBlocking);
  });
}

// Ranks wait for one that comes when all of them gave up, and aborts: they are free again at their
// deadlines, and then (in turn, when those that failed because of it abort) their streams are.
TEST_P(CommContract, AwaitEndsAtItsDeadlineAndAbortFreesTheStreams) {
  if (!GetParam().may_break) GTEST_SKIP() << "would break the one communicator of this process";
  std::atomic<int> gave_up = 0;
  Run([&gave_up](Communicator& world) {
    if (!world.capabilities().moves_data) return;  // nobody waits
    ASSERT_TRUE(world.capabilities().can_abort);
    const auto stream = DeviceOf(world).NewStream();
    collective::Operation operation;
    operation.collective = collective::Collective::kBarrier;
    if (world.rank() > 0) {
      ASSERT_TRUE(world.Enqueue(operation, {}, *stream).ok());
      const Deadline limit = Deadline::AfterSeconds(0.2);
      EXPECT_EQ(world.Await(*stream, limit).code(), StatusCode::kDeadlineExceeded);
      EXPECT_TRUE(limit.Passed());
      ++gave_up;
      EXPECT_EQ(stream->Synchronize(Soon()).code(), StatusCode::kSystemFailed);
    } else {
      const Deadline limit = Soon();
      while (gave_up + 1 < world.size() && !limit.Passed()) Sleep(world, 0.01);
    }
    EXPECT_TRUE(world.Abort().ok());
  });
}

}  // namespace lockstep::comm
