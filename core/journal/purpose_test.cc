#include "core/journal/purpose.h"

#include <limits>

#include "gtest/gtest.h"

namespace lockstep::journal {
namespace {

TEST(Annotation, SurvivesPacking) {
  for (int purpose = 0; purpose <= static_cast<int>(Purpose::kCapture); ++purpose) {
    for (const std::int32_t detail : {0, 1, 255, 256, (1 << 24) - 1}) {
      for (const std::int32_t iteration : {-1, 0, 7, std::numeric_limits<std::int32_t>::max()}) {
        const Annotation annotation = {static_cast<Purpose>(purpose), detail, iteration};
        EXPECT_EQ(UnpackAnnotation(PackAnnotation(annotation)), annotation);
      }
    }
  }
}

TEST(Annotation, NothingIsZero) {
  EXPECT_EQ(PackAnnotation(Annotation()), 0);
  EXPECT_EQ(UnpackAnnotation(0), Annotation());
  EXPECT_EQ(Describe(Annotation()), "");
}

TEST(Annotation, SaysWhatTheCollectiveIsFor) {
  EXPECT_EQ(Describe({Purpose::kBucket, 3, 12}), "bucket 3 of iteration 12");
  EXPECT_EQ(Describe({Purpose::kJoinAlive, 0, 5}), "join: alive of iteration 5");
  EXPECT_EQ(Describe({Purpose::kReplay, 3, 12}), "graph replay: call 3 of iteration 12");
  EXPECT_EQ(Describe({Purpose::kReplayedBucket, 3, 12}), "graph replay: bucket 3 of iteration 12");
  EXPECT_EQ(Describe({Purpose::kCapture, 3, -1}), "graph capture: call 3");
  EXPECT_EQ(Describe({Purpose::kStateBroadcast, 1, -1}), "constructor: state 1");
}

TEST(Annotation, MemoryOfUnknownOriginHasANameToo) {
  EXPECT_EQ(NameOf(UnpackAnnotation(0xee).purpose), "unknown");
}

}  // namespace
}  // namespace lockstep::journal
