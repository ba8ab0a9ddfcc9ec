// The six uneven-input cases and the evaluation table in simulation, against what the real
// libraries did (the table is in the comment of each test).
#include <string>
#include <vector>

#include "core/comm/sim/sim_kernels.h"
#include "core/comm/sim/sim_world.h"
#include "core/ddp/small_models.h"
#include "core/ddp/training.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {
namespace {

using testing::HasSubstr;

class LocatedSurroundings final : public TrainingSurroundings {
 public:
  explicit LocatedSurroundings(comm::sim::RankContext& context) : context_(context) {}
  Status Sleep(std::int64_t ns) override {
    context_.Sleep(ns);
    return OkStatus();
  }
  Status Reach(const TrainingPoint& point) override {
    where = point;
    return OkStatus();
  }
  TrainingPoint where;

 private:
  comm::sim::RankContext& context_;
};

struct Ending {
  comm::sim::RankEnd end;
  TrainingPoint where;
  double grad = 0;
};

std::vector<Ending> Simulate(const TrainingProgram& program, int ranks, comm::sim::SimRules rules) {
  std::vector<Ending> endings(static_cast<std::size_t>(ranks));
  comm::sim::SimWorld world({.ranks = ranks, .rules = rules});
  const comm::sim::SimReport report = world.Run([&](comm::sim::RankContext& context) -> Status {
    Ending& ending = endings[static_cast<std::size_t>(context.rank())];
    const auto communicator = context.Connect();
    comm::sim::SimKernels kernels(context);
    LocatedSurroundings surroundings(context);
    struct Keep {  // also when the rank is unwound
      ~Keep() { ending.where = surroundings.where; }
      Ending& ending;
      LocatedSurroundings& surroundings;
    } keep{ending, surroundings};
    auto module = MakeSmallModel(program.model, {.linear_rows = 1, .compute_us = 100}, kernels);
    if (!module.ok()) return module.status();
    TrainingOutcome outcome;  // outlives the streams
    // NCCL's calls come back at once; the others block a thread beside the caller.
    const auto compute = rules == comm::sim::SimRules::kNccl ? context.device().NewStream()
                                                             : context.device().NewInlineStream();
    const auto communication = context.device().NewStream();
    outcome = RunTraining(program, **module,
                          {*communicator, context.device(), kernels, *compute, *communication},
                          surroundings);
    ending.grad = static_cast<const float*>((*module)->params()[0].grad)[0];
    return outcome.status;
  });
  for (std::size_t r = 0; r < endings.size(); ++r) endings[r].end = report.ranks[r];
  return endings;
}

TrainingProgram UnevenCase(int number) {
  TrainingProgram program;
  program.model = "linear_1_1";
  program.inputs = {{5}};
  program.extra_inputs_per_rank = 1;
  program.join = number == 1 || number == 4 || number == 6;
  if (number == 3 || number == 4) program.barrier = BarrierPlace::kInLoop;
  if (number == 5 || number == 6) program.barrier = BarrierPlace::kAfterLoop;
  return program;
}

// "finished", "failed in backward 5", "hung in join_exit" …
std::string Word(const Ending& ending) {
  std::string word(comm::sim::NameOf(ending.end.state));
  if (ending.end.state == comm::sim::RankState::kFinished) return word;
  using At = TrainingPoint::At;
  switch (ending.where.at) {
    case At::kForward:
      return word + fmt::format(" in forward {}", ending.where.iteration);
    case At::kBackward:
      return word + fmt::format(" in backward {}", ending.where.iteration);
    case At::kJoinExit:
      return word + " in join_exit";
    case At::kAfterLoop:
      return word + " after_loop";
    case At::kEvaluation:
      return word + " in evaluation";
    default:
      return word + " elsewhere";
  }
}

struct Expected {
  int number;
  std::string rank0;
  std::string rank1;
};

void ExpectTable(const std::vector<Expected>& table, comm::sim::SimRules rules,
                 BarrierKind barrier) {
  for (const Expected& row : table) {
    TrainingProgram program = UnevenCase(row.number);
    program.barrier_kind = barrier;
    const auto endings = Simulate(program, 2, rules);
    EXPECT_EQ(Word(endings[0]), row.rank0)
        << "case " << row.number << ", rank 0: " << endings[0].end.message << endings[0].end.where;
    EXPECT_EQ(Word(endings[1]), row.rank1)
        << "case " << row.number << ", rank 1: " << endings[1].end.message << endings[1].end.where;
  }
}

// Observed with gloo by torch 1.13.1 and 2.6.0. A barrier in the loop belongs to the iteration
// whose backward pass it follows.
TEST(SixCases, AsGlooDoes) {
  ExpectTable({{1, "finished", "finished"},
               {2, "finished", "failed in backward 5"},
               {3, "finished", "failed in backward 5"},
               {4, "hung in join_exit", "hung in backward 5"},
               {5, "hung after_loop", "hung in backward 5"},
               {6, "finished", "finished"}},
              comm::sim::SimRules::kGloo, BarrierKind::kNative);
}

// Observed with torch 2.6 on its MPI backend.
TEST(SixCases, AsMpiDoes) {
  ExpectTable({{1, "finished", "finished"},
               {2, "finished", "hung in backward 5"},
               {3, "finished", "hung in backward 5"},
               {4, "hung in join_exit", "hung in backward 5"},
               {5, "hung after_loop", "hung in backward 5"},
               {6, "finished", "finished"}},
              comm::sim::SimRules::kMpi, BarrierKind::kNative);
}

TEST(SixCases, HealthyOnesEndWithPyTorchsGradients) {
  for (const comm::sim::SimRules rules :
       {comm::sim::SimRules::kNccl, comm::sim::SimRules::kMpi, comm::sim::SimRules::kGloo}) {
    for (const int number : {1, 6}) {
      const auto endings = Simulate(UnevenCase(number), 2, rules);
      EXPECT_EQ(endings[0].grad, 5) << comm::sim::NameOf(rules);
      EXPECT_EQ(endings[1].grad, 3) << comm::sim::NameOf(rules);
    }
  }
}

// Where the barrier is an all-reduce of one float, rank 0 takes it for the last word of join (case
// 4) or for the gradients (case 5), and finishes.
TEST(SixCases, ABarrierThatIsAnAllReduceIsMistaken) {
  for (const int number : {4, 5}) {
    TrainingProgram program = UnevenCase(number);
    program.barrier_kind = BarrierKind::kAllReduce;
    const auto endings = Simulate(program, 2, comm::sim::SimRules::kNccl);
    EXPECT_NE(endings[0].end.state, comm::sim::RankState::kHung) << endings[0].end.where;
    EXPECT_EQ(endings[1].end.state, comm::sim::RankState::kHung) << number;
  }
}

// One rank evaluates, after iteration 2 of 5. Observed with gloo by torch 1.13.1 and 2.6.0.
struct EvaluationRow {
  std::string title;
  EvaluationProgram evaluation;
  bool broadcast_buffers = true;
  BarrierPlace barrier = BarrierPlace::kNone;
  std::string rank0 = "finished";
  std::string rank1 = "finished";
};

std::vector<EvaluationRow> EvaluationTable() {
  using Then = EvaluationProgram::Then;
  const EvaluationProgram rank_0 = {.after_iteration = 2, .ranks = {0}};
  std::vector<EvaluationRow> rows;
  rows.push_back({"rank 0, then more training", rank_0});
  rows.push_back({"rank 1, then more training", rank_0});
  rows.back().evaluation.ranks = {1};
  rows.push_back({"rank 0 with gradients, then more training", rank_0});
  rows.back().evaluation.grad = true;
  rows.back().rank0 = "hung in evaluation";
  rows.back().rank1 = "hung in backward 3";
  rows.push_back({"rank 0, then a barrier", rank_0});
  rows.back().evaluation.then = Then::kBarrier;
  rows.back().rank0 = rows.back().rank1 = "hung in evaluation";
  rows.push_back({"rank 0 at the end, then a barrier", rank_0});
  rows.back().evaluation.then = Then::kEnd;
  rows.back().barrier = BarrierPlace::kAfterLoop;
  rows.back().rank0 = "hung in evaluation";
  rows.back().rank1 = "hung after_loop";
  rows.push_back({"the module, then a barrier", rank_0});
  rows.back().evaluation.then = Then::kBarrier;
  rows.back().evaluation.through = EvaluationProgram::Through::kModule;
  rows.push_back({"buffers are not broadcast, a barrier", rank_0});
  rows.back().evaluation.then = Then::kBarrier;
  rows.back().broadcast_buffers = false;
  return rows;
}

TEST(Evaluation, OnOneRankAsGlooDoes) {
  for (const EvaluationRow& row : EvaluationTable()) {
    TrainingProgram program;
    program.model = "bn_4_4_2";
    program.inputs = {{5}};
    program.evaluation = row.evaluation;
    program.broadcast_buffers = row.broadcast_buffers;
    program.barrier = row.barrier;
    const auto endings = Simulate(program, 2, comm::sim::SimRules::kGloo);
    EXPECT_EQ(Word(endings[0]), row.rank0) << row.title << ": " << endings[0].end.where;
    EXPECT_EQ(Word(endings[1]), row.rank1) << row.title << ": " << endings[1].end.where;
  }
}

}  // namespace
}  // namespace lockstep::ddp
