// Random runs of every field must come back as the same bytes. No HDF5 handle may stay open.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>

#include "results/store/store.h"
#include "results/store/testing/random_run.h"

namespace lockstep::results::store {
namespace {

// In a TEST, Run alone is a member of testing::Test.

std::string TempPath(const std::string& name) { return testing::TempDir() + "/" + name; }

void ExpectRoundTrip(const Run& run) {
  const std::string path = TempPath("round_trip.h5");
  const Status written = WriteRun(run, path);
  ASSERT_TRUE(written.ok()) << written.message();
  const Result<Run> read = ReadRun(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(BytesOf(run) == BytesOf(*read));
}

TEST(RoundTrip, RandomRunsComeBackBitForBit) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    ExpectRoundTrip(RandomRun(seed));
  }
}

TEST(RoundTrip, BytesTellRunsApart) {
  store::Run run = RandomRun(1);
  const std::string before = BytesOf(run);
  run.duration_seconds = -run.duration_seconds;
  EXPECT_NE(BytesOf(run), before);
}

TEST(RoundTrip, AnEmptyRun) { ExpectRoundTrip(store::Run()); }

TEST(RoundTrip, ACaseWithoutSamples) { ExpectRoundTrip(RunWithSamples(0, 2)); }

TEST(RoundTrip, LongTexts) {
  store::Run run = RunWithSamples(3, 2);
  const std::string longest(3'000'000, 'a');
  run.command_line = longest;
  run.plan_text = longest + "ü";
  run.environment = {{"deep/er/and/deeper/fact", longest}, {"path", "a:b"}};
  run.cases[0].judgement.outcomes.push_back(
      {0, verdict::Outcome::kHung, 0, 0, "here", 1.5, longest});
  run.cases[0].judgement.outcomes.push_back({1, verdict::Outcome::kFinished, 0, 0, "", 0, ""});
  ExpectRoundTrip(run);
}

TEST(RoundTrip, FactsComeBackSortedAndTheLastOfANameWins) {
  store::Run run;
  run.environment = {{"b", "1"}, {"/a//x", "2"}, {"b", "3"}, {"c/", "4"}};
  run.floors = {{"z_ns", 1}, {"a_ns", 2}};
  ASSERT_TRUE(WriteRun(run, TempPath("facts.h5")).ok());
  const store::Run read = ReadRun(TempPath("facts.h5")).value();
  const std::vector<std::pair<std::string, std::string>> facts = {
      {"a/x", "2"}, {"b", "3"}, {"c/value", "4"}};
  EXPECT_EQ(read.environment, facts);
  EXPECT_EQ(read.floors.front().first, "a_ns");
}

TEST(RoundTrip, LeavesNoHandleOpen) {
  ExpectRoundTrip(RandomRun(7));
  EXPECT_FALSE(ReadRun("/nonexistent/run.h5").ok());
  EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

// How fast is a matter of scripts/benchmarks.
TEST(RoundTrip, AMillionSamplesOfTwoRanks) { ExpectRoundTrip(RunWithSamples(1'000'000, 2)); }

}  // namespace
}  // namespace lockstep::results::store
