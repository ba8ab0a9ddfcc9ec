// Literal lines of progress, and how wide they are.
#include "bench/measure/progress_text.h"

#include <gtest/gtest.h>

namespace lockstep::bench::measure {
namespace {

TEST(ProgressText, TheFirstEstimateOfTheNewestCase) {
  EXPECT_EQ(
      ProgressText(
          {.cases = 190, .visited = 3, .seconds_left = 50, .newest = "barrier", .newest_ns = 640}),
      "3 of 190 cases visited, 0 done, about 50 s left; barrier: 640 ns so far");
  EXPECT_EQ(ProgressText({.repetition = 1, .cases = 2, .visited = 2, .done = 1}),
            "repetition 2, 2 of 2 cases visited, 1 done");
}

TEST(ProgressText, ALongNameLosesItsBeginning) {
  const std::string text = ProgressText({.cases = 190,
                                         .visited = 100,
                                         .done = 20,
                                         .seconds_left = 50,
                                         .newest = "all_reduce/f32/sum/bert_base/cap:100/bucket:17",
                                         .newest_ns = 12'300'000});
  EXPECT_EQ(text,
            "100 of 190 cases visited, 20 done, about 50 s left; …/bucket:17: 12.3 ms so far");
  EXPECT_EQ(text.size(), 79u + 2);  // the ellipsis is one column of three bytes
}

TEST(ProgressText, WithoutRoomForANameThereIsNone) {
  EXPECT_EQ(ProgressText({.repetition = 10,
                          .cases = 100'000,
                          .visited = 99'999,
                          .done = 99'998,
                          .seconds_left = 3599,
                          .newest = "all_reduce/f32",
                          .newest_ns = 640}),
            "repetition 11, 99999 of 100000 cases visited, 99998 done, about 3599 s left");
}

}  // namespace
}  // namespace lockstep::bench::measure
