// A stand-in for NVML answers as FAKE_NVML says, down to a driver that does not start.
#include "core/environment/nvml.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/deadline.h"

namespace lockstep::environment {
namespace {

constexpr const char* kFake = "core/environment/libfake_nvml.so";

std::string FactOf(const Facts& facts, const std::string& path) {
  const std::string* value = Find(facts, path);
  return value != nullptr ? *value : "(absent)";
}

TEST(NvmlTest, TellsOfEveryGpuWhatTheLibraryKnows) {
  unsetenv("FAKE_NVML");
  const auto nvml = Nvml::Open(kFake);
  ASSERT_TRUE(nvml.ok()) << nvml.status().message();
  const Facts facts = (*nvml)->Describe();
  EXPECT_EQ(FactOf(facts, "gpu/count"), "2");
  EXPECT_EQ(FactOf(facts, "gpu/driver"), "535.104.05");
  EXPECT_EQ(FactOf(facts, "gpu/driver_cuda"), "12.2");
  EXPECT_EQ(FactOf(facts, "gpu/0/compute_capability"), "9.0");
  EXPECT_EQ(FactOf(facts, "gpu/1/compute_capability"), "7.0");
  EXPECT_EQ(FactOf(facts, "gpu/0/throttling"), "none");
  EXPECT_EQ(FactOf(facts, "gpu/1/throttling"), "thermal (hardware)");
  EXPECT_EQ(FactOf(facts, "gpu/1/uncorrected_ecc_errors"), "7");
  EXPECT_EQ(FactOf(facts, "gpu/1/pcie_lanes_missing"), "8");
  EXPECT_EQ(FactOf(facts, "gpu/pair/0-1"), "unknown way, peer access no");
}

TEST(NvmlTest, AGpuThatCantBeOpenedIsLostUnlessItIsForOthers) {
  setenv("FAKE_NVML", "lost", 1);
  auto nvml = Nvml::Open(kFake);
  ASSERT_TRUE(nvml.ok());
  Facts facts = (*nvml)->Describe();
  EXPECT_EQ(FactOf(facts, "gpu/count"), "2");
  EXPECT_EQ(FactOf(facts, "gpu/lost/1"), "'GPU is lost' (15)");
  EXPECT_EQ(FactOf(facts, "gpu/0/name"), "Fake GPU 0");
  EXPECT_EQ(FactOf(facts, "gpu/1/name"), "(absent)");
  setenv("FAKE_NVML", "others", 1);
  nvml = Nvml::Open(kFake);
  ASSERT_TRUE(nvml.ok());
  facts = (*nvml)->Describe();
  EXPECT_EQ(FactOf(facts, "gpu/count"), "1");
  EXPECT_EQ(FactOf(facts, "gpu/lost/1"), "(absent)");
  unsetenv("FAKE_NVML");
}

TEST(NvmlTest, SamplesSayWhatIsMissing) {
  unsetenv("FAKE_NVML");
  const auto nvml = Nvml::Open(kFake);
  ASSERT_TRUE(nvml.ok());
  journal::GpuSample sample = (*nvml)->Sample(1);
  EXPECT_EQ(sample.utilization_percent, 100);
  EXPECT_EQ(sample.power_mw, 95'000);
  EXPECT_EQ(sample.sm_clock_mhz, 1410);
  EXPECT_EQ(sample.temperature_celsius, -1);  // the library has no such call
  setenv("FAKE_NVML", "old", 1);
  sample = (*nvml)->Sample(1);
  EXPECT_EQ(sample.sm_clock_mhz, -1);  // it has, and refuses
  unsetenv("FAKE_NVML");
}

TEST(NvmlTest, AnXidIsHeardOfTheGpuThatTellsThem) {
  setenv("FAKE_NVML", "xid", 1);
  const auto nvml = Nvml::Open(kFake);
  ASSERT_TRUE(nvml.ok());
  EXPECT_EQ((*nvml)->Sample(1).xid, -1);  // nobody listens
  EXPECT_TRUE((*nvml)->ListenForXids());
  EXPECT_EQ((*nvml)->Sample(1).xid, 0);
  const Deadline deadline = Deadline::AfterSeconds(0.02);
  (*nvml)->Rest(20);
  EXPECT_TRUE(deadline.Passed());
  EXPECT_EQ((*nvml)->Sample(0).xid, -1);
  EXPECT_EQ((*nvml)->Sample(1).xid, 79);
  EXPECT_EQ((*nvml)->Sample(1).power_limit_mw, 700'000);
  EXPECT_EQ((*nvml)->Buses(), (std::vector<std::string>{"00000000:01:00.0", "00000000:02:00.0"}));
  unsetenv("FAKE_NVML");
}

TEST(NvmlTest, WithoutADriverItIsOneLine) {
  for (const auto& [mode, path] :
       {std::pair("init", kFake), {"uncounted", kFake}, {"", "/no/such/libnvidia-ml.so.1"}}) {
    setenv("FAKE_NVML", mode, 1);
    const auto nvml = Nvml::Open(path);
    ASSERT_FALSE(nvml.ok());
    EXPECT_EQ(nvml.status().message().find("no GPU driver: "), 0u) << nvml.status().message();
    EXPECT_EQ(nvml.status().message().find('\n'), std::string::npos);
  }
  unsetenv("FAKE_NVML");
}

}  // namespace
}  // namespace lockstep::environment
