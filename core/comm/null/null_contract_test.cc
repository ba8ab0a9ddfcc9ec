#include <string>

#include "core/comm/local_meeting.h"
#include "core/comm/null/null_communicator.h"
#include "core/comm/testing/comm_contract.h"

namespace lockstep::comm::null {
namespace {

WorldUnderTest WorldOf(int size) {
  return {"null" + std::to_string(size), [size](const RankBody& body) {
            LocalMeeting meeting;
            const auto connect = [&](int rank) { return ConnectNull(rank, size, &meeting); };
            RunRanksAsThreads(size, connect, body);
          }};
}

INSTANTIATE_TEST_SUITE_P(Null, CommContract, testing::Values(WorldOf(2), WorldOf(3), WorldOf(4)),
                         [](const testing::TestParamInfo<WorldUnderTest>& world) {
                           return world.param.name;
                         });

}  // namespace
}  // namespace lockstep::comm::null
