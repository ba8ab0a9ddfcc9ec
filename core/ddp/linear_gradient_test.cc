#include "core/ddp/linear_gradient.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep::ddp {
namespace {

LinearGradient Of(std::vector<std::int64_t> inputs, int ranks, bool join,
                  bool divide_by_initial_world_size = true) {
  TrainingProgram program;
  program.model = "linear_1_1";
  program.inputs.values = std::move(inputs);
  program.join = join;
  program.divide_by_initial_world_size = divide_by_initial_world_size;
  const auto gradient = ExpectedLinear(program, ranks - 1, ranks);
  EXPECT_TRUE(gradient);
  return gradient.value_or(LinearGradient{});
}

TEST(LinearGradient, OfEvenInputsIsWhole) {
  EXPECT_EQ(Of({5}, 2, false).value, 10);
  EXPECT_TRUE(Of({5}, 8, false).exact);
  EXPECT_TRUE(Of({500}, 3, false).exact) << "three equal terms";
  EXPECT_FALSE(Of({500}, 5, false).exact);
}

// Whose terms have parts: then their sums need more digits than the terms.
TEST(LinearGradient, OfManyInputsIsRounded) {
  TrainingProgram program;
  program.model = "linear_1_1";
  program.linear_rows = 1023;
  program.inputs.values = {500};
  EXPECT_TRUE(ExpectedLinear(program, 0, 32)->exact);
  program.inputs.values = {567};
  EXPECT_FALSE(ExpectedLinear(program, 0, 32)->exact);
}

// Seven of eight ranks add sevenths or eighths, which an order of addition rounds.
TEST(LinearGradient, OfSomeRanksOfAPowerOfTwoIsRounded) {
  const std::vector<std::int64_t> uneven = {5, 40, 40, 40, 40, 40, 40, 40};
  EXPECT_FALSE(Of(uneven, 8, true).exact);
  EXPECT_FALSE(Of(uneven, 8, true, false).exact);
  EXPECT_TRUE(Of({5, 5, 5, 5, 5, 7, 7, 7}, 8, true).exact) << "three are left";
  EXPECT_TRUE(Of({5, 5, 5, 5, 7, 7, 7, 7}, 8, true, false).exact) << "four fourths";
  EXPECT_FALSE(Of({5, 5, 5, 5, 9, 9, 9, 9}, 8, true).exact) << "halves of halves";
}

TEST(LinearGradient, IsUnknownWhereRanksDoNotAgree) {
  TrainingProgram program;
  program.model = "linear_1_1";
  program.inputs.values = {5, 6};
  EXPECT_FALSE(ExpectedLinear(program, 1, 2));
}

}  // namespace
}  // namespace lockstep::ddp
