// The communicator contract on the simulation, under each set of rules.
#include <map>
#include <memory>
#include <string>

#include "core/comm/comm_contract.h"
#include "core/comm/sim/sim_world.h"

namespace lockstep {
namespace {

WorldUnderTest WorldOf(SimRules rules, int size) {
  const auto contexts = std::make_shared<std::map<const Communicator*, RankContext*>>();
  WorldUnderTest world;
  world.name = std::string(NameOf(rules)) + std::to_string(size);
  world.run = [rules, size, contexts](const RankBody& body) {
    SimWorld sim({.ranks = size, .rules = rules, .seed = 3});
    const SimReport report = sim.Run([&](RankContext& context) -> Status {
      const auto communicator = context.Connect();
      (*contexts)[communicator.get()] = &context;
      body(*communicator);
      context.Linger();  // as workers leave together
      return OkStatus();
    });
    for (const RankEnd& end : report.ranks) {
      EXPECT_EQ(NameOf(end.state), "finished") << end.message << " " << end.where;
    }
  };
  world.may_break = SimCapabilities(rules).can_abort;
  world.device = [contexts](Communicator& of) -> Device& { return contexts->at(&of)->device(); };
  world.sleep = [contexts](Communicator& of, double seconds) {
    contexts->at(&of)->Sleep(static_cast<std::int64_t>(seconds * 1e9));
  };
  return world;
}

INSTANTIATE_TEST_SUITE_P(Sim, CommContract,
                         testing::Values(WorldOf(SimRules::kNccl, 2), WorldOf(SimRules::kNccl, 5),
                                         WorldOf(SimRules::kMpi, 2), WorldOf(SimRules::kMpi, 4),
                                         WorldOf(SimRules::kGloo, 2), WorldOf(SimRules::kGloo, 3)),
                         [](const testing::TestParamInfo<WorldUnderTest>& world) {
                           return world.param.name;
                         });

}  // namespace
}  // namespace lockstep
