// The fault against a device that counts what it gives.
#include "stress/faults/device_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/device/host/host_device.h"
#include "core/device/native_stream.h"

namespace lockstep::stress::faults {
namespace {

// So many bytes, and no more. What it allocates otherwise is displaced when they are needed.
class SmallDevice final : public device::Device, public device::NativeDevice {
 public:
  explicit SmallDevice(std::int64_t bytes) : free(bytes) {}
  std::string_view name() const override { return "small"; }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t) override {
    return EnvironmentError("takes nothing for good");
  }
  Status EnterThread() override { return OkStatus(); }
  Result<device::WordWriter> ShareMemory(std::span<std::byte>) override {
    return Unsupported("not shared");
  }
  Result<std::unique_ptr<device::Buffer>> AllocateOnDevice(std::int64_t bytes) override {
    if (bytes > free) return EnvironmentError("not there");
    free -= bytes;
    return std::unique_ptr<device::Buffer>(std::make_unique<Piece>(bytes, *this));
  }
  std::unique_ptr<device::Event> NewEvent() override { return nullptr; }
  std::unique_ptr<device::Stream> NewStream() override { return nullptr; }
  std::unique_ptr<device::Stream> NewInlineStream() override { return nullptr; }

  std::int64_t free;

 private:
  class Piece final : public device::Buffer {
   public:
    Piece(std::int64_t bytes, SmallDevice& device) : bytes_(bytes), device_(device) {}
    ~Piece() override { device_.free += bytes_; }
    void* data() override { return nullptr; }
    std::int64_t bytes() const override { return bytes_; }

   private:
    std::int64_t bytes_;
    SmallDevice& device_;
  };
};

TEST(FillDevice, TakesWhatIsThereAndGivesItBack) {
  constexpr std::int64_t kBytes = (std::int64_t{80} << 30) + 12'345'678;
  SmallDevice device(kBytes);
  {
    const auto taken = FillDevice(device);
    ASSERT_TRUE(taken.ok());
    EXPECT_LT(device.free, 64 << 10);
    EXPECT_LT(taken->size(), 40u);
  }
  EXPECT_EQ(device.free, kBytes);
}

TEST(FillDevice, LeavesTheHostAlone) {
  device::host::HostDevice host;
  EXPECT_EQ(FillDevice(host).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace lockstep::stress::faults
