#include "core/ddp/small_models.h"

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

namespace lockstep {
namespace {

// Memory that says whose it is, up to a limit.
class LimitedDevice final : public Device {
 public:
  explicit LimitedDevice(std::size_t most) : most_(most) {}
  std::string_view name() const override { return "limited"; }
  Result<std::unique_ptr<Buffer>> Allocate(std::int64_t bytes) override {
    if (given.size() == most_) return EnvironmentError("out of memory");
    LOCKSTEP_ASSIGN_OR_RETURN(auto buffer, host_.Allocate(bytes));
    given.push_back(buffer->data());
    return buffer;
  }
  std::unique_ptr<Event> NewEvent() override { return host_.NewEvent(); }
  std::unique_ptr<Stream> NewStream() override { return host_.NewStream(); }
  std::unique_ptr<Stream> NewInlineStream() override { return host_.NewInlineStream(); }
  std::vector<void*> given;

 private:
  std::size_t most_;
  HostDevice host_;
};

TEST(SmallModels, GradientsAreWhereKernelsReachThem) {
  HostKernels kernels;
  for (const std::string_view name : SmallModelNames()) {
    LimitedDevice device(100);
    const auto model = MakeSmallModel(name, {}, kernels, &device);
    ASSERT_TRUE(model.ok()) << model.status().message();
    std::vector<void*> gradients;
    for (const Parameter& param : (*model)->params()) gradients.push_back(param.grad);
    EXPECT_EQ(gradients, device.given) << name;
  }
}

TEST(SmallModels, MemoryMayNotSuffice) {
  HostKernels kernels;
  LimitedDevice device(1);
  const auto model = MakeSmallModel("linear_1_1", {}, kernels, &device);
  EXPECT_THAT(std::string(model.status().message()), testing::HasSubstr("out of memory"));
}

}  // namespace
}  // namespace lockstep
