// Where the models' gradients and exchanged statistics lie, which libraries on a GPU depend on.
// Their values are compared with PyTorch's elsewhere, by the golden traces.
#include "core/ddp/small_models.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {
namespace {

// Memory that says whose it is, up to a limit.
class LimitedDevice final : public device::Device {
 public:
  explicit LimitedDevice(std::size_t most) : most_(most) {}
  std::string_view name() const override { return "limited"; }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t bytes) override {
    if (given.size() == most_) return EnvironmentError("out of memory");
    LOCKSTEP_ASSIGN_OR_RETURN(auto buffer, host_.Allocate(bytes));
    given.push_back(buffer->data());
    return buffer;
  }
  std::unique_ptr<device::Event> NewEvent() override { return host_.NewEvent(); }
  std::unique_ptr<device::Stream> NewStream() override { return host_.NewStream(); }
  std::unique_ptr<device::Stream> NewInlineStream() override { return host_.NewInlineStream(); }
  std::vector<void*> given;

 private:
  std::size_t most_;
  device::host::HostDevice host_;
};

TEST(SmallModels, GradientsAreWhereKernelsReachThem) {
  device::host::HostKernels kernels;
  for (const std::string_view name : SmallModelNames()) {
    LimitedDevice device(100);
    const auto model = MakeSmallModel(name, {}, kernels, &device);
    ASSERT_TRUE(model.ok()) << model.status().message();
    std::vector<void*> gradients;
    for (const Parameter& param : (*model)->params()) gradients.push_back(param.grad);
    EXPECT_EQ(gradients, device.given) << name;
  }
}

// Two ranks with the same inputs.
class Twins final : public ModuleCollectives {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status AllGatherStatistics(int, const float* send, float* recv, std::int64_t count) override {
    seen.push_back(send);
    std::copy(send, send + count, recv);
    std::copy(send, send + count, recv + count);
    return OkStatus();
  }
  Status SumStatistics(int, float* values, std::int64_t count) override {
    seen.push_back(values);
    for (std::int64_t i = 0; i < count; ++i) values[i] *= 2;
    return OkStatus();
  }
  std::vector<const void*> seen;
};

// The gradients after one pass with SyncBatchNorm.
std::vector<float> TrainOnce(device::Device* device, Twins& twins) {
  device::host::HostKernels kernels;
  device::host::HostDevice host;
  const auto stream = host.NewInlineStream();
  const auto model = MakeSmallModel("bn_4_4_2", {.sync_batch_norm = true}, kernels, device);
  const ModuleContext context = {*stream, &twins};
  EXPECT_TRUE((*model)->Forward({}, context).ok());
  EXPECT_TRUE((*model)->Backward([](int) { return OkStatus(); }, context).ok());
  std::vector<float> gradients;
  for (const Parameter& param : (*model)->params()) {
    const auto* const grad = static_cast<const float*>(param.grad);
    gradients.insert(gradients.end(), grad, grad + param.info.numel);
  }
  return gradients;
}

TEST(SmallModels, WhatIsExchangedIsWhereALibraryReachesIt) {
  LimitedDevice device(100);
  Twins there;
  Twins here;
  EXPECT_EQ(TrainOnce(&device, there), TrainOnce(nullptr, here));
  ASSERT_EQ(there.seen.size(), 2u);
  for (const void* const memory : there.seen) {
    EXPECT_EQ(std::count(device.given.begin(), device.given.end(), memory), 1);
  }
}

TEST(SmallModels, MemoryMayNotSuffice) {
  device::host::HostKernels kernels;
  LimitedDevice device(1);
  const auto model = MakeSmallModel("linear_1_1", {}, kernels, &device);
  EXPECT_THAT(std::string(model.status().message()), testing::HasSubstr("out of memory"));
}

}  // namespace
}  // namespace lockstep::ddp
