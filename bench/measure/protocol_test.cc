// Orders and records come back as they were written, and half a record is left alone.
#include "bench/measure/protocol.h"

#include <gtest/gtest.h>

namespace lockstep::bench::measure {
namespace {

struct Seen {
  std::vector<SampleRecord> samples;
  std::vector<BatchRecord> batches;
  std::vector<WrongRecord> wrong;
  std::vector<PartsRecord> parts;
};

Seen Read(std::string_view bytes) {
  Seen seen;
  ForEachRecord(bytes, {[&](const SampleRecord& r) { seen.samples.push_back(r); },
                        [&](const BatchRecord& r) { seen.batches.push_back(r); },
                        [&](const WrongRecord& r) { seen.wrong.push_back(r); },
                        [&](const PartsRecord& r) { seen.parts.push_back(r); }});
  return seen;
}

TEST(ProtocolTest, RecordsComeBackAndATornTailIsIgnored) {
  std::string bytes;
  AppendTo(bytes, SampleRecord{3, 7, 1000, 1700});
  EXPECT_EQ(bytes.size(), kSampleRecordBytes);
  AppendTo(bytes, WrongRecord{3, true, 1, 99, "2.5 (0x40200000)", "3"});
  AppendTo(bytes, BatchRecord{3, 7, 123456, 4096, 1});
  const std::size_t whole = bytes.size();
  AppendTo(bytes, SampleRecord{4, 8, 1, 2});
  for (std::size_t size = whole; size < bytes.size(); ++size) {
    const Seen seen = Read(std::string_view(bytes).substr(0, size));
    ASSERT_EQ(seen.samples.size(), 1u);
    EXPECT_EQ(seen.samples[0].exit, 1700u);
    ASSERT_EQ(seen.wrong.size(), 1u);
    EXPECT_TRUE(seen.wrong[0].warmup);
    EXPECT_EQ(seen.wrong[0].expected, "2.5 (0x40200000)");
    ASSERT_EQ(seen.batches.size(), 1u);
    EXPECT_EQ(seen.batches[0].wrong, 1);
  }
  EXPECT_EQ(Read(bytes).samples.size(), 2u);
}

TEST(ProtocolTest, PartsComeBack) {
  std::string bytes;
  AppendTo(bytes, PartsRecord{5, {1.5, -2}});
  EXPECT_EQ(bytes.size(), PartsRecordBytes(2));
  AppendTo(bytes, PartsRecord{6, {}});
  const Seen seen = Read(bytes);
  ASSERT_EQ(seen.parts.size(), 2u);
  EXPECT_EQ(seen.parts[0].case_index, 5u);
  EXPECT_EQ(seen.parts[0].values, (std::vector<double>{1.5, -2}));
  EXPECT_TRUE(seen.parts[1].values.empty());
}

TEST(ProtocolTest, RoundsAndErrorsComeBack) {
  const Round round{5, {{1, 2, 3}, {4, 0, 64}}};
  const Round again = DecodeRound(EncodeRound(round)).value();
  EXPECT_EQ(again.number, 5u);
  ASSERT_EQ(again.batches.size(), 2u);
  EXPECT_EQ(again.batches[1].iterations, 64u);
  EXPECT_FALSE(DecodeRound("abc").ok());
  const Status error = DecodeError(EncodeError(EnvironmentError("no memory")));
  EXPECT_EQ(error.code(), StatusCode::kEnvironment);
  EXPECT_EQ(error.message(), "no memory");
}

}  // namespace
}  // namespace lockstep::bench::measure
