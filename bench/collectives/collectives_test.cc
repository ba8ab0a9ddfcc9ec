// From words of the command line to cases: each has a name of its own.
#include "bench/collectives/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace lockstep::bench::collectives {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

Result<plan::Plan> PlanOf(const std::vector<std::string>& words) {
  Collectives kind({"bench_allreduce", "", collective::Collective::kAllReduce,
                    /*in_place_by_default=*/false, /*takes_models=*/true});
  ArgumentParser parser("", kind.name());
  kind.AddOptions(parser);
  LOCKSTEP_RETURN_IF_ERROR(parser.Parse(words).status());
  plan::BenchSpec spec;
  LOCKSTEP_RETURN_IF_ERROR(kind.ReadOptions(parser, measure::ReportFormat::kTable, spec));
  return kind.Expand(spec, 2);
}

std::multiset<std::string> NamesOf(const plan::Plan& plan) {
  std::multiset<std::string> names;
  for (const plan::PlannedCase& planned : plan.cases) names.insert(planned.name);
  return names;
}

TEST(CollectiveOptions, AReductionOrTypeThatIsGivenTwiceIsOneCase) {
  const plan::Plan plan =
      PlanOf({"-b", "8", "-e", "8", "-o", "sum,max,sum", "-d", "f32,f32"}).value();
  EXPECT_THAT(NamesOf(plan), UnorderedElementsAre("all_reduce/f32/sum/8", "all_reduce/f32/max/8"));
}

TEST(CollectiveOptions, ACapThatIsGivenTwiceMakesItsBucketsOnce) {
  const auto cases = [](const std::string& caps) {
    return NamesOf(PlanOf({"--model=resnet50", "--bucket-cap-mb=" + caps}).value());
  };
  EXPECT_EQ(cases("10,25,10.0"), cases("10,25"));
}

TEST(CollectiveOptions, AModelThatIsGivenTwiceIsRefused) {
  const Result<plan::Plan> refused = PlanOf({"--model=resnet50,resnet50"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("--model: resnet50 is given twice"));
}

TEST(CollectiveOptions, AStepAndAFactorAreNotTakenTogether) {
  EXPECT_EQ(PlanOf({"-b", "1K", "-e", "4K", "-i", "1K"}).value().cases.size(), 4u);
  EXPECT_EQ(PlanOf({"-b", "1K", "-e", "9K", "-f", "3"}).value().cases.size(), 3u);
  const Result<plan::Plan> refused = PlanOf({"-i", "1K", "-f", "3"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidInput);
  EXPECT_THAT(refused.status().message(), HasSubstr("-i 1K and -f 3"));
}

}  // namespace
}  // namespace lockstep::bench::collectives
