// Every call that can fail, in every way: the right status, and nothing that keeps the
// process. The library is the stand-in, which fails as LOCKSTEP_FAKE_NCCL says.
#include <barrier>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/local_meeting.h"
#include "core/comm/nccl/nccl_communicator.h"
#include "core/device/host/host_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::comm::nccl {
namespace {

using testing::HasSubstr;
using testing::Not;

// The limit of what does not end before it, and of what ends by itself, on a busy machine, too.
constexpr double kShortSeconds = 0.4;
// The same where calls before it, each on a thread of its own, have to return within that.
constexpr double kLaterSeconds = 3;
constexpr double kLongSeconds = 60;

NcclOptions LongOptions() {
  NcclOptions options;
  options.library = "core/comm/nccl/testing/libfake_nccl_22809.so";
  options.operation_seconds = kLongSeconds;
  options.abort_seconds = kLongSeconds;
  options.finalize_seconds = kLongSeconds;
  return options;
}

// Short when one of the calls lasts until its limit with these faults.
double LimitOf(const std::string& faults, std::initializer_list<std::string> calls) {
  for (const std::string& call : calls) {
    const bool is_later = call == "init" || call == "ncclCommInitRankConfig" ||
                          call == "ncclCommFinalize" || call == "ncclCommDestroy";
    for (const char* const lasting : {":hang", ":freeze", ":progress", ":stuck"}) {
      if (faults.find(call + lasting) == std::string::npos) continue;
      return is_later ? kLaterSeconds : kShortSeconds;
    }
  }
  return kLongSeconds;
}

// A communicator of one rank unless told otherwise.
struct World {
  explicit World(const std::string& faults) {
    setenv("LOCKSTEP_FAKE_NCCL", faults.c_str(), 1);
    connect_seconds = LimitOf(faults, {"ncclGetUniqueId", "ncclCommInitRankConfig", "init"});
    options.operation_seconds = LimitOf(faults, {"ncclAllReduce", "ncclCommGetAsyncError"});
    options.abort_seconds = LimitOf(faults, {"ncclCommAbort"});
    options.finalize_seconds =
        LimitOf(faults, {"ncclCommFinalize", "ncclCommDestroy", "ncclAllReduce"});
  }
  ~World() { unsetenv("LOCKSTEP_FAKE_NCCL"); }
  Status Connect(int rank = 0, int size = 1) {
    auto connected = ConnectNccl(rank, size, meeting, "world", device, options,
                                 Deadline::AfterSeconds(connect_seconds));
    if (!connected.ok()) return connected.status();
    communicator = std::move(connected).value();
    return OkStatus();
  }
  Status AllReduce(device::Stream& stream) {
    collective::Operation operation;
    operation.count = 1;
    return communicator->Enqueue(operation, {&send, &recv}, stream);
  }

