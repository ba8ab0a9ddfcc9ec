// The helper against a library of its own that answers, hangs or dies.
#include "core/agent/gpu_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "core/agent/evidence.h"
#include "core/base/deadline.h"
#include "core/control/segment.h"

namespace lockstep::agent {
namespace {

constexpr double kLongSeconds = 30;  // of a busy machine

void Doze() {
  const timespec moment{0, 2'000'000};
  nanosleep(&moment, nullptr);
}

class GpuWatchTest : public testing::Test {
 protected:
  void SetUp() override { setenv("LOCKSTEP_NVML_LIBRARY", "core/environment/libfake_nvml.so", 1); }
  void TearDown() override {
    unsetenv("LOCKSTEP_NVML_LIBRARY");
    unsetenv("FAKE_NVML");
  }
  // Until there are so many samples.
  static journal::GpuSamples Await(const GpuWatch& watch, std::size_t count) {
    const Deadline deadline = Deadline::AfterSeconds(kLongSeconds);
    while (watch.Newest(1000).samples.size() < count && !deadline.Passed()) Doze();
    return watch.Newest(1000);
  }
};

TEST_F(GpuWatchTest, SamplesOfAllGpusAreThere) {
  const auto watch = GpuWatch::Start({.seconds = 0.01});
  ASSERT_NE(watch, nullptr);
  const journal::GpuSamples known = Await(*watch, 6);
  ASSERT_GE(known.samples.size(), 6u);
  EXPECT_EQ(known.buses, (std::vector<std::string>{"00000000:01:00.0", "00000000:02:00.0"}));
  EXPECT_EQ(known.samples[0].gpu, 0);
  EXPECT_EQ(known.samples[1].gpu, 1);
  EXPECT_EQ(known.samples[1].utilization_percent, 100);
  EXPECT_EQ(known.samples[1].uncorrected_ecc_errors, 7);
  EXPECT_LE(known.samples[0].ticks, known.samples[2].ticks);
  EXPECT_EQ(watch->Newest(1).samples.size(), 2u);  // one of each GPU
}

TEST_F(GpuWatchTest, OldSamplesGiveWay) {
  const auto watch = GpuWatch::Start({.seconds = 0.001, .capacity = 8});
  ASSERT_NE(watch, nullptr);
  const Deadline deadline = Deadline::AfterSeconds(kLongSeconds);
  while (watch->Newest(1000).missed == 0 && !deadline.Passed()) Doze();
  const journal::GpuSamples known = watch->Newest(1000);
  EXPECT_EQ(known.samples.size(), 6u);
  EXPECT_GT(known.missed, 0u);
}

// A driver that does not come back costs its helper, and nobody else.
TEST_F(GpuWatchTest, ADriverThatHangsIsLeftBehind) {
  setenv("FAKE_NVML", "stuck", 1);
  auto watch = GpuWatch::Start({.seconds = 0.01});
  ASSERT_NE(watch, nullptr);
  const pid_t helper = watch->helper();
  ASSERT_EQ(Await(*watch, 2).samples.size(), 2u);
  const Deadline deadline = Deadline::AfterSeconds(kLongSeconds);
  while (watch->AgeSeconds() < 0.2 && !deadline.Passed()) Doze();
  EXPECT_GE(watch->AgeSeconds(), 0.2);
  EXPECT_EQ(watch->Newest(1000).samples.size(), 2u);
  watch.reset();
  // It was killed, and ends when it gets a processor.
  const Deadline limit = Deadline::AfterSeconds(kLongSeconds);
  while (waitpid(helper, nullptr, WNOHANG) == 0 && !limit.Passed()) Doze();
  EXPECT_NE(kill(helper, 0), 0);
}

TEST_F(GpuWatchTest, WithoutADriverThereIsNothing) {
  setenv("FAKE_NVML", "init", 1);
  const auto watch = GpuWatch::Start({.seconds = 0.01});
  ASSERT_NE(watch, nullptr);
  // The helper leaves; that is no driver which does not answer.
  const Deadline deadline = Deadline::AfterSeconds(kLongSeconds);
  while (watch->AgeSeconds() > 0 && !deadline.Passed()) Doze();
  EXPECT_EQ(watch->AgeSeconds(), 0);
  EXPECT_TRUE(watch->Newest(10).buses.empty());
  EXPECT_EQ(GpuWatch::Start({.seconds = 0}), nullptr);
}

TEST(WorkerCard, IsReadAsItWasWritten) {
  std::byte memory[control::kWorkerCardBytes] = {};
  EXPECT_EQ(control::ReadCard(memory).gpu_bus, "");
  control::WriteCard(memory, {"0000:3b:00.0", "/tmp/log"});
  EXPECT_EQ(control::ReadCard(memory).gpu_bus, "0000:3b:00.0");
  EXPECT_EQ(control::ReadCard(memory).log_file, "/tmp/log");
  control::WriteCard(memory,
                     {"", std::string(control::kWorkerCardBytes, 'x')});  // too long: it stays
  EXPECT_EQ(control::ReadCard(memory).log_file, "/tmp/log");
  // What a broken process wrote over it.
  std::fill(std::begin(memory), std::end(memory), std::byte{0x55});
  EXPECT_EQ(control::ReadCard(memory).gpu_bus, "");
  EXPECT_EQ(control::ReadCard(memory).log_file, "");
}

TEST(WorkerLog, TheEndInWholeLines) {
  const std::string path = testing::TempDir() + "/worker.log";
  std::ofstream(path) << "first line\nsecond line\nthird line\n";
  const journal::WorkerLog whole = ReadLogEnd(path);
  EXPECT_EQ(whole.text, "first line\nsecond line\nthird line\n");
  EXPECT_EQ(whole.cut_bytes, 0);
  const journal::WorkerLog end = ReadLogEnd(path, 14);
  EXPECT_EQ(end.text, "third line\n");
  EXPECT_EQ(end.bytes, 34);
  EXPECT_EQ(end.cut_bytes, 23);
  EXPECT_EQ(ReadLogEnd("/nonexistent/worker.log").text, "");
  EXPECT_EQ(ReadLogEnd("/dev/zero").text, "");
}

}  // namespace
}  // namespace lockstep::agent
