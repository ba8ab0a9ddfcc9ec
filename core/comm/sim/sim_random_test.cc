// Random programs in simulation. What all ranks call alike gives right data in every order of ranks
// and streams. An all-reduce that one rank leaves out is never overlooked.
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/random.h"
#include "core/collective/collective.h"
#include "core/comm/communicator.h"
#include "core/comm/sim/sim_world.h"
#include "core/comm/testing/contract_data.h"
#include "core/device/device.h"
#include "gtest/gtest.h"

namespace lockstep::comm::sim {
namespace {

constexpr std::uint64_t kSeed = 20240607;
#if defined(__SANITIZE_THREAD__)  // slow at changes of stack
constexpr int kPrograms = 10;
#else
constexpr int kPrograms = 300;
#endif

struct RandomProgram {
  SimOptions options;
  std::vector<collective::Operation> operations;
  std::int64_t awaits_each = 1;  // operations between two Awaits
  int skipper = -1;              // leaves out operation number `skipped`
  std::size_t skipped = 0;
};

RandomProgram DrawProgram(std::uint64_t seed) {
  Random random(seed);
  RandomProgram program;
  program.options.ranks = 2 + static_cast<int>(random.Below(4));
  program.options.rules = static_cast<SimRules>(random.Below(3));
  program.options.seed = random.Next();
  program.options.network.jitter = 2 * random.Uniform();
  program.awaits_each = 1 + static_cast<std::int64_t>(random.Below(6));
  const std::int64_t counts[] = {1, 7, 33, 600, 5000};
  const auto all = ContractOperations(program.options.ranks, 1, collective::Blocking::kBlocking);
  while (program.operations.size() < 12) {
    collective::Operation operation = all[random.Below(all.size())];
    if (operation.collective != collective::Collective::kBarrier)
      operation.count = counts[random.Below(5)];
    if (random.Below(2) == 0) operation.blocking = collective::Blocking::kNonblocking;
    if (!SimCapabilities(program.options.rules).supports(operation).ok()) continue;
    program.operations.push_back(operation);
  }
  collective::Operation last = {.collective = collective::Collective::kAllReduce, .count = 3};
  program.operations.push_back(last);
  return program;
}

Status RunOn(RankContext& context, const RandomProgram& program, std::vector<std::string>& wrong) {
  const auto communicator = context.Connect();
  std::vector<std::unique_ptr<ContractCall>> calls;
  const auto stream = program.options.seed % 2 == 0 ? context.device().NewStream()
                                                    : context.device().NewInlineStream();
  Random random(program.options.seed + static_cast<std::uint64_t>(context.rank()));
  std::int64_t since_await = 0;
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    if (context.rank() == program.skipper && i == program.skipped) continue;
    context.Compute(static_cast<std::int64_t>(random.Below(3000)));
    calls.push_back(std::make_unique<ContractCall>(program.operations[i], context.size(),
                                                   context.rank(), Placement::kOutOfPlace, i));
    LOCKSTEP_RETURN_IF_ERROR(
        communicator->Enqueue(program.operations[i], calls.back()->buffers(), *stream));
    if (++since_await < program.awaits_each) continue;
    since_await = 0;
    LOCKSTEP_RETURN_IF_ERROR(communicator->Await(*stream, Deadline::AfterSeconds(10'000)));
  }
  LOCKSTEP_RETURN_IF_ERROR(communicator->Await(*stream, Deadline::AfterSeconds(10'000)));
  for (const auto& call : calls) {
    if (std::string why = call->Wrong(); !why.empty()) wrong.push_back(std::move(why));
  }
  return OkStatus();
}

struct RandomEnd {
  SimReport report;
  std::vector<std::string> wrong;
  bool healthy() const {
    for (const RankEnd& end : report.ranks) {
      if (end.state != RankState::kFinished) return false;
    }
    return wrong.empty();
  }
};

RandomEnd EndOf(const RandomProgram& program) {
  RandomEnd end;
  SimWorld world(program.options);
  end.report = world.Run([&](RankContext& context) -> Status {
    const Status status = RunOn(context, program, end.wrong);
    if (status.ok()) context.Linger();
    return status;
  });
  return end;
}

TEST(SimRandomTest, EqualProgramsAreRightAndASkippedAllReduceIsNot) {
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  for (int trial = 0; trial < kPrograms; ++trial) {
    const std::uint64_t seed = random.Next();
    RandomProgram program = DrawProgram(seed);
    const RandomEnd whole = EndOf(program);
    ASSERT_TRUE(whole.healthy()) << "seed " << seed << ": "
                                 << (whole.wrong.empty() ? "" : whole.wrong.front())
                                 << whole.report.ranks[0].message << whole.report.ranks[0].where;
    std::vector<std::size_t> reductions;
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      if (program.operations[i].collective == collective::Collective::kAllReduce)
        reductions.push_back(i);
    }
    program.skipper =
        static_cast<int>(random.Below(static_cast<std::uint64_t>(program.options.ranks)));
    program.skipped = reductions[random.Below(reductions.size())];
    const RandomEnd skipped = EndOf(program);
    ASSERT_FALSE(skipped.healthy()) << "seed " << seed;
    const RandomEnd again = EndOf(program);
    ASSERT_EQ(skipped.report.end_ns, again.report.end_ns) << "seed " << seed;
    ASSERT_EQ(skipped.wrong, again.wrong) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lockstep::comm::sim