  double connect_seconds = kLongSeconds;
  NcclOptions options = LongOptions();
  device::host::HostDevice device;
  LocalMeeting meeting;
  std::unique_ptr<device::Stream> inline_stream = device.NewInlineStream();
  std::unique_ptr<NcclCommunicator> communicator;
  float send = 3;
  float recv = -1;
};

struct Failure {
  std::string faults;
  StatusCode code;
  std::string message;  // part of it
};
void PrintTo(const Failure& failure, std::ostream* out) { *out << failure.faults; }

// Runs `phase` and compares its status.
template <typename Phase>
void ExpectFailure(const Failure& failure, const Phase& phase) {
  SCOPED_TRACE(failure.faults);
  const Status status = phase();
  EXPECT_EQ(status.code(), failure.code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(failure.message));
  EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
}

constexpr StatusCode kFailed = StatusCode::kSystemFailed;
constexpr StatusCode kLate = StatusCode::kDeadlineExceeded;

class ConnectFailure : public testing::TestWithParam<Failure> {};
TEST_P(ConnectFailure, IsTold) {
  World world(GetParam().faults);
  ExpectFailure(GetParam(), [&] { return world.Connect(); });
}
INSTANTIATE_TEST_SUITE_P(
    Nccl, ConnectFailure,
    testing::Values(
        Failure{"ncclGetUniqueId:error=2", kFailed, "ncclGetUniqueId: unhandled system error (2)"},
        Failure{"ncclGetUniqueId:hang", kLate, "ncclGetUniqueId did not return"},
        Failure{"ncclCommInitRankConfig:error=1", kFailed,
                "ncclCommInitRankConfig: unhandled cuda error (1); fake: ncclCommInitRankConfig"},
        Failure{"ncclCommInitRankConfig:hang", kLate, "ncclCommInitRankConfig did not return"},
        Failure{"init:progress", kLate, "was still in progress at the deadline"},
        Failure{"init:progress;ncclCommAbort:freeze", kFailed, "ncclCommAbort did not return"},
        Failure{"init:progress;ncclCommAbort:error=3", kFailed, "ncclCommAbort: internal error"},
        Failure{"ncclCommGetAsyncError:error=3", kFailed, "ncclCommGetAsyncError: internal error"},
        Failure{"ncclCommGetAsyncError:hang", kFailed, "ncclCommGetAsyncError did not return"}));

TEST(ConnectFailure, ARankThatNeverComesEndsTheOthersAtTheirDeadline) {
  World world("");
  world.connect_seconds = kLaterSeconds;
  ExpectFailure({"", kLate, "a rank did not come"}, [&] { return world.Connect(0, 2); });
}

// As a program does that hears of another rank's end meanwhile: it must not wait for the deadline.
TEST(ConnectFailure, WhatNobodyWantsAnyMoreIsGivenUp) {
  World world("");
  const Deadline soon = Deadline::AfterSeconds(0.1);
  world.options.given_up = [soon] { return soon.Passed(); };
  const auto connected = ConnectNccl(0, 2, world.meeting, "world", world.device, world.options,
                                     Deadline::AfterSeconds(600));
  ASSERT_FALSE(connected.ok());
  EXPECT_EQ(connected.status().code(), kFailed);
  EXPECT_EQ(connected.status().message(), "nccl: the communicator was aborted");
}

class OperationFailure : public testing::TestWithParam<Failure> {};
TEST_P(OperationFailure, IsTheInlineStreamsError) {
  World world(GetParam().faults);
  ASSERT_TRUE(world.Connect().ok());
  ExpectFailure(GetParam(), [&] { return world.AllReduce(*world.inline_stream); });
  EXPECT_EQ(world.inline_stream->status().code(), GetParam().code);
  EXPECT_EQ(world.recv, -1);
  // Errors are fatal for a communicator, whatever stream is tried next.
  if (GetParam().code == kLate) return;
  const auto other = world.device.NewInlineStream();
  EXPECT_FALSE(world.AllReduce(*other).ok());
}
TEST_P(OperationFailure, IsTheErrorOfAStreamBeside) {
  World world(GetParam().faults);
  ASSERT_TRUE(world.Connect().ok());
  const auto stream = world.device.NewStream();
  ASSERT_TRUE(world.AllReduce(*stream).ok());
  ExpectFailure(GetParam(), [&] {
    return world.communicator->Await(*stream, Deadline::AfterSeconds(kLongSeconds));
  });
}
INSTANTIATE_TEST_SUITE_P(
    Nccl, OperationFailure,
    testing::Values(
        Failure{"ncclAllReduce:error=2", kFailed, "ncclAllReduce: unhandled system error (2)"},
        Failure{"ncclAllReduce:hang", kFailed, "ncclAllReduce did not return within 0.4 s"},
        Failure{"ncclAllReduce:progress", kLate, "ncclAllReduce was still in progress"},
        Failure{"ncclAllReduce:async=6", kFailed, "asynchronous error: remote process exited"},
        Failure{"ncclAllReduce:stuck", kLate, "an operation was not complete within 0.4 s"}));

TEST(Operation, ThatIsSlowToBeginIsWaitedFor) {
  World world("ncclAllReduce:slow=50");
  ASSERT_TRUE(world.Connect().ok());
  EXPECT_TRUE(world.AllReduce(*world.inline_stream).ok());
  EXPECT_EQ(world.recv, 3);
}

TEST(Operation, AwaitEndsAtItsDeadlineAndAbortEndsTheStream) {
  World world("ncclAllReduce:stuck");
  world.options.operation_seconds = world.options.finalize_seconds = kLongSeconds;
  ASSERT_TRUE(world.Connect().ok());
  const auto stream = world.device.NewStream();
  ASSERT_TRUE(world.AllReduce(*stream).ok());
  EXPECT_EQ(world.communicator->Await(*stream, Deadline::AfterSeconds(0.1)).code(), kLate);
  EXPECT_TRUE(world.communicator->Abort().ok());
  ExpectFailure({"", kFailed, "the communicator was aborted"},
                [&] { return stream->Synchronize(Deadline::AfterSeconds(kLongSeconds)); });
}

TEST(Operation, APeersAbortIsARemoteError) {
  LocalMeeting meeting;
  device::host::HostDevice device;
  NcclOptions options = LongOptions();
  std::barrier connected(2);
  const auto run = [&](int rank) {
    auto world = ConnectNccl(rank, 2, meeting, "world", device, options,
                             Deadline::AfterSeconds(kLongSeconds));
    connected.arrive_and_wait();
    ASSERT_TRUE(world.ok()) << world.status().message();
    if (rank == 0) return static_cast<void>((*world)->Abort());
    const auto stream = device.NewInlineStream();
    ExpectFailure({"", kFailed, "remote process exited or there was a network error (6)"}, [&] {
      collective::Operation barrier;
      barrier.collective = collective::Collective::kBarrier;
      return (*world)->Enqueue(barrier, {}, *stream);
    });
  };
  std::thread peer([&] { run(1); });
  run(0);
  peer.join();
}

// A call that not even an abort brings back: the process says so and ends.
TEST(LastResort, EndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        World world("ncclAllReduce:freeze");
        world.options.abort_seconds = kShortSeconds;
        if (world.Connect().ok()) static_cast<void>(world.AllReduce(*world.inline_stream));
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::kFailed)),
      "ncclAllReduce did not return within 0.4 s, nor 0.4 s after ncclCommAbort");
}

