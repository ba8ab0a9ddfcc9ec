// What the device computes against what the host computes. Skipped where there is no GPU.
#include <cuda_runtime.h>

#include <bit>
#include <cstring>
#include <vector>

#include "core/base/random.h"
#include "core/collective/pattern.h"
#include "core/collective/pattern_memory.h"
#include "core/comm/graph_streams.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/cuda/cuda_pattern.h"
#include "core/device/cuda/device_count.h"
#include "core/device/cuda/launch.h"
#include "core/device/cuda/stream_memory.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#include "core/device/native_stream.h"
#include "core/device/tile.h"
#include "gtest/gtest.h"

namespace lockstep::device::cuda {
namespace {

constexpr collective::DataType kFloats[] = {collective::DataType::kF16, collective::DataType::kBf16,
                                            collective::DataType::kF32, collective::DataType::kF64};
constexpr std::int64_t kCount = 10'007;

class CudaKernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    const CudaDeviceCount devices = CountCudaDevices();
    if (devices.count == 0) GTEST_SKIP() << devices.reason;
    device_ = std::move(OpenCudaDevice(0).value());
    kernels_ = std::move(OpenCudaKernels().value());
    stream_ = device_->NewStream();
    host_stream_ = host_.NewInlineStream();
  }

  std::unique_ptr<Buffer> Make(std::int64_t bytes) {
    return std::move(device_->Allocate(bytes).value());
  }
  // Small whole numbers in the type, the same on both sides.
  void FillBoth(collective::DataType type, Buffer& ours, Buffer& hosts, std::uint64_t seed) {
    Random random(seed);
    std::vector<float> values(kCount);
    for (float& value : values) value = static_cast<float>(random.Below(512)) - 256;
    host_kernels_.Convert(*host_stream_, type, hosts.data(), collective::DataType::kF32,
                          values.data(), kCount);
    std::memcpy(ours.data(), hosts.data(),
                static_cast<std::size_t>(kCount * collective::SizeOf(type)));
  }
  void ExpectSame(Buffer& ours, Buffer& hosts, std::int64_t bytes) {
    ASSERT_TRUE(stream_->Synchronize(Deadline::AfterSeconds(20)).ok())
        << stream_->status().message();
    EXPECT_EQ(std::memcmp(ours.data(), hosts.data(), static_cast<std::size_t>(bytes)), 0);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Kernels> kernels_;
  std::unique_ptr<Stream> stream_;
  host::HostDevice host_;
  host::HostKernels host_kernels_;
  std::unique_ptr<Stream> host_stream_;
};

TEST_F(CudaKernelsTest, ArithmeticIsTheHosts) {
  for (const collective::DataType type : kFloats) {
    const std::int64_t bytes = kCount * collective::SizeOf(type);
    auto a = Make(bytes), b = Make(bytes);
    auto host_a = std::move(host_.Allocate(bytes).value());
    auto host_b = std::move(host_.Allocate(bytes).value());
    FillBoth(type, *a, *host_a, 1);
    FillBoth(type, *b, *host_b, 2);
    const auto both = [&](Kernels& kernels, Stream& stream, void* x, const void* y) {
      kernels.Add(stream, type, x, y, kCount);
      kernels.Scale(stream, type, x, x, kCount, 0.3);
      kernels.Divide(stream, type, x, x, kCount, 3);
    };
    both(*kernels_, *stream_, a->data(), b->data());
    both(host_kernels_, *host_stream_, host_a->data(), host_b->data());
    SCOPED_TRACE(collective::NameOf(type));
    ExpectSame(*a, *host_a, bytes);
  }
}

TEST_F(CudaKernelsTest, ConversionIsTheHosts) {
  for (const collective::DataType from : kFloats) {
    for (const collective::DataType to : kFloats) {
      auto a = Make(kCount * collective::SizeOf(from)), b = Make(kCount * collective::SizeOf(to));
      auto host_a = std::move(host_.Allocate(kCount * collective::SizeOf(from)).value());
      auto host_b = std::move(host_.Allocate(kCount * collective::SizeOf(to)).value());
      FillBoth(from, *a, *host_a, 3);
      kernels_->Convert(*stream_, to, b->data(), from, a->data(), kCount);
      host_kernels_.Convert(*host_stream_, to, host_b->data(), from, host_a->data(), kCount);
      SCOPED_TRACE(std::string(collective::NameOf(from)) + " to " +
                   std::string(collective::NameOf(to)));
      ExpectSame(*b, *host_b, kCount * collective::SizeOf(to));
    }
  }
}

TEST_F(CudaKernelsTest, ComputeTakesItsTime) {
  auto memory = Make(64 << 20);
  const std::int64_t began_ns = MonotonicNs();
  kernels_->Compute(*stream_, 50e6, memory->data(), memory->bytes());
  ASSERT_TRUE(stream_->Synchronize(Deadline::AfterSeconds(20)).ok());
  EXPECT_GT(MonotonicNs() - began_ns, 25'000'000) << "a load only adds";
}

TEST_F(CudaKernelsTest, PatternsAreTheHosts) {
  auto opened = OpenCudaPatternMemory();
  ASSERT_TRUE(opened.ok());
  for (const collective::DataType type : collective::AllDataTypes()) {
    for (const collective::Reduction reduction :
         {collective::Reduction::kSum, collective::Reduction::kProd, collective::Reduction::kMin,
          collective::Reduction::kMax}) {
      collective::Operation operation;
      operation.type = type;
      operation.reduction = reduction;
      operation.count = kCount;
      const collective::Pattern host(7, operation, 1);
      const collective::Pattern on_device(7, operation, 1, opened->get());
      auto data = Make(kCount * collective::SizeOf(type));
      on_device.FillSend(data->data(), 0, kCount, 0, 3);
      collective::CheckReport report;
      host.CheckRecv(data->data(), 0, kCount, 0, 3, report);
      on_device.CheckRecv(data->data(), 0, kCount, 0, 3, report);
      EXPECT_EQ(report.wrong, 0) << collective::Describe(operation);
      static_cast<unsigned char*>(data->data())[1000 * collective::SizeOf(type)] ^= 1;
      collective::CheckReport wrong;
      on_device.CheckRecv(data->data(), 0, kCount, 0, 3, wrong);
      ASSERT_EQ(wrong.wrong, 1) << collective::Describe(operation);
      EXPECT_EQ(wrong.first[0].element, 1000);
      on_device.Poison(data->data(), 0, kCount);
      on_device.CheckRecv(data->data(), 0, kCount, 0, 3, wrong);
      EXPECT_EQ(wrong.wrong, kCount + 1);
    }
  }
}

TEST_F(CudaKernelsTest, AGraphRunsWhenItIsLaunchedAndAsOftenAsThat) {
  auto sum = Make(4), one = Make(4);
  *static_cast<float*>(sum->data()) = 0;
  *static_cast<float*>(one->data()) = 1;
  auto& native = dynamic_cast<NativeStream&>(*stream_);
  const auto add = [&](void* handle) {
    const cudaError_t error =
        LaunchElementwise(static_cast<cudaStream_t>(handle), CudaArithmetic::kAdd,
                          collective::DataType::kF32, sum->data(), one->data(), 1, 0);
    return error == cudaSuccess ? OkStatus() : SystemFailed(cudaGetErrorString(error));
  };
  auto graph = native.Capture([&](void* handle) {
    LOCKSTEP_RETURN_IF_ERROR(add(handle));
    return add(handle);
  });
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto value = [&] {
    EXPECT_TRUE(stream_->Synchronize(Deadline::AfterSeconds(20)).ok());
    return *static_cast<float*>(sum->data());
  };
  EXPECT_EQ(value(), 0);
  for (int launches = 1; launches <= 3; ++launches) {
    const Status launched =
        native.LaunchOn([&](void* handle) { return (*graph)->LaunchOn(handle); });
    ASSERT_TRUE(launched.ok()) << launched.message();
    EXPECT_EQ(value(), 2.0f * static_cast<float>(launches));
  }
  // What goes wrong while it is captured is told, keeps nothing, and leaves the stream as it was.
  const auto refused = native.Capture([&](void* handle) {
    LOCKSTEP_RETURN_IF_ERROR(add(handle));
    return SystemFailed("no such call");
  });
  EXPECT_EQ(refused.status().message(), "no such call");
  EXPECT_EQ(value(), 6);
  ASSERT_TRUE(native.LaunchOn(add).ok());
  EXPECT_EQ(value(), 7);
}

// A training step's shape: two streams, a counter that the device keeps, and the last of the second
// stream's work in the graph although nobody else waits for it.
TEST_F(CudaKernelsTest, AGraphOfTwoStreamsKeepsTheirOrder) {
  constexpr std::int64_t kLarge = 1 << 24;
  const auto communication = device_->NewStream();
  auto streams = comm::GraphStreams::Make(*device_, *stream_, *communication);
  ASSERT_TRUE(streams->native());
  auto counter = Make(sizeof(std::int64_t)), gradient = Make(4 * kLarge), sum = Make(4 * kLarge);
  auto* const count = static_cast<std::int64_t*>(counter->data());
  *count = 0;
  const auto ready = streams->device().NewEvent(), done = streams->device().NewEvent();
  auto graph = streams->Capture([&] {
    const TileSource source{.rank = 1, .input_at = count, .param = 2};
    kernels_->Increment(streams->compute(), count);
    kernels_->WriteTile(streams->compute(), collective::DataType::kF32, gradient->data(), kLarge,
                        source, false);
    streams->compute().Record(*ready);
    streams->communication().WaitFor(*ready);
    kernels_->Scale(streams->communication(), collective::DataType::kF32, sum->data(),
                    gradient->data(), kLarge, 2);
    streams->communication().Record(*done);
    streams->compute().WaitFor(*done);
    kernels_->Scale(streams->compute(), collective::DataType::kF32, sum->data(), sum->data(),
                    kLarge, 0.5);
    return OkStatus();
  });
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto opened = OpenCudaPatternMemory();
  ASSERT_TRUE(opened.ok());
  auto& native = dynamic_cast<NativeStream&>(*stream_);
  for (std::int64_t replay = 1; replay <= 5; ++replay) {
    ASSERT_TRUE(native.LaunchOn([&](void* handle) { return (*graph)->LaunchOn(handle); }).ok());
    ASSERT_TRUE(stream_->Synchronize(Deadline::AfterSeconds(20)).ok());
    std::vector<double> tile;
    for (std::int64_t i = 0; i < kTile; ++i) tile.push_back(TileValue(TileKey(1, replay, 2), i));
    const auto compare = [&] {
      return (*opened)->CompareTile(collective::DataType::kF32, sum->data(), kLarge, tile, 0, 0);
    };
    EXPECT_EQ(compare().wrong, 0) << "replay " << replay;
    static_cast<float*>(sum->data())[4711] += 1;
    const collective::PatternDifference wrong = compare();
    EXPECT_EQ(wrong.wrong, 1);
    EXPECT_EQ(wrong.first, 4711);
  }
  const auto refused = streams->Capture([&] {
    streams->compute().Enqueue([] { return OkStatus(); });
    return OkStatus();
  });
  EXPECT_EQ(refused.status().message(), "a graph cannot hold work of the host");
  kernels_->Increment(streams->compute(), count);
  ASSERT_TRUE(stream_->Synchronize(Deadline::AfterSeconds(20)).ok());
  EXPECT_EQ(*count, 6);
}

// What an agent sees of a device whose process is wedged.
TEST_F(CudaKernelsTest, AStreamWritesStampsToMemoryOfTheHost) {
  std::uint64_t* words = nullptr;
  ASSERT_EQ(cudaHostAlloc(&words, 2 * sizeof(*words), cudaHostAllocMapped), cudaSuccess);
  words[0] = words[1] = 0;
  auto* const native = dynamic_cast<NativeStream*>(stream_.get());
  const Status status = native->LaunchOn([&](void* handle) {
    const auto stream = static_cast<cudaStream_t>(handle);
    LOCKSTEP_RETURN_IF_ERROR(StreamWrite64(stream, &words[0], 41));
    return StreamWrite64(stream, &words[1], 42);
  });
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(stream_->Synchronize(Deadline::AfterSeconds(20)).ok());
  EXPECT_EQ(words[0], 41u);
  EXPECT_EQ(words[1], 42u);
  auto counts = native->Capture([&](void*) {
    LOCKSTEP_RETURN_IF_ERROR(native->IncrementWord(&words[0]));
    return native->IncrementWord(&words[0]);
  });
  ASSERT_TRUE(counts.ok()) << counts.status().message();
  for (int launches = 1; launches <= 3; ++launches) {
    const auto launch = [&](void* handle) { return (*counts)->LaunchOn(handle); };
    ASSERT_TRUE(native->LaunchOn(launch).ok());
    ASSERT_TRUE(stream_->Synchronize(Deadline::AfterSeconds(20)).ok());
    EXPECT_EQ(words[0], 41u + 2u * static_cast<unsigned>(launches));
  }
  std::printf("stream memory: %s\n", std::string(StreamMemoryMethod()).c_str());
  cudaFreeHost(words);
}

}  // namespace
}  // namespace lockstep::device::cuda
