// A training step of DDP, kept as a graph, over streams like CUDA's. The tests look at what it
// holds and in which order. Every gradient of every replay must be right, whichever order the graph
// leaves open.
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/graph_streams.h"
#include "core/comm/testing/native_fifo.h"
#include "core/ddp/testing/engine_ranks.h"
#include "core/device/forwarding_stream.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {
namespace {

Deadline Soon() { return Deadline::AfterSeconds(60); }

void LaunchOn(device::Stream& stream, const std::function<void(device::Stream& queue)>& launch) {
  auto* const native = dynamic_cast<device::NativeStream*>(&stream);
  if (native == nullptr) return launch(stream);  // where a model writes its own memory
  static_cast<void>(native->LaunchOn([&](void* handle) {
    launch(*static_cast<device::Stream*>(handle));
    return OkStatus();
  }));
}

// Arithmetic that is launched by the stream's handle, as a device's is.
class LaunchedKernels final : public device::host::HostKernels {
 public:
  void Copy(device::Stream& stream, void* to, const void* from, std::int64_t bytes) override {
    LaunchOn(stream, [&](device::Stream& queue) {
      device::host::HostKernels::Copy(queue, to, from, bytes);
    });
  }
  void Scale(device::Stream& stream, collective::DataType type, void* to, const void* from,
             std::int64_t count, double factor) override {
    LaunchOn(stream, [&](device::Stream& queue) {
      device::host::HostKernels::Scale(queue, type, to, from, count, factor);
    });
  }
  void Divide(device::Stream& stream, collective::DataType type, void* to, const void* from,
              std::int64_t count, double divisor) override {
    LaunchOn(stream, [&](device::Stream& queue) {
      device::host::HostKernels::Divide(queue, type, to, from, count, divisor);
    });
  }
  void Convert(device::Stream& stream, collective::DataType to_type, void* to,
               collective::DataType from_type, const void* from, std::int64_t count) override {
    LaunchOn(stream, [&](device::Stream& queue) {
      device::host::HostKernels::Convert(queue, to_type, to, from_type, from, count);
    });
  }
  void WriteTile(device::Stream& stream, collective::DataType type, void* to, std::int64_t count,
                 const device::TileSource& source, bool add) override {
    LaunchOn(stream, [&](device::Stream& queue) {
      device::host::HostKernels::WriteTile(queue, type, to, count, source, add);
    });
  }
  void Increment(device::Stream& stream, std::int64_t* number) override {
    LaunchOn(stream,
             [&](device::Stream& queue) { device::host::HostKernels::Increment(queue, number); });
  }
  void Read(device::Stream& stream, const void* from, std::int64_t bytes) override {
    LaunchOn(stream,
             [&](device::Stream& queue) { device::host::HostKernels::Read(queue, from, bytes); });
  }
};

// Rank 0 of two whose other rank has the same gradients: a sum is the double.
class TwinCommunicator final : public comm::Communicator {
 public:
  explicit TwinCommunicator(device::Kernels& kernels) : kernels_(kernels) {}
  const comm::Capabilities& capabilities() const override {
    static const comm::Capabilities capabilities = {
        .backend = "twin",
        .moves_data = true,
        .can_abort = false,
        .supports = [](const collective::Operation&) { return OkStatus(); },
    };
    return capabilities;
  }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status Enqueue(const collective::Operation& operation, const collective::Buffers& buffers,
                 device::Stream& stream) override {
    calls.push_back(std::string(collective::NameOf(operation.collective)) + " " +
                    std::to_string(operation.count));
    auto* const recv = static_cast<std::byte*>(buffers.recv);
    if (operation.collective == collective::Collective::kAllReduce) {
      kernels_.Scale(stream, operation.type, recv, buffers.send, operation.count, 2);
    } else if (operation.collective == collective::Collective::kAllGather) {
      const std::int64_t bytes = operation.count * collective::SizeOf(operation.type);
      kernels_.Copy(stream, recv + bytes, buffers.send, bytes);
    }
    return stream.status();
  }
  Status Await(device::Stream& stream, Deadline deadline) override {
    return stream.Synchronize(deadline);
  }
  Status Abort() override { return OkStatus(); }
  Result<std::unique_ptr<comm::Communicator>> Split(int, int, Deadline) override {
    return Unsupported("none");
  }

  std::vector<std::string> calls;

 private:
  device::Kernels& kernels_;
};

// Streams between which an event is lost: the how manieth wait does nothing.
class LossyStream final : public device::ForwardingNativeStream {
 public:
  LossyStream(device::Stream& real, int& waits, const int& lost)
      : ForwardingNativeStream(real, dynamic_cast<device::NativeStream&>(real)),
        waits_(waits),
        lost_(lost) {}
  void WaitFor(device::Event& event) override {
    if (waits_++ != lost_) inner().WaitFor(event);
  }

