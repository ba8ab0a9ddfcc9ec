// Visits of sharded loading hold whole bursts of the workers.
#include "bench/loading/cases.h"

#include <gtest/gtest.h>

#include <tuple>
#include <utility>

namespace lockstep::bench::loading {
namespace {

TEST(LoadingCases, AVisitIsAMultipleOfTheWorkers) {
  for (const auto& [workers, iterations] :
       {std::pair(0, 8u), std::pair(1, 8u), std::pair(2, 8u), std::pair(3, 9u), std::pair(4, 8u),
        std::pair(5, 10u), std::pair(16, 16u)}) {
    Axes axes;
    axes.common.workers = workers;
    axes.slow_downs = {1, 10};
    const plan::Plan plan = Expand({}, axes, 2).value();
    ASSERT_EQ(plan.cases.size(), 2u);
    for (const plan::PlannedCase& planned : plan.cases) {
      EXPECT_EQ(planned.visit_iterations, iterations) << workers;
    }
  }
}

TEST(LoadingCases, ACountIsOfWholeBursts) {
  for (const auto& [workers, asked, iterations] :
       {std::tuple(0, 3, 3), std::tuple(1, 3, 3), std::tuple(2, 1, 2), std::tuple(4, 3, 4),
        std::tuple(4, 4, 4), std::tuple(4, 9, 12), std::tuple(16, 1, 16)}) {
    Axes axes;
    axes.common.workers = workers;
    plan::BenchSpec spec;
    spec.iterations = asked;
    EXPECT_EQ(Expand(spec, axes, 2).value().iterations, iterations) << workers << " " << asked;
  }
}

}  // namespace
}  // namespace lockstep::bench::loading
