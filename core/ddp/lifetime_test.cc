// Memory that a rank's collectives still read or write is not given back, however the rank ends.
// The n-th request for memory is refused, for every n, by an error and by an exception.
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/comm/sim/sim_kernels.h"
#include "core/comm/sim/sim_world.h"
#include "core/ddp/small_models.h"
#include "core/ddp/training.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {
namespace {

constexpr std::byte kGivenBack{0xee};

// Buffers that were given back, which nobody may write any more.
class Graveyard {
 public:
  void Bury(std::unique_ptr<device::Buffer> buffer) {
    std::memset(buffer->data(), static_cast<int>(kGivenBack), Bytes(*buffer));
    buried_.push_back(std::move(buffer));
  }
  int Disturbed() const {
    int disturbed = 0;
    for (const auto& buffer : buried_) {
      const auto* const bytes = static_cast<const std::byte*>(buffer->data());
      for (std::size_t i = 0; i < Bytes(*buffer); ++i) disturbed += bytes[i] != kGivenBack ? 1 : 0;
    }
    return disturbed;
  }

 private:
  static std::size_t Bytes(const device::Buffer& buffer) {
    return static_cast<std::size_t>(buffer.bytes());
  }
  std::vector<std::unique_ptr<device::Buffer>> buried_;
};

class BuriedBuffer final : public device::Buffer {
 public:
  BuriedBuffer(std::unique_ptr<device::Buffer> inner, Graveyard& graveyard)
      : inner_(std::move(inner)), graveyard_(graveyard) {}
  ~BuriedBuffer() override { graveyard_.Bury(std::move(inner_)); }
  void* data() override { return inner_->data(); }
  std::int64_t bytes() const override { return inner_->bytes(); }

 private:
  std::unique_ptr<device::Buffer> inner_;
  Graveyard& graveyard_;
};

// Has memory for so many buffers and no more.
class SmallDevice final : public device::Device {
 public:
  SmallDevice(device::Device& inner, Graveyard& graveyard, int buffers, bool throws)
      : inner_(inner), graveyard_(graveyard), left_(buffers), throws_(throws) {}
  std::string_view name() const override { return "small"; }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t bytes) override {
    if (left_-- == 0) {
      if (throws_) throw std::bad_alloc();
      return EnvironmentError("no memory is left");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(auto buffer, inner_.Allocate(bytes));
    return std::unique_ptr<device::Buffer>(
        std::make_unique<BuriedBuffer>(std::move(buffer), graveyard_));
  }
  std::unique_ptr<device::Event> NewEvent() override { return inner_.NewEvent(); }
  std::unique_ptr<device::Stream> NewStream() override { return inner_.NewStream(); }
  std::unique_ptr<device::Stream> NewInlineStream() override { return inner_.NewInlineStream(); }
  bool was_enough() const { return left_ >= 0; }

 private:
  device::Device& inner_;
  Graveyard& graveyard_;
  int left_;
  bool throws_;
};

class SimSurroundings final : public TrainingSurroundings {
 public:
  explicit SimSurroundings(comm::sim::RankContext& context) : context_(context) {}
  Status Sleep(std::int64_t ns) override { return context_.Sleep(ns), OkStatus(); }

 private:
  comm::sim::RankContext& context_;
};

struct Case {
  comm::sim::SimRules rules = comm::sim::SimRules::kGloo;
  int rank = 0;  // whose memory is short
  int buffers = 0;
  bool throws = false;
};

// Whether the memory was enough.
bool RunWith(const Case& tried) {
  TrainingProgram program;
  program.model = "bn_4_4_2";
  program.inputs = {{3}};
  program.extra_inputs_per_rank = 1;
  program.join = true;
  program.find_unused_parameters = true;
  Graveyard graveyard;
  bool enough = true;
  const comm::sim::SimReport report =
      comm::sim::SimWorld({.ranks = 2, .rules = tried.rules})
          .Run([&](comm::sim::RankContext& context) -> Status {
            const bool is_short = context.rank() == tried.rank;
            SmallDevice device(context.device(), graveyard, is_short ? tried.buffers : 1 << 20,
                               tried.throws);
            const auto communicator = context.Connect();
            comm::sim::SimKernels kernels(context);
            SimSurroundings surroundings(context);
            LOCKSTEP_ASSIGN_OR_RETURN(const auto module,
                                      MakeSmallModel(program.model, {}, kernels));
            TrainingOutcome outcome;  // outlives the streams
            const auto compute = device.NewInlineStream();
            const auto communication = device.NewStream();
            outcome = RunTraining(program, *module,
                                  {*communicator, device, kernels, *compute, *communication},
                                  surroundings);
            if (is_short) enough = device.was_enough();
            return outcome.status;
          });
  const comm::sim::RankState state = report.ranks[static_cast<std::size_t>(tried.rank)].state;
  if (state == comm::sim::RankState::kFailed) enough = false;
  EXPECT_EQ(graveyard.Disturbed(), 0)
      << comm::sim::NameOf(tried.rules) << ", rank " << tried.rank << " with " << tried.buffers
      << " buffers and " << (tried.throws ? "exceptions" : "errors");
  return enough;
}

TEST(Lifetime, NothingIsWrittenToMemoryThatWasGivenBack) {
  for (const comm::sim::SimRules rules :
       {comm::sim::SimRules::kGloo, comm::sim::SimRules::kMpi, comm::sim::SimRules::kNccl}) {
    for (const int rank : {0, 1}) {
      for (const bool throws : {false, true}) {
        int buffers = 0;
        while (!RunWith({rules, rank, buffers, throws})) ASSERT_LT(++buffers, 1000);
        EXPECT_GT(buffers, 5);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::ddp
