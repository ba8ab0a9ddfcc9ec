// The judge against random programs, and the tester against judges that err.
#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "core/base/seeded_trials.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "watch/fuzz/campaign.h"

namespace lockstep::watch::fuzz {
namespace {

using ::testing::HasSubstr;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t kTrials = 500;
#else
constexpr std::int64_t kTrials = 5'000;
#endif

Campaign<Counts> Try(std::int64_t trials, const Spoil& spoil = {}) {
  return RunCampaign<Counts>({.trials = trials},
                             [&](std::uint64_t seed) { return Assess(DrawProgram(seed), spoil); });
}

TEST(WatchFuzz, NoWrongVerdict) {
  const auto [counts, seconds, failed] = Try(kTrials);
  fmt::print("{}\n", Describe(counts));
  if (failed) FAIL() << DescribeFailure(*failed);
  EXPECT_EQ(counts.trials, kTrials);
  EXPECT_GT(counts.hangs, kTrials / 8);
  EXPECT_GT(counts.silent, kTrials / 4);
  EXPECT_LT(counts.unknown, 1 + counts.hangs / 20);
}

struct WrongJudge {
  const char* name;
  void (*spoil)(Verdict& verdict);
};

const WrongJudge kWrongJudges[] = {
    {"finds nothing", [](Verdict& verdict) { verdict.findings.clear(); }},
    {"takes nobody for stuck", [](Verdict& verdict) { verdict.stuck.clear(); }},
    {"takes rank 0 for stuck",
     [](Verdict& verdict) {
       verdict.stuck.insert(0);
       verdict.soft = false;
     }},
    {"forgets a rank that is stuck",
     [](Verdict& verdict) {
       if (!verdict.stuck.empty()) verdict.stuck.erase(verdict.stuck.begin());
     }},
    {"blames the next rank",
     [](Verdict& verdict) {
       for (judge::Finding& finding : verdict.findings) {
         for (int& rank : finding.culprits) rank = rank == 0 ? 1 : 0;
       }
     }},
    {"names another line",
     [](Verdict& verdict) {
       for (judge::Finding& finding : verdict.findings) finding.text += "0";
       for (judge::Finding& finding : verdict.findings) {
         const std::size_t at = finding.text.find("line ");
         if (at != std::string::npos) finding.text.insert(at + 5, "7");
       }
     }},
    {"takes lost messages for leaks",
     [](Verdict& verdict) {
       for (judge::Finding& finding : verdict.findings) {
         if (finding.cause == judge::Cause::kLostMessage)
           finding.cause = judge::Cause::kRequestLeak;
       }
     }},
};

TEST(WatchFuzz, FindsWrongJudgesWithinAThousandTrials) {
  for (const WrongJudge& wrong : kWrongJudges) {
    SCOPED_TRACE(wrong.name);
    const auto [counts, seconds, failed] = Try(1000, wrong.spoil);
    ASSERT_TRUE(failed);
    const std::string text = DescribeFailure(*failed, wrong.spoil);
    fmt::print("a judge that {}: after {} trials\n{}\n", wrong.name, counts.trials, text);
    EXPECT_THAT(text, HasSubstr("MPI_Finalize"));
  }
}

TEST(WatchFuzz, AProgramFollowsFromItsSeed) {
  std::set<Error> seen;
  for (std::uint64_t seed = 1; seed < 300; ++seed) {
    const Program program = DrawProgram(seed);
    EXPECT_EQ(Describe(program), Describe(DrawProgram(seed)));
    EXPECT_EQ(Assess(program).hangs, Assess(program).hangs);
    seen.insert(program.error);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kErrors));
}

TEST(WatchFuzz, AProgramWithoutAnErrorNeverHangsAndIsNeverNews) {
  for (std::uint64_t seed = 1; seed < 300; ++seed) {
    Program program = DrawProgram(seed);
    program.error = Error::kNone;
    std::erase_if(program.steps, [](const Step& step) { return step.kind == Step::Kind::kGather; });
    if (program.steps.empty()) continue;
    const Assessment assessment = Assess(program);
    EXPECT_FALSE(assessment.hangs || assessment.found) << Describe(program);
  }
}

// Rank 0 waits in vain for rank 1, and for a message that rank 2 may still send when its test of
// another one ends.
TEST(WatchFuzz, NoMessageIsNearThatMayStillCome) {
  Program program;
  program.ranks = 3;
  program.comms = {{0, 1, 2}, {0, 1, 2}};
  for (const int number : {0, 1}) {
    Step& step = program.steps.emplace_back();
    step.number = static_cast<std::uint64_t>(number);
    step.from = {2};
    step.tag = number;
    step.send = Call::kIsend;
    step.receive = Call::kIrecv;
  }
  program.completions = 8;
  program.error = Error::kWrongPeer;
  program.other = 1;
  int polled = 0;
  for (program.seed = 0; program.seed < 3000; ++program.seed) {
    const std::vector<Action> actions = ActionsOf(program, 2);
    const bool polls = actions[1].call == Call::kTest || actions[1].call == Call::kTestall;
    if (!polls || ActionsOf(program, 0)[2].requests.size() != 2) continue;
    const Assessment assessment = Assess(program);
    EXPECT_EQ(assessment.wrong, "") << Describe(program);
    polled += assessment.hangs ? 1 : 0;
  }
  EXPECT_GT(polled, 0);
}

TEST(WatchFuzz, ASmallerProgramKeepsWhatMatters) {
  Program program = DrawProgram(1);
  for (std::uint64_t seed = 1;
       program.error != Error::kWrongTag || program.steps.size() < 6 || !Assess(program).hangs;
       ++seed) {
    program = DrawProgram(seed);
  }
  const Spoil finds_nothing = [](Verdict& verdict) { verdict.findings.clear(); };
  const Program least = Shrink(program, finds_nothing);
  EXPECT_LE(least.steps.size(), 2u);
  EXPECT_EQ(least.error, Error::kWrongTag);
  EXPECT_FALSE(Assess(least, finds_nothing).wrong.empty());
}

}  // namespace
}  // namespace lockstep::watch::fuzz
