// What a [recovery] table may say, and which faults, workloads and expectations are refused with it
// or without it.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stress/scenario/recovery.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::scenario {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLoop = "name = \"a/b\"\nranks = 3\n[workload]\nkind = \"all_reduce_loop\"\n";

std::string MistakeIn(const std::string& text) {
  const Result<Scenario> scenario = ParseScenario(text, "a.toml");
  EXPECT_FALSE(scenario.ok()) << text;
  return scenario.ok() ? "" : scenario.status().message();
}

TEST(ScenarioRecovery, IsRead) {
  const Result<Scenario> plain = ParseScenario(kLoop, "a.toml");
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->recovery.has_value());
  const Result<Scenario> scenario =
      ParseScenario(std::string(kLoop) +
                        "[recovery]\nmode = \"restart\"\nabort_deadline = \"2s\"\n"
                        "connect_deadline = \"20s\"\n"
                        "[expect.gloo]\nranks = \"finished\"\nrecovery = \"resumed\"\n",
                    "a.toml");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  ASSERT_TRUE(scenario->recovery.has_value());
  EXPECT_EQ(scenario->recovery->mode, RecoveryPlan::Mode::kRestart);
  EXPECT_EQ(scenario->recovery->abort_deadline_seconds, 2);
  EXPECT_EQ(scenario->recovery->connect_deadline_seconds, 20);
  EXPECT_EQ(scenario->expect.at("gloo").recovery, "resumed");
}

TEST(ScenarioRecovery, MistakesAreOneLine) {
  const std::string loop = kLoop;
  EXPECT_THAT(MistakeIn(loop + "[recovery]\nmode = \"shrnk\"\n"),
              HasSubstr("a.toml:6: key recovery.mode: 'shrnk' is unknown; did you mean 'shrink'?"));
  EXPECT_THAT(MistakeIn(loop + "[recovery]\n"), HasSubstr("write mode = \"shrink\""));
  EXPECT_THAT(MistakeIn(loop + "[recovery]\nmode = \"shrink\"\nabort_deadline = \"soon\"\n"),
              HasSubstr("'soon' is no time"));
  EXPECT_THAT(MistakeIn(loop + "[recovery]\nmode = \"shrink\"\nconnect_deadline = \"0s\"\n"),
              HasSubstr("recovery.connect_deadline: '0s' is no time"));
  EXPECT_THAT(MistakeIn(loop + "[recovery]\nmode = \"shrink\"\nmood = 1\n"), HasSubstr("mood"));
  EXPECT_THAT(MistakeIn("name = \"a/b\"\nranks = 2\n[workload]\nkind = \"script\"\n"
                        "default = [\"barrier world\"]\n[recovery]\nmode = \"shrink\"\n"),
              HasSubstr("script cannot go on from an iteration"));
  EXPECT_THAT(MistakeIn("name = \"a/b\"\nranks = 1\n[workload]\nkind = \"all_reduce_loop\"\n"
                        "[recovery]\nmode = \"shrink\"\n"),
              HasSubstr("no survivors"));
}

TEST(ScenarioRecovery, WhatBelongsToItNeedsIt) {
  const std::string loop = kLoop;
  EXPECT_THAT(MistakeIn(loop + "[[fault]]\nkind = \"hung_abort\"\nrank = 1\nat = \"init\"\n"),
              HasSubstr("needs a recovery"));
  EXPECT_THAT(MistakeIn(loop + "[[fault]]\nkind = \"kill\"\nrank = 1\nat = \"rebuild\"\n"),
              HasSubstr("needs a recovery"));
  EXPECT_THAT(MistakeIn(loop + "[expect.any]\nrecovery = \"resumed\"\n"),
              HasSubstr("add a [recovery] table"));
}

}  // namespace
}  // namespace lockstep::stress::scenario
