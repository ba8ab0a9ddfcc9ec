// Abort frees ranks that wait, from a thread beside the one that waits.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "core/comm/gloo/gloo_communicator.h"
#include "core/comm/local_meeting.h"
#include "core/device/host/host_device.h"
#include "gtest/gtest.h"

namespace lockstep::comm::gloo {
namespace {

constexpr int kRanks = 3;
constexpr double kSeconds = 600;  // gloo's own limit: who waits for it does not end in time

struct World {
  LocalMeeting meeting;
  std::vector<std::unique_ptr<Communicator>> ranks;
};

// Every rank of a new world, connected.
std::unique_ptr<World> Connect() {
  auto world = std::make_unique<World>();
  world->ranks.resize(kRanks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&world = *world, rank] {
      auto made =
          ConnectGloo(rank, kRanks, world.meeting, "world", {}, Deadline::AfterSeconds(kSeconds));
      ASSERT_TRUE(made.ok()) << made.status().message();
      world.ranks[static_cast<std::size_t>(rank)] = std::move(made).value();
    });
  }
  threads.clear();
  return world;
}

// The ranks that call wait for the last one, which never does, until those of `aborting` abort.
void ExpectFreed(collective::Collective collective, std::int64_t count,
                 const std::vector<int>& aborting) {
  const std::unique_ptr<World> world = Connect();
  std::atomic<int> entered = 0;
  std::vector<Status> ended(kRanks - 1);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks - 1; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> data(static_cast<std::size_t>(count) + 1);
      device::host::HostDevice device;
      const std::unique_ptr<device::Stream> stream = device.NewInlineStream();
      collective::Operation operation;
      operation.collective = collective;
      operation.count = count;
      ++entered;
      ended[static_cast<std::size_t>(rank)] = world->ranks[static_cast<std::size_t>(rank)]->Enqueue(
          operation, {data.data(), data.data()}, *stream);
    });
  }
  while (entered < kRanks - 1) std::this_thread::yield();
  // They are probably inside by then; whoever is not fails as well.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const int rank : aborting) {
    threads.emplace_back(
        [&, rank] { EXPECT_TRUE(world->ranks[static_cast<std::size_t>(rank)]->Abort().ok()); });
  }
  threads.clear();  // joins
  for (const Status& status : ended) {
    EXPECT_EQ(status.code(), StatusCode::kSystemFailed) << status.message();
  }
}

TEST(GlooAbort, EveryWaitingRankIsFreedWhenAllOfThemAbort) {
  for (int i = 0; i < 10; ++i) {
    ExpectFreed(collective::Collective::kAllReduce, 1 << 16, {0, 1});
    ExpectFreed(collective::Collective::kBarrier, 0, {0, 1});
    ExpectFreed(collective::Collective::kAllReduce, 2, {1, 0});
  }
}

// A rank that writes to a peer which has just aborted would die of it.
TEST(GlooAbort, AClosedConnectionRaisesNoSignal) {
  signal(SIGPIPE, SIG_DFL);
  Connect();
  struct sigaction now = {};
  sigaction(SIGPIPE, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

// They hear of it because the connection closes.
TEST(GlooAbort, PeersThatWaitForTheRankAreFreedToo) {
  const std::unique_ptr<World> world = Connect();
  device::host::HostDevice device;
  const std::unique_ptr<device::Stream> stream = device.NewInlineStream();
  std::jthread aborts([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(world->ranks[0]->Abort().ok());
  });
  float data[2] = {};
  collective::Operation operation;
  operation.collective = collective::Collective::kRecv;
  operation.root = 0;
  operation.count = 2;
  EXPECT_EQ(world->ranks[1]->Enqueue(operation, {data, data}, *stream).code(),
            StatusCode::kSystemFailed);
}

TEST(GlooAbort, AnIdleCommunicatorFailsAtTheNextCall) {
  const std::unique_ptr<World> world = Connect();
  EXPECT_TRUE(world->ranks[0]->Abort().ok());
  EXPECT_TRUE(world->ranks[0]->Abort().ok());
  device::host::HostDevice device;
  const std::unique_ptr<device::Stream> stream = device.NewInlineStream();
  float data[2] = {};
  collective::Operation operation;
  operation.count = 2;
  EXPECT_EQ(world->ranks[0]->Enqueue(operation, {data, data}, *stream).code(),
            StatusCode::kSystemFailed);
}

}  // namespace
}  // namespace lockstep::comm::gloo