 private:
  int& waits_;
  const int& lost_;
};

class GraphStepTest : public testing::Test {
 protected:
  void Make(const EngineOptions& options) {
    model_ = std::move(ManifestModel::Make(MlpTensors(), {.rank = 0}, device_, kernels_).value());
    const EnginePorts ports = {communicator_, streams_->device(), kernels_, lossy_compute_,
                               lossy_communication_};
    engine_ = std::move(Engine::Make(*model_, options, ports).value());
    const Status constructed = engine_->Construct();
    ASSERT_TRUE(constructed.ok()) << constructed.message();
    for (int i = 0; i < 3; ++i) {
      engine_->ZeroGrad();
      ASSERT_TRUE(engine_->Forward({.input = i}).ok());
      ASSERT_TRUE(engine_->Backward().ok());
      ASSERT_TRUE(engine_->Synchronize().ok());
    }
    ASSERT_TRUE(engine_->has_rebuilt_buckets());
    communicator_.calls.clear();
  }
  Result<std::unique_ptr<device::StreamGraph>> Capture(int micro_batches) {
    waits_ = 0;
    return streams_->Capture([&]() -> Status {
      engine_->ZeroGrad();
      model_->set_input_counter(&input_);
      for (int i = 1; i <= micro_batches; ++i) {
        engine_->set_require_backward_grad_sync(i == micro_batches);
        LOCKSTEP_RETURN_IF_ERROR(engine_->Forward({}));
        LOCKSTEP_RETURN_IF_ERROR(engine_->Backward());
      }
      model_->set_input_counter(nullptr);
      return OkStatus();
    });
  }
  // Wrong gradients of a replay, which has this many micro-batches.
  std::int64_t WrongAfterReplay(device::StreamGraph& graph, int micro_batches) {
    EXPECT_TRUE(compute_.LaunchOn([&](void* h) { return graph.LaunchOn(h); }).ok());
    EXPECT_TRUE(compute_.Synchronize(Soon()).ok());
    // Both ranks have the gradients of rank 0: their mean is that of one rank.
    return CheckMeanGradients(*model_, 1, input_ - micro_batches + 1, micro_batches, 0).wrong;
  }

  device::host::HostDevice device_;
  LaunchedKernels kernels_;
  comm::NativeFifo compute_, communication_;
  TwinCommunicator communicator_{kernels_};
  std::unique_ptr<comm::GraphStreams> streams_ =
      comm::GraphStreams::Make(device_, compute_, communication_);
  int waits_ = 0;
  int lost_ = -1;
  LossyStream lossy_compute_{streams_->compute(), waits_, lost_};
  LossyStream lossy_communication_{streams_->communication(), waits_, lost_};
  std::unique_ptr<ManifestModel> model_;
  std::unique_ptr<Engine> engine_;
  std::int64_t input_ = 0;
};

TEST_F(GraphStepTest, HoldsTheStepsCollectivesInDdpsOrderAndIsRightInEveryReplay) {
  Make(SmallBuckets());
  auto graph = Capture(1);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::vector<std::string> expected = {"broadcast 600", "broadcast 1"};
  for (const Bucket& bucket : engine_->layout()) {
    expected.push_back("all_reduce " + std::to_string(bucket.elements));
  }
  EXPECT_EQ(engine_->layout().size(), 2u);
  EXPECT_EQ(communicator_.calls, expected);
  EXPECT_EQ(input_, 0);
  for (int replay = 1; replay <= 4; ++replay) {
    EXPECT_EQ(WrongAfterReplay(**graph, 1), 0);
    EXPECT_EQ(input_, replay);
  }
  EXPECT_EQ(communicator_.calls, expected);  // by the capture, and by no replay
  EXPECT_FALSE(compute_.disturbed);
  EXPECT_FALSE(communication_.disturbed);
}

TEST_F(GraphStepTest, MicroBatchesAndHooksAreKeptToo) {
  EngineOptions options = SmallBuckets();
  options.hook = CommHook::kBf16;
  Make(options);
  auto graph = Capture(3);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  // Sums of three integers up to 16, halved and doubled: exact in bf16.
  for (int replay = 1; replay <= 2; ++replay) EXPECT_EQ(WrongAfterReplay(**graph, 3), 0);
  EXPECT_EQ(input_, 6);
}

// Each event between a bucket and what computes is needed: without it some replay has wrong
// gradients, in the order that is the worst for it.
TEST_F(GraphStepTest, ABucketThatNobodyWaitsForIsFound) {
  Make(SmallBuckets());
  ASSERT_TRUE(Capture(1).ok());
  const int waits = waits_;
  const int buckets = static_cast<int>(engine_->layout().size());
  ASSERT_GE(waits, 2 * buckets);
  for (lost_ = waits - 2 * buckets; lost_ < waits; ++lost_) {  // those of the buckets come last
    auto graph = Capture(1);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const std::int64_t wrong = WrongAfterReplay(**graph, 1) + WrongAfterReplay(**graph, 1);
    EXPECT_GT(wrong, 0) << "wait " << lost_ << " of " << waits;
  }
}

}  // namespace
}  // namespace lockstep::ddp
