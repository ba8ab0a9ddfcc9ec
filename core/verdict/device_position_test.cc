// Sentences about a GPU from literal samples and marks. What is not known must not be said.
#include "core/verdict/device_position.h"

#include "core/journal/purpose.h"
#include "core/verdict/testing/history.h"

namespace lockstep::verdict {
namespace {

using ::testing::HasSubstr;

constexpr Ticks kProgress = 100;  // of the rank's newest event
constexpr char kBus[] = "0000:02:00.0";

journal::GpuSample Sample(int second, int utilization, int memory, int watts) {
  journal::GpuSample sample;
  sample.gpu = 1;
  sample.ticks = kProgress + 1 + static_cast<Ticks>(second);
  sample.unix_ns = second * 1'000'000'000LL;
  sample.utilization_percent = utilization;
  sample.memory_utilization_percent = memory;
  sample.power_mw = watts * 1000;
  sample.power_limit_mw = 700'000;
  return sample;
}

journal::GpuSamples Host(std::vector<journal::GpuSample> samples) {
  return {0, {"00000000:01:00.0", "00000000:02:00.0"}, 0, std::move(samples)};
}

std::string Describe(std::vector<journal::GpuSample> samples, double age = 0.5) {
  return DescribeGpuActivity(Host(std::move(samples)), kBus, kProgress, age);
}

TEST(GpuActivity, AKernelThatWaitsIsToldFromOneThatWorks) {
  EXPECT_EQ(Describe({Sample(0, 50, 20, 300), Sample(1, 100, 0, 118), Sample(9, 100, 1, 117)}),
            "GPU 1 at 100 % utilization for 8 s without progress: memory 1 % busy, 118 W of 700 W: "
            "a kernel waits there and does no work");
  EXPECT_THAT(Describe({Sample(0, 100, 0, 118), Sample(1, 100, 45, 118), Sample(9, 100, 40, 118)}),
              HasSubstr("memory 45 % busy, 118 W of 700 W: a kernel works there"));
  // Matrix products need little memory, and much power.
  EXPECT_THAT(Describe({Sample(0, 100, 0, 118), Sample(1, 100, 1, 640), Sample(9, 100, 1, 650)}),
              HasSubstr("a kernel works there"));
}

TEST(GpuActivity, WhatIsNotKnownIsNotSaid) {
  EXPECT_EQ(Describe({}), "");
  EXPECT_EQ(DescribeGpuActivity(Host({Sample(1, 100, 0, 118)}), "0000:09:00.0", 0, 0), "");
  EXPECT_EQ(DescribeGpuActivity(Host({Sample(1, 100, 0, 118)}), "", 0, 0), "");
  journal::GpuSample mute = Sample(1, 100, 0, 0);
  mute.memory_utilization_percent = mute.power_mw = mute.power_limit_mw = -1;
  EXPECT_EQ(Describe({mute}), "GPU 1 at 100 % utilization");
  mute.utilization_percent = -1;
  EXPECT_EQ(Describe({mute}), "");
  // Samples of before the silence say nothing of it; the newest is told as it is.
  EXPECT_EQ(DescribeGpuActivity(Host({Sample(0, 100, 60, 600), Sample(1, 100, 0, 70)}), kBus,
                                kProgress + 50, 0.5),
            "GPU 1 at 100 % utilization");
  EXPECT_EQ(Describe({Sample(0, 100, 60, 600), Sample(1, 0, 0, 70), Sample(2, 1, 0, 70)}),
            "GPU 1 at 1 % utilization: nothing runs on it");
}

TEST(GpuActivity, TroubleIsNamed) {
  journal::GpuSample ill = Sample(1, 0, 0, 70);
  ill.xid = 79;
  ill.throttle_reasons = 0x41;
  ill.uncorrected_ecc_errors = 7;
  EXPECT_EQ(Describe({ill, ill}),
            "GPU 1 at 0 % utilization: nothing runs on it; the driver reports Xid 79; throttled: "
            "thermal (hardware); 7 uncorrected ECC errors");
  journal::GpuSample before = ill;
  before.ticks = kProgress;
  before.uncorrected_ecc_errors = before.throttle_reasons = 0;
  const std::string old = "; the driver reported Xid 79 before this silence";
  EXPECT_EQ(Describe({before}), "GPU 1 at 0 % utilization" + old);
  EXPECT_THAT(Describe({before, ill}), HasSubstr(old));
  before.xid = 31;
  EXPECT_THAT(Describe({before, ill}), HasSubstr("; the driver reports Xid 79"));
  EXPECT_EQ(Describe({ill}, 12), "GPU 1: its driver has not answered for 12 s");
  EXPECT_EQ(DescribeGpuActivity(journal::GpuSamples(), kBus, 0, 12),
            "the GPUs' driver has not answered for 12 s");
  EXPECT_EQ(DescribeGpuActivity(journal::GpuSamples(), kBus, 0, 1), "");
}

// Two all-reduces and the beginning of a third.
RankEvidence Rank() { return History(0).Does(AllReduce(), 2).Enters(AllReduce()); }

journal::DeviceMarks Marks(std::uint64_t started, std::uint64_t ended) {
  return {journal::MarkMethod::kStreamOperations, {{0, started, ended}}};
}

TEST(DevicePosition, SaysWhereTheDeviceIs) {
  const journal::Journal journal = Rank().journal;
  EXPECT_EQ(DescribeDevicePosition(journal, {}), "");
  EXPECT_THAT(DescribeDevicePosition(journal, Marks(3, 2)),
              HasSubstr("its GPU is inside all_reduce 3 (sequence 2 of communicator 0)"));
  EXPECT_THAT(DescribeDevicePosition(journal, Marks(2, 2)),
              HasSubstr("has not begun all_reduce 3 (sequence 2 of communicator 0)"));
  EXPECT_EQ(DescribeDevicePosition(journal, Marks(3, 3)),
            "its GPU has ended every collective that was enqueued");
  journal::Journal captured = journal;
  for (journal::JournalEvent& event : captured.events) {
    if (event.sequence == 1)
      event.value = journal::PackAnnotation({journal::Purpose::kCapture, 0, -1});
  }
  EXPECT_THAT(DescribeDevicePosition(captured, Marks(1, 1)),
              HasSubstr("has not begun all_reduce 3 (sequence 2 of communicator 0)"));
  EXPECT_EQ(DescribeDevicePosition(journal, {journal::MarkMethod::kOff, {}}),
            "device marks are off: --device-marks=on shows where its GPU is");
  // What the journal has forgotten is named by its number.
  EXPECT_THAT(DescribeDevicePosition({}, Marks(8, 7)),
              HasSubstr("inside sequence 7 of communicator 0"));
}

TEST(DevicePosition, IsPartOfTheJudgement) {
  RankEvidence waits = Rank();
  waits.device = Marks(3, 2);
  waits.gpu = "GPU 0 at 100 % utilization";
  waits.seconds_silent = 60;
  RankEvidence gone = History(1).Does(AllReduce(), 2);
  gone.state = ProcessState::kSignalled;
  gone.signal = 9;
  const Judgement judgement = Judge({waits, gone}, 30);
  ASSERT_EQ(judgement.outcomes.size(), 2u);
  EXPECT_THAT(judgement.outcomes[0].evidence, HasSubstr("its GPU is inside all_reduce 3"));
  EXPECT_THAT(judgement.outcomes[0].evidence, HasSubstr("GPU 0 at 100 % utilization"));
}

}  // namespace
}  // namespace lockstep::verdict