class CloseFailure : public testing::TestWithParam<Failure> {};
TEST_P(CloseFailure, IsTold) {
  World world(GetParam().faults);
  ASSERT_TRUE(world.Connect().ok());
  ExpectFailure(GetParam(), [&] { return world.communicator->Close(); });
}
INSTANTIATE_TEST_SUITE_P(
    Nccl, CloseFailure,
    testing::Values(
        Failure{"", StatusCode::kOk, ""},
        Failure{"ncclCommFinalize:error=3", kFailed, "ncclCommFinalize: internal error (3)"},
        Failure{"ncclCommFinalize:hang", kLate, "ncclCommFinalize did not return"},
        Failure{"ncclCommFinalize:freeze", kLate, "ncclCommFinalize did not return"},
        Failure{"ncclCommFinalize:progress", kLate, "ncclCommFinalize was still in progress"},
        Failure{"ncclCommFinalize:error=3;ncclCommAbort:freeze", kFailed,
                "ncclCommAbort did not return"},
        Failure{"ncclCommDestroy:error=2", kFailed, "ncclCommDestroy: unhandled system error"},
        Failure{"ncclCommDestroy:freeze", kLate, "ncclCommDestroy did not return"}));

class AbortFailure : public testing::TestWithParam<Failure> {};
TEST_P(AbortFailure, IsTold) {
  World world(GetParam().faults);
  ASSERT_TRUE(world.Connect().ok());
  ExpectFailure(GetParam(), [&] { return world.communicator->Abort(); });
  EXPECT_FALSE(world.AllReduce(*world.inline_stream).ok());
  EXPECT_TRUE(world.communicator->Close().ok());  // there is nothing left to close
}
INSTANTIATE_TEST_SUITE_P(
    Nccl, AbortFailure,
    testing::Values(Failure{"", StatusCode::kOk, ""},
                    Failure{"ncclCommAbort:error=3", kFailed, "ncclCommAbort: internal error (3)"},
                    Failure{"ncclCommAbort:freeze", kFailed, "can only be killed"}));

class SplitFailure : public testing::TestWithParam<Failure> {};
TEST_P(SplitFailure, IsTold) {
  World world(GetParam().faults);
  ASSERT_TRUE(world.Connect().ok());
  ExpectFailure(GetParam(), [&] {
    const Deadline limit = Deadline::AfterSeconds(LimitOf(GetParam().faults, {"ncclCommSplit"}));
    return world.communicator->Split(0, 0, limit).status();
  });
}
INSTANTIATE_TEST_SUITE_P(
    Nccl, SplitFailure,
    testing::Values(Failure{"", StatusCode::kOk, ""},
                    Failure{"ncclCommSplit:error=5", kFailed, "ncclCommSplit: invalid usage (5)"},
                    Failure{"ncclCommSplit:freeze", kLate, "ncclCommSplit did not return"},
                    Failure{"ncclCommSplit:progress", kLate,
                            "ncclCommSplit was still in progress"}));

