// The communicator contract on the simulation, under each set of rules.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/sim/sim_world.h"
#include "core/comm/testing/comm_contract.h"

namespace lockstep::comm::sim {
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
  world.device = [contexts](Communicator& of) -> device::Device& {
    return contexts->at(&of)->device();
  };
  world.sleep = [contexts](Communicator& of, double seconds) {
    contexts->at(&of)->Sleep(static_cast<std::int64_t>(seconds * 1e9));
  };
  return world;
}

std::vector<WorldUnderTest> Worlds() {
  std::vector<WorldUnderTest> worlds = {WorldOf(SimRules::kNccl, 2), WorldOf(SimRules::kMpi, 2),
                                        WorldOf(SimRules::kGloo, 2)};
#if !defined(__SANITIZE_THREAD__)  // makes a change of stack a thousand times as slow
  worlds.push_back(WorldOf(SimRules::kNccl, 5));
  worlds.push_back(WorldOf(SimRules::kMpi, 4));
  worlds.push_back(WorldOf(SimRules::kGloo, 3));
#endif
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(Sim, CommContract, testing::ValuesIn(Worlds()),
                         [](const testing::TestParamInfo<WorldUnderTest>& world) {
                           return world.param.name;
                         });

}  // namespace
}  // namespace lockstep::comm::sim
