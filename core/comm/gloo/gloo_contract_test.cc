#include <string>

#include "core/comm/gloo/gloo_communicator.h"
#include "core/comm/local_meeting.h"
#include "core/comm/testing/comm_contract.h"

namespace lockstep::comm::gloo {
namespace {

WorldUnderTest WorldOf(int size) {
  return {"gloo" + std::to_string(size), [size](const RankBody& body) {
            LocalMeeting meeting;
            const auto connect = [&](int rank) {
              GlooOptions options;
              options.timeout_seconds = 30;
              return ConnectGloo(rank, size, meeting, "world", options, Deadline::AfterSeconds(30));
            };
            RunRanksAsThreads(size, connect, body);
          }};
}

INSTANTIATE_TEST_SUITE_P(Gloo, CommContract, testing::Values(WorldOf(2), WorldOf(3), WorldOf(4)),
                         [](const testing::TestParamInfo<WorldUnderTest>& world) {
                           return world.param.name;
                         });

}  // namespace
}  // namespace lockstep::comm::gloo
