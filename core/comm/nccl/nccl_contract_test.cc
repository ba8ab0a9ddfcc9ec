#include <string>

#include "core/comm/local_meeting.h"
#include "core/comm/nccl/nccl_communicator.h"
#include "core/comm/testing/comm_contract.h"
#include "core/device/host/host_device.h"

namespace lockstep::comm::nccl {
namespace {

std::string FakeLibrary(const std::string& version) {
  return "core/comm/nccl/testing/libfake_nccl_" + version + ".so";
}

// The contract over a stand-in library, on the host: what is tested is the adapter.
WorldUnderTest WorldOf(int size, const std::string& version, bool registers) {
  return {"fake" + version + "x" + std::to_string(size) + (registers ? "registered" : ""),
          [size, version, registers](const RankBody& body) {
            LocalMeeting meeting;
            device::host::HostDevice device;
            NcclOptions options;
            options.library = FakeLibrary(version);
            options.operation_seconds = 30;
            options.register_buffers = registers;
            RunRanksAsThreads(
                size,
                [&](int rank) -> Result<std::unique_ptr<Communicator>> {
                  LOCKSTEP_ASSIGN_OR_RETURN(
                      auto world, ConnectNccl(rank, size, meeting, "world", device, options,
                                              Deadline::AfterSeconds(30)));
                  return std::unique_ptr<Communicator>(std::move(world));
                },
                body);
          }};
}

INSTANTIATE_TEST_SUITE_P(Nccl, CommContract,
                         testing::Values(WorldOf(2, "21403", false), WorldOf(3, "22809", true),
                                         WorldOf(4, "23102", false)),
                         [](const testing::TestParamInfo<WorldUnderTest>& world) {
                           return world.param.name;
                         });

}  // namespace
}  // namespace lockstep::comm::nccl
