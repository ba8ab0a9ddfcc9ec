// What makes a look that shows all silent count, or old.
#include "core/coordinator/silent_look.h"

#include <gtest/gtest.h>

namespace lockstep::coordinator {
namespace {

TEST(SilentLook, CountsWhenNothingCameMeanwhile) {
  SilentLook look;
  EXPECT_FALSE(look.OnEvent(EventKind::kTimeout)) << "there is none";
  look.Set({RankEvidence{}});
  // Of many ranks that are overdue at once none makes it old: all are asked once.
  EXPECT_FALSE(look.OnEvent(EventKind::kOverdue));
  EXPECT_TRUE(look.pending());
  EXPECT_TRUE(look.OnEvent(EventKind::kTimeout));
  EXPECT_EQ(look.Take()->size(), 1u);
  EXPECT_FALSE(look.pending());
}

TEST(SilentLook, IsOldWhenARankWasHeardOf) {
  for (const EventKind kind :
       {EventKind::kMessage, EventKind::kQuiet, EventKind::kExited, EventKind::kSignalled,
        EventKind::kStopped, EventKind::kContinued, EventKind::kLost, EventKind::kTerminate}) {
    SilentLook look;
    look.Set({RankEvidence{}});
    EXPECT_FALSE(look.OnEvent(kind));
    EXPECT_FALSE(look.pending());
    EXPECT_FALSE(look.OnEvent(EventKind::kTimeout));
  }
}

}  // namespace
}  // namespace lockstep::coordinator
