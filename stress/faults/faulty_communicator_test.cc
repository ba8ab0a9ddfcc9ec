// Faults of calls and of the library on streams whose handle the library takes, as on a GPU.
#include "stress/faults/faulty_communicator.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/comm/null/null_communicator.h"
#include "core/comm/testing/native_fifo.h"
#include "core/device/host/host_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::stress::faults {
namespace {

// Adds one to what it is given, on the stream's handle; takes no stream without one.
class Adding final : public comm::Communicator {
 public:
  const comm::Capabilities& capabilities() const override { return comm::null::NullCapabilities(); }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status Enqueue(const collective::Operation& operation, const collective::Buffers& buffers,
                 device::Stream& stream) override {
    auto* const native = dynamic_cast<device::NativeStream*>(&stream);
    if (native == nullptr) return InvalidInput("no stream of a device");
    calls.push_back({operation, buffers});
    return native->LaunchOn([&](void* handle) {
      static_cast<device::Stream*>(handle)->Enqueue([buffers] {
        *static_cast<int*>(buffers.recv) = *static_cast<const int*>(buffers.send) + 1;
        return OkStatus();
      });
      return OkStatus();
    });
  }
  Status Await(device::Stream& stream, Deadline deadline) override {
    return stream.Synchronize(deadline);
  }
  Status Abort() override { return OkStatus(); }
  Result<std::unique_ptr<comm::Communicator>> Split(int, int, Deadline) override {
    return Unsupported("none");
  }
  std::vector<std::pair<collective::Operation, collective::Buffers>> calls;
};

class Body final : public RankBody {
 public:
  void Journal(std::size_t) override { ++fired; }
  Status ApplyOutside(std::size_t) override { return OkStatus(); }
  double SecondsSinceStart() override { return 0; }
  void Exit(int) override {}
  Status Sleep(std::int64_t ns) override {
    slept_ns += ns;
    return OkStatus();
  }
  RankMarks& marks() override { return marks_; }
  std::int64_t slept_ns = 0;
  int fired = 0;

 private:
  RankMarks marks_;
};

// Memory that says whose it is.
class CountingDevice final : public device::Device {
 public:
  std::string_view name() const override { return "counting"; }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t bytes) override {
    LOCKSTEP_ASSIGN_OR_RETURN(auto buffer, host_.Allocate(bytes));
    given.push_back(buffer->data());
    return buffer;
  }
  std::unique_ptr<device::Event> NewEvent() override { return host_.NewEvent(); }
  std::unique_ptr<device::Stream> NewStream() override { return host_.NewStream(); }
  std::unique_ptr<device::Stream> NewInlineStream() override { return host_.NewInlineStream(); }
  std::vector<const void*> given;

 private:
  device::host::HostDevice host_;
};

// What becomes of the second of three calls, which gets the fault.
struct Trial {
  explicit Trial(FaultKind kind, std::int64_t count = 1,
                 collective::Collective called = collective::Collective::kAllReduce) {
    const std::vector<PlannedFault> faults = {
        {kind, 0, {FaultMoment::Kind::kCollective, 2, 0}, 0.25}};
    FaultGate gate(faults, 0, body);
    auto inner = std::make_unique<Adding>();
    Adding& adding = *inner;
    FaultyLibrary library(std::move(inner), gate);
    FaultyCalls world(library, gate, device);
    collective::Operation operation;
    operation.collective = called;
    operation.type = collective::DataType::kI32;
    operation.count = count;
    if (collective::IsMessage(called)) operation.root = 1;
    for (int i = 0; i < 3 && status.ok(); ++i) {
      send[i] = 10 * i;
      status = world.Enqueue(operation, {&send[i], &recv[i]}, stream);
      if (status.ok()) status = stream.Synchronize(Deadline::AfterSeconds(20));
    }
    calls = adding.calls;
  }
  Body body;
  CountingDevice device;
  comm::NativeFifo stream;
  Status status;
  int send[3] = {};
  int recv[3] = {-1, -1, -1};
  std::vector<std::pair<collective::Operation, collective::Buffers>> calls;
};

TEST(FaultyLibrary, CorruptsAResultOfADevice) {
  const Trial trial(FaultKind::kCorruptResult);
  EXPECT_TRUE(trial.status.ok()) << trial.status.message();
  EXPECT_THAT(trial.recv, testing::ElementsAre(1, 11 ^ 1, 21));
  EXPECT_EQ(trial.body.fired, 1);
}

TEST(FaultyLibrary, SlowsADeviceDown) {
  const Trial trial(FaultKind::kSlowCollective);
  EXPECT_TRUE(trial.status.ok()) << trial.status.message();
  EXPECT_THAT(trial.recv, testing::ElementsAre(1, 11, 21));
  EXPECT_EQ(trial.body.slept_ns, 250'000'000);
}

TEST(FaultyLibrary, FailsWhatIsThenNotLaunched) {
  const Trial trial(FaultKind::kFailedCollective);
  EXPECT_THAT(std::string(trial.status.message()), testing::HasSubstr("injected failure"));
  EXPECT_THAT(trial.recv, testing::ElementsAre(1, -1, -1));
}

TEST(FaultyLibrary, DropsACompletion) {
  const Trial trial(FaultKind::kDroppedCompletion);
  EXPECT_EQ(trial.recv[1], 11);  // it is there, and nobody hears of it for a day
  EXPECT_EQ(trial.body.slept_ns, std::int64_t{24} * 3600 * 1'000'000'000);
}

TEST(FaultyCalls, WorkOnMemoryOfTheDevice) {
  const Trial extra(FaultKind::kExtraCollective);
  ASSERT_EQ(extra.calls.size(), 4u);
  EXPECT_THAT(extra.device.given, testing::ElementsAre(extra.calls[1].second.send));
  const Trial more(FaultKind::kWrongCount);
  ASSERT_EQ(more.calls.size(), 3u);
  EXPECT_EQ(more.calls[1].first.count, 2);
  EXPECT_THAT(more.device.given, testing::ElementsAre(more.calls[1].second.recv));
}

TEST(FaultyCalls, SendNothingToThemselves) {
  const Trial trial(FaultKind::kWrongRoot, 1, collective::Collective::kSend);
  ASSERT_EQ(trial.calls.size(), 3u);
  for (const auto& [operation, buffers] : trial.calls) EXPECT_EQ(operation.root, 1);
  EXPECT_EQ(trial.body.fired, 0);
}

TEST(FaultyCalls, SilentWithoutAFault) {
  const Trial trial(FaultKind::kNeverFinalize);
  EXPECT_TRUE(trial.status.ok()) << trial.status.message();
  EXPECT_THAT(trial.recv, testing::ElementsAre(1, 11, 21));
  EXPECT_EQ(trial.body.fired, 0);
  EXPECT_TRUE(trial.device.given.empty());
}

}  // namespace
}  // namespace lockstep::stress::faults
