// Marks of a device, in literal pages of memory, and words for what a sample of a GPU says.
#include <gtest/gtest.h>

#include <array>
#include <span>

#include "core/journal/device_marks.h"
#include "core/journal/gpu_sample.h"

namespace lockstep::journal {
namespace {

struct alignas(4096) Page {
  std::array<std::byte, kDeviceMarksBytes> bytes{};
};

TEST(DeviceMarks, WhatIsWrittenIsRead) {
  Page page;
  EXPECT_EQ(ReadDeviceMarks(page.bytes).method, MarkMethod::kNone);
  *MarkWordsOf(page.bytes, 0).started = 3;
  EXPECT_TRUE(ReadDeviceMarks(page.bytes).marks.empty());  // nobody said who marks
  SetMarkMethod(page.bytes, MarkMethod::kKernel);
  *MarkWordsOf(page.bytes, 254).ended = 9;
  const DeviceMarks known = ReadDeviceMarks(page.bytes);
  EXPECT_EQ(NameOf(known.method), "a kernel of one thread");
  ASSERT_EQ(known.marks.size(), 2u);
  EXPECT_EQ(known.marks[0].started, 3u);
  EXPECT_EQ(known.marks[0].ended, 0u);
  EXPECT_EQ(known.marks[1].communicator, 254);
  EXPECT_EQ(known.marks[1].ended, 9u);
  EXPECT_EQ(MarkWordsOf(page.bytes, kMarkedCommunicators).started, nullptr);
}

TEST(DeviceMarks, NobodyIsToMark) {
  Page page;
  SetMarkMethod(page.bytes, MarkMethod::kOff);
  const DeviceMarks known = ReadDeviceMarks(page.bytes);
  EXPECT_EQ(NameOf(known.method), "none: --device-marks=off");
  EXPECT_TRUE(known.marks.empty());
}

TEST(DeviceMarks, RubbishOverTheMethodIsNothing) {
  Page page;
  *MarkWordsOf(page.bytes, 0).started = 3;
  SetMarkMethod(page.bytes, static_cast<MarkMethod>(77));
  EXPECT_TRUE(ReadDeviceMarks(page.bytes).marks.empty());
}

TEST(GpuSample, PlacesOnTheBus) {
  EXPECT_TRUE(SameBus("0000:3b:00.0", "00000000:3B:00.0"));
  EXPECT_FALSE(SameBus("0000:3b:00.0", "00000000:3C:00.0"));
  EXPECT_FALSE(SameBus("", ""));
}

TEST(GpuSample, ThrottlingInWords) {
  EXPECT_EQ(DescribeThrottling(0x44), "power cap, thermal (hardware)");
  EXPECT_EQ(DescribeThrottling(0x1), "none");
  EXPECT_EQ(DescribeThrottling(-1), "unknown");
}

}  // namespace
}  // namespace lockstep::journal
