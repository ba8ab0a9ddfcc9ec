// The six uneven-input cases and rank-0-only evaluation, as the collectives that PyTorch's
// DistributedDataParallel issues for Linear(1,1). There is one bucket of 2 elements, and each
// input's gradient is 1. The outcomes were observed with PyTorch 1.13.1 and 2.6 on gloo and MPI.
// Those under NCCL's rules come from an emulation whose barrier is an all-reduce.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/communicator.h"
#include "core/comm/sim/rules.h"
#include "core/comm/sim/sim_world.h"
#include "core/device/device.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace lockstep::comm::sim {
namespace {

enum class Barrier { kNone, kInLoop, kAfterLoop };
struct Program {
  bool join = false;
  Barrier barrier = Barrier::kNone;
};
constexpr std::array<Program, 6> kCases = {{{true, Barrier::kNone},
                                            {false, Barrier::kNone},
                                            {false, Barrier::kInLoop},
                                            {true, Barrier::kInLoop},
                                            {false, Barrier::kAfterLoop},
                                            {true, Barrier::kAfterLoop}}};

constexpr collective::Operation AllReduceOf(
    collective::DataType type, std::int64_t count,
    collective::Reduction reduction = collective::Reduction::kSum) {
  return {.collective = collective::Collective::kAllReduce,
          .type = type,
          .reduction = reduction,
          .count = count};
}

// One rank of DDP, of which only the communication is real.
class Trainer {
 public:
  explicit Trainer(RankContext& context)
      : context_(context),
        communicator_(context.Connect()),
        stream_(context.device().NewStream()) {}

  Status Train(const Program& program) {
    const int inputs = 5 + context_.rank();
    for (int i = 0; i < inputs; ++i) {
      if (program.join) LOCKSTEP_RETURN_IF_ERROR(Post(Float(1)));
      if (i == 1) LOCKSTEP_RETURN_IF_ERROR(Rebuild());
      if (program.join) LOCKSTEP_RETURN_IF_ERROR(Post(Float(1)));
      gradient_ += 1;
      LOCKSTEP_RETURN_IF_ERROR(ReduceBucket({gradient_, gradient_}));
      gradient_ = bucket_[0];
      if (program.barrier == Barrier::kInLoop) LOCKSTEP_RETURN_IF_ERROR(CallBarrier());
    }
    if (program.join) LOCKSTEP_RETURN_IF_ERROR(Shadow());
    return program.barrier == Barrier::kAfterLoop ? CallBarrier() : OkStatus();
  }
  float gradient() const { return gradient_; }