TEST(Shrink, LeavesOutARankAndEndsWhatIsInFlight) {
  LocalMeeting meeting;
  device::host::HostDevice device;
  NcclOptions options = LongOptions();
  std::barrier connected(3);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      auto world = ConnectNccl(rank, 3, meeting, "world", device, options,
                               Deadline::AfterSeconds(kLongSeconds));
      connected.arrive_and_wait();
      ASSERT_TRUE(world.ok()) << world.status().message();
      if (rank == 1) return static_cast<void>((*world)->Abort());
      const std::vector<int> excluded = {1};
      auto rest = (*world)->Shrink(excluded, /*abort=*/true, Deadline::AfterSeconds(kLongSeconds));
      ASSERT_TRUE(rest.ok()) << rest.status().message();
      EXPECT_EQ((*rest)->size(), 2);
      EXPECT_EQ((*rest)->rank(), rank == 0 ? 0 : 1);
      const auto stream = device.NewInlineStream();
      float value = static_cast<float>(rank);
      collective::Operation sum;
      sum.count = 1;
      const Status status = (*rest)->Enqueue(sum, {&value, &value}, *stream);
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(value, 2);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(Revoke, StopsWhatIsInFlight) {
  World world("ncclAllReduce:stuck");
  world.options.operation_seconds = world.options.finalize_seconds = kLongSeconds;
  ASSERT_TRUE(world.Connect().ok());
  const auto stream = world.device.NewStream();
  ASSERT_TRUE(world.AllReduce(*stream).ok());
  ASSERT_EQ(stream->Synchronize(Deadline::AfterSeconds(0.1)).code(), kLate);
  EXPECT_TRUE(world.communicator->Revoke(Deadline::AfterSeconds(kLongSeconds)).ok());
  ExpectFailure({"", kFailed, "was revoked: what was in flight did not complete"},
                [&] { return stream->Synchronize(Deadline::AfterSeconds(kLongSeconds)); });
  EXPECT_EQ(world.recv, -1);
  EXPECT_TRUE(world.communicator->Close().ok());
}

TEST(OldVersions, SayWhichVersionIsNeeded) {
  World world("");
  world.options.library = "core/comm/nccl/testing/libfake_nccl_22203.so";
  ASSERT_TRUE(world.Connect().ok());
  EXPECT_THAT(world.communicator->Revoke(Deadline::AfterSeconds(1)).message(),
              HasSubstr("ncclCommRevoke came with NCCL 2.28.7"));
  EXPECT_EQ(world.communicator->Shrink({}, false, Deadline::AfterSeconds(1)).status().code(),
            StatusCode::kUnsupported);
  World older("");
  older.options.library = "core/comm/nccl/testing/libfake_nccl_21801.so";
  older.options.register_buffers = true;
  EXPECT_EQ(older.Connect().code(), StatusCode::kUnsupported);
}

TEST(Group, RunsWhenItEnds) {
  World world("");
  ASSERT_TRUE(world.Connect().ok());
  ASSERT_TRUE(world.communicator->StartGroup().ok());
  ASSERT_TRUE(world.AllReduce(*world.inline_stream).ok());
  EXPECT_EQ(world.recv, -1);
  ASSERT_TRUE(world.communicator->EndGroup().ok());
  EXPECT_EQ(world.recv, 3);
  EXPECT_FALSE(world.communicator->EndGroup().ok());
}

TEST(RegisteredBuffers, AreRegisteredOnce) {
  World world("ncclCommRegister:error=3:nth=3");  // send and receive: twice, then never again
  world.options.register_buffers = true;
  ASSERT_TRUE(world.Connect().ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.AllReduce(*world.inline_stream).ok());
  float elsewhere = 0;
  collective::Operation sum;
  sum.count = 1;
  EXPECT_THAT(
      world.communicator->Enqueue(sum, {&elsewhere, &world.recv}, *world.inline_stream).message(),
      HasSubstr("ncclCommRegister: internal error (3)"));
}

TEST(CorruptData, IsTheLibrarysToCommit) {
  World world("ncclAllReduce:corrupt:nth=2");
  ASSERT_TRUE(world.Connect().ok());
  ASSERT_TRUE(world.AllReduce(*world.inline_stream).ok());
  EXPECT_EQ(world.recv, 3);
  ASSERT_TRUE(world.AllReduce(*world.inline_stream).ok());
  EXPECT_NE(world.recv, 3);
}

}  // namespace
}  // namespace lockstep::comm::nccl
