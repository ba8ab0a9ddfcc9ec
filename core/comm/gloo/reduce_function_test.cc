#include <cstdint>

#include "core/collective/half.h"
#include "core/comm/gloo/gloo_communicator.h"
#include "gtest/gtest.h"

namespace lockstep::comm::gloo {
namespace {

// gloo's own f16 fails this: it leaves 0x0002 where 2.0 belongs.
TEST(ReduceFunction, ResultsDoNotDependOnWhatTheOutputHeld) {
  const auto sum = ReduceFunctionFor(collective::DataType::kF16, collective::Reduction::kSum);
  const std::uint16_t one = collective::F16FromFloat(1.0f);
  for (int held = 0; held < 65536; ++held) {
    auto out = static_cast<std::uint16_t>(held);
    sum(&out, &one, &one, 1);
    ASSERT_EQ(out, collective::F16FromFloat(2.0f)) << held;
  }
}

TEST(ReduceFunction, EveryTypeAndReductionHasOne) {
  for (const collective::DataType type : collective::AllDataTypes()) {
    for (const collective::Reduction reduction :
         {collective::Reduction::kSum, collective::Reduction::kProd, collective::Reduction::kMin,
          collective::Reduction::kMax}) {
      EXPECT_NE(ReduceFunctionFor(type, reduction), nullptr);
    }
  }
}

}  // namespace
}  // namespace lockstep::comm::gloo
