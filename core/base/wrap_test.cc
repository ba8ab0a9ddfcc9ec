#include "core/base/wrap.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Wrap, BreaksAtSpacesOnly) {
  EXPECT_EQ(Wrap("one two three four", 2, 9), "one two\n  three\n  four\n");
  EXPECT_EQ(Wrap("one two three", 2, 13), "one two three\n");
  EXPECT_EQ(Wrap("one two three", 2, 12), "one two\n  three\n");
}

TEST(Wrap, ALongerWordHasALineOfItsOwn) {
  EXPECT_EQ(Wrap("a incomprehensible b", 1, 5), "a\n incomprehensible\n b\n");
  EXPECT_EQ(Wrap("incomprehensible", 4, 5), "incomprehensible\n");
}

// A terminal shows what a user typed, and does not obey it.
TEST(OneLine, ControlCharactersAreShown) {
  EXPECT_EQ(OneLine("a\nb\x1b[31m\t\r\x7f…: no file\n\n"), "a\\nb\\x1b[31m\\t\\r\\x7f…: no file");
  EXPECT_EQ(OneLine(""), "");
}

TEST(Wrap, CountsCharacters) { EXPECT_EQ(Wrap("… … … …", 0, 3), "… …\n… …\n"); }

TEST(Wrap, KeepsSpacesInsideALine) {
  EXPECT_EQ(Wrap("  a  b", 4, 20), "  a  b\n");
  EXPECT_EQ(Wrap("", 4, 20), "\n");
}

}  // namespace
}  // namespace lockstep