 private:
  // A value of its own for an operation that is not waited for here.
  float* Float(float value) {
    floats_.push_back(std::make_unique<float>(value));
    return floats_.back().get();
  }
  Status Post(float* value) {
    return Put(AllReduceOf(collective::DataType::kF32, 1), {value, value});
  }
  Status Put(const collective::Operation& operation, const collective::Buffers& buffers) {
    return communicator_->Enqueue(operation, buffers, *stream_);
  }
  Status Wait() { return communicator_->Await(*stream_, Deadline::AfterSeconds(86'400)); }
  Status Do(const collective::Operation& operation, void* data) {
    LOCKSTEP_RETURN_IF_ERROR(Put(operation, {data, data}));
    return Wait();
  }
  Status CallBarrier() {
    LOCKSTEP_RETURN_IF_ERROR(Put({.collective = collective::Collective::kBarrier}, {}));
    return Wait();
  }
  Status Rebuild() {
    std::array<std::int32_t, 3> indices{};
    for (const std::int64_t count : {3, 1}) {
      LOCKSTEP_RETURN_IF_ERROR(Do({.collective = collective::Collective::kBroadcast,
                                   .type = collective::DataType::kI32,
                                   .count = count},
                                  indices.data()));
    }
    return OkStatus();
  }
  Status ReduceBucket(std::array<float, 2> gradients) {
    const auto ranks = static_cast<float>(context_.size());
    bucket_ = {gradients[0] / ranks, gradients[1] / ranks};
    return Do(AllReduceOf(collective::DataType::kF32, 2), bucket_.data());
  }

  // Join's exit: shadows the others until all have joined; then the last one's model goes to all.
  Status Shadow() {
    bool last = true;
    for (int i = 0; i < 100; ++i) {
      float active = 0;
      LOCKSTEP_RETURN_IF_ERROR(Do(AllReduceOf(collective::DataType::kF32, 1), &active));
      if (active == 0) break;
      last = false;
      float should_sync = 0;
      LOCKSTEP_RETURN_IF_ERROR(Do(AllReduceOf(collective::DataType::kF32, 1), &should_sync));
      LOCKSTEP_RETURN_IF_ERROR(ReduceBucket({0, 0}));
    }
    std::int64_t authority = last ? context_.rank() : -1;
    LOCKSTEP_RETURN_IF_ERROR(
        Do(AllReduceOf(collective::DataType::kI64, 1, collective::Reduction::kMax), &authority));
    if (authority < 0) return OkStatus();  // the emulation has no check here
    std::array<float, 2> model{};
    return Do({.collective = collective::Collective::kBroadcast,
               .count = 2,
               .root = static_cast<int>(authority)},
              model.data());
  }

  RankContext& context_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<float>> floats_;
  std::array<float, 2> bucket_{};
  float gradient_ = 0;
  std::unique_ptr<device::Stream> stream_;  // goes first
};

// "finished 5", "hung barrier", "failed Connection closed by peer (rank 0)", …
std::string EndsOfCase(int number, SimRules rules, int ranks, std::uint64_t seed = 1) {
  std::vector<float> gradients(static_cast<std::size_t>(ranks));
  SimWorld world({.ranks = ranks, .rules = rules, .seed = seed});
  const SimReport report = world.Run([&](RankContext& context) {
    Trainer trainer(context);
    const Status status = trainer.Train(kCases[static_cast<std::size_t>(number - 1)]);
    gradients[static_cast<std::size_t>(context.rank())] = trainer.gradient();
    return status;
  });
  std::string all;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const RankEnd& end = report.ranks[rank];
    all += (rank > 0 ? " | " : "") + std::string(NameOf(end.state)) + " ";
    if (end.state == RankState::kFinished) all += fmt::format("{}", gradients[rank]);
    if (end.state == RankState::kFailed) all += end.message.substr(end.message.rfind(": ") + 2);
    if (end.state == RankState::kHung) all += end.where;
  }
  return all;
}

TEST(UnevenInputsTest, AsOnGloo) {
  const char* const closed = "finished 5 | failed Connection closed by peer (rank 0)";
  EXPECT_EQ(EndsOfCase(1, SimRules::kGloo, 2), "finished 5 | finished 3");
  EXPECT_EQ(EndsOfCase(2, SimRules::kGloo, 2), closed);
  EXPECT_EQ(EndsOfCase(3, SimRules::kGloo, 2), closed);
  EXPECT_EQ(EndsOfCase(4, SimRules::kGloo, 2), "hung all_reduce f32 x 1 sum | hung barrier");
  EXPECT_EQ(EndsOfCase(5, SimRules::kGloo, 2), "hung barrier | hung all_reduce f32 x 2 sum");
  EXPECT_EQ(EndsOfCase(6, SimRules::kGloo, 2), "finished 5 | finished 3");
}

TEST(UnevenInputsTest, AsOnMpi) {
  EXPECT_EQ(EndsOfCase(1, SimRules::kMpi, 2), "finished 5 | finished 3");
  EXPECT_EQ(EndsOfCase(2, SimRules::kMpi, 2), "finished 5 | hung all_reduce f32 x 2 sum");
  EXPECT_EQ(EndsOfCase(3, SimRules::kMpi, 2), "finished 5 | hung all_reduce f32 x 2 sum");
  EXPECT_EQ(EndsOfCase(4, SimRules::kMpi, 2), "hung all_reduce f32 x 1 sum | hung barrier");
  EXPECT_EQ(EndsOfCase(5, SimRules::kMpi, 2), "hung barrier | hung all_reduce f32 x 2 sum");
  EXPECT_EQ(EndsOfCase(6, SimRules::kMpi, 2), "finished 5 | finished 3");
}

// Case 4: rank 0 takes the barrier's zero for "all have joined" and ends; case 5: rank 0 ends as if
// all were well, rank 1's gradient is garbage, and its own barrier waits for ever.
TEST(UnevenInputsTest, WhereABarrierIsAnAllReduce) {
  EXPECT_EQ(EndsOfCase(1, SimRules::kNccl, 2), "finished 5 | finished 3");
  EXPECT_EQ(EndsOfCase(2, SimRules::kNccl, 2), "finished 5 | hung all_reduce f32 x 2 sum");
  EXPECT_EQ(EndsOfCase(3, SimRules::kNccl, 2), "finished 5 | hung all_reduce f32 x 2 sum");
  EXPECT_EQ(EndsOfCase(4, SimRules::kNccl, 2), "finished 5 | hung all_reduce f32 x 1 sum");
  EXPECT_EQ(EndsOfCase(5, SimRules::kNccl, 2), "finished 5 | hung barrier");
  EXPECT_EQ(EndsOfCase(6, SimRules::kNccl, 2), "finished 5 | finished 3");
}

TEST(UnevenInputsTest, TheOrderInWhichRanksRunDoesNotMatter) {
  for (int number = 1; number <= 6; ++number) {
    for (const SimRules rules : {SimRules::kNccl, SimRules::kMpi, SimRules::kGloo}) {
      const std::string first = EndsOfCase(number, rules, 2, 1);
      for (std::uint64_t seed = 2; seed < 20; ++seed) {
        EXPECT_EQ(EndsOfCase(number, rules, 2, seed), first) << "seed " << seed;
      }
    }
  }
}

TEST(UnevenInputsTest, MoreRanks) {
  for (const SimRules rules : {SimRules::kNccl, SimRules::kMpi, SimRules::kGloo}) {
    for (const int number : {1, 6}) {
      EXPECT_EQ(EndsOfCase(number, rules, 3).find("hung"), std::string::npos);
      EXPECT_EQ(EndsOfCase(number, rules, 4).rfind("finished 5 | finished", 0), 0u);
    }
    EXPECT_NE(EndsOfCase(4, rules, 3).find("hung"), std::string::npos);
    EXPECT_NE(EndsOfCase(5, rules, 4).find("hung"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::comm::sim
