#include "core/base/csv.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(CsvTest, OnlyWhatNeedsQuotesGetsThem) {
  EXPECT_EQ(CsvLine({"a b", "", "1,2", "say \"no\"", "two\nlines"}),
            "a b,,\"1,2\",\"say \"\"no\"\"\",\"two\nlines\"\n");
  EXPECT_EQ(CsvLine({""}), "\n");
}

}  // namespace
}  // namespace lockstep
