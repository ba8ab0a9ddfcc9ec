#include "core/verdict/headline.h"

#include <gtest/gtest.h>

namespace lockstep::verdict {
namespace {

std::string Words(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += i == 0 ? "w" : " w";
  return text;
}

TEST(Headline, IsOneLineOfABoundedNumberOfWords) {
  EXPECT_EQ(Headline(" rank 1\nfailed:\tno  route ").text(), "rank 1 failed: no route");
  EXPECT_EQ(Headline(Words(Headline::kMostWords)).text(), Words(Headline::kMostWords));
  EXPECT_EQ(Headline(Words(Headline::kMostWords + 1)).text(), Words(Headline::kMostWords) + "…");
  EXPECT_TRUE(Headline(" \n").empty());
}

TEST(Headline, AClauseThatDoesNotFitIsLeftOut) {
  Headline headline("rank 1 hangs in all_reduce 50");
  headline.Add("; " + Words(Headline::kMostWords)).Add("; rank 0 waits\nfor it");
  EXPECT_EQ(headline.text(), "rank 1 hangs in all_reduce 50; rank 0 waits for it");
}

TEST(Headline, OfAMessageHasTheClausesThatFit) {
  EXPECT_EQ(Headline::Of("a: b; c").text(), "a: b; c");
  const std::string large = Words(Headline::kMostWords);
  EXPECT_EQ(Headline::Of("a; " + large + "; c").text(), "a; c");
  // What explains a clause does not stand without it.
  EXPECT_EQ(Headline::Of("a; " + large + ": b; c").text(), "a; c");
  EXPECT_EQ(Headline::Of(large + " more: b").text(), large + "…");
}

TEST(Headline, NoCharacterOfALongWordIsCutApart) {
  std::string word = "x";
  for (int i = 0; i < 100; ++i) word += "ü";
  const std::string text = Headline(word).text();
  EXPECT_LT(text.size(), word.size());
  EXPECT_EQ(text, word.substr(0, text.size()));
  EXPECT_EQ(text.size() % 2, 1u);
}

}  // namespace
}  // namespace lockstep::verdict
