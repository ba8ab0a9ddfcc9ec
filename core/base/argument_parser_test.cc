// Options of a made-up program, given as users would type them. The errors are compared as text,
// because one line has to name the option and the way to help.
#include "core/base/argument_parser.h"

#include <gtest/gtest.h>

#include "core/base/version.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

class ArgumentParserTest : public testing::Test {
 protected:
  ArgumentParserTest() {
    parser_.Add("-n,--iters", iters_, "How often").Between(1, 100).ShowDefault();
    parser_.Add("--mode", mode_, "Which").OneOf({"fast", "slow"});
    parser_.Add("--types", types_, "Several").SplitAtCommas();
    parser_.Add("--graph", graph_, "0, 1").SplitAtCommas().WithoutWordMeans(2, "1");
    parser_.Flag("!--no-progress", progress_, "Quiet");
  }

  std::string Error(const Words& words) {
    const auto result = parser_.Parse(words);
    return result.ok() ? "" : std::string(result.status().message());
  }

  ArgumentParser parser_{"What it does", "program"};
  int iters_ = 7;
  std::string mode_;
  Words types_, graph_;
  bool progress_ = true;
};

TEST_F(ArgumentParserTest, FillsVariables) {
  EXPECT_EQ(Error({"-n", "3", "--mode=slow", "--types=a,b", "--graph", "--no-progress"}), "");
  EXPECT_EQ(iters_, 3);
  EXPECT_EQ(mode_, "slow");
  EXPECT_EQ(types_, (Words{"a", "b"}));
  EXPECT_EQ(graph_, (Words{"1"}));
  EXPECT_FALSE(progress_);
  EXPECT_TRUE(parser_.Given("-n"));
}

TEST_F(ArgumentParserTest, ErrorsAreOneLineThatNamesTheOptionAndHelp) {
  for (const Words& words :
       {Words{"-n", "101"}, {"-n", "x"}, {"--mode=odd"}, {"--unknown"}, {"stray"}}) {
    const std::string error = Error(words);
    EXPECT_TRUE(error.ends_with("; see program --help")) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_EQ(iters_, 7);
  EXPECT_FALSE(parser_.Given("--types"));
}

TEST_F(ArgumentParserTest, HelpAndVersionAreTextsToPrint) {
  const auto help = parser_.Parse(Words{"--help"});
  ASSERT_TRUE(help.ok() && *help);
  EXPECT_NE((*help)->find("--iters"), std::string::npos);
  const auto version = parser_.Parse(Words{"--version"});
  ASSERT_TRUE(version.ok() && *version);
  EXPECT_EQ(**version, "program " + ThisVersionText() + "\n");
}

TEST_F(ArgumentParserTest, OldSpellingsAreRefusedWithTheNewName) {
  parser_.Renamed("--repetitions", "--iters");
  parser_.Renamed("-q,--quiet", "--no-progress");
  for (const Words& words : {Words{"--repetitions=3"}, {"--repetitions", "3"}, {"--repetitions"}}) {
    EXPECT_EQ(Error(words), "--repetitions: is called --iters now; see program --help");
  }
  EXPECT_EQ(Error({"-q"}), "--quiet: is called --no-progress now; see program --help");
  EXPECT_EQ(iters_, 7);
}

TEST_F(ArgumentParserTest, OldWordsAreRefusedWithTheNewOne) {
  std::string format = "text";
  parser_.Add("--format=WORD", format, "Form").OneOf({"text", "json"}).WordRenamed("table", "text");
  EXPECT_EQ(Error({"--format=table"}),
            "--format: 'table' is called 'text' now; see program --help");
  EXPECT_EQ(Error({"--format=odd"}), "--format: 'odd' is none of text, json; see program --help");
  EXPECT_EQ(Error({"--format=json"}), "");
}

TEST_F(ArgumentParserTest, AValueThatMovedIsRefusedWithItsNewOption) {
  bool report = false;
  parser_.Flag("--report", report, "Report").ValueMoved("--output=");
  EXPECT_EQ(Error({"--report=a.h5"}),
            "--report: takes no value now; write --output=a.h5; see program --help");
  EXPECT_EQ(Error({"--report"}), "");
  EXPECT_TRUE(report);
}

TEST_F(ArgumentParserTest, TimesHaveUnitsAndBounds) {
  double seconds = 2;
  parser_.Add("-T,--timeout=TIME", seconds, "Silence").BetweenReals(0.1, 3600);
  for (const auto& [word, expected] :
       {std::pair("250ms", 0.25), {"2m", 120.0}, {"2min", 120.0}, {"1h", 3600.0}, {"7", 7.0}}) {
    EXPECT_EQ(Error({"-T", word}), "");
    EXPECT_EQ(seconds, expected) << word;
  }
  for (const char* word : {"2h", "10ms", "soon", "-1", "3x"}) {
    const std::string error = Error({"-T", word});
    EXPECT_TRUE(error.starts_with("-T,--timeout: ")) << error;
    EXPECT_TRUE(error.ends_with("; see program --help")) << error;
  }
}

TEST_F(ArgumentParserTest, HelpSaysNothingRaw) {
  std::string file;
  Words operations = {"sum"};
  double seconds = 2;
  parser_.Add("--output=FILE", file, "Where").Required();
  parser_.Add("--op=WORD", operations, "Which").ShowDefault();
  parser_.Add("--wait=TIME", seconds, "How long").BetweenReals(0.5, 9).ShowDefault();
  parser_.Add("--twenty-characters-xy=WORD", file, "A line below");
  parser_.Renamed("-u", "--output");
  const auto help = parser_.Parse(Words{"--help"});
  ASSERT_TRUE(help.ok() && *help);
  EXPECT_NE((*help)->find("  --output FILE REQUIRED      Where\n"), std::string::npos) << **help;
  EXPECT_NE((*help)->find("  --op WORD=sum ...           Which\n"), std::string::npos) << **help;
  EXPECT_NE((*help)->find("  --wait TIME:0.5..9=2        How long\n"), std::string::npos) << **help;
  EXPECT_NE((*help)->find("  --no-progress               Quiet\n"), std::string::npos) << **help;
  EXPECT_NE(
      (*help)->find("  --twenty-characters-xy WORD\n                              A line below\n"),
      std::string::npos)
      << **help;
  EXPECT_EQ((*help)->find("-u"), std::string::npos) << **help;
  EXPECT_EQ((*help)->find("\n\n\n"), std::string::npos) << **help;
}

TEST(SubcommandTest, OneMustBeNamedAndIsChosen) {
  ArgumentParser parser("", "tool");
  std::string chosen, file;
  Words rest;
  {
    ArgumentParser show = parser.Subcommand("show", "", [&] { chosen = "show"; });
    show.Add("FILE", file, "").Required();
    ArgumentParser run = parser.Subcommand("run", "", [&] { chosen = "run"; });
    run.KeepUnknown(rest);
  }
  EXPECT_FALSE(parser.Parse(Words{}).ok());
  EXPECT_EQ(parser.Parse(Words{"odd"}).status().message(),
            "'odd' is not a subcommand; choose from: show run; see tool --help");
  EXPECT_FALSE(parser.Parse(Words{"show"}).ok());
  ASSERT_TRUE(parser.Parse(Words{"show", "a.h5"}).ok());
  EXPECT_EQ(chosen + " " + file, "show a.h5");
  ASSERT_TRUE(parser.Parse(Words{"run", "--odd=1", "x"}).ok());
  EXPECT_EQ(chosen, "run");
  EXPECT_EQ(rest, (Words{"--odd=1", "x"}));
}

}  // namespace
}  // namespace lockstep
