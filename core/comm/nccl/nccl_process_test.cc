// The communicator contract with a process a rank, on whatever LOCKSTEP_NCCL_LIBRARY works with: a
// GPU, or (a stand-in) the host. Started by nccl_process_test.sh with LOCKSTEP_TEST_MEETING.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "core/comm/folder_meeting.h"
#include "core/comm/nccl/nccl_backend.h"
#include "core/comm/nccl/testing/staged_communicator.h"
#include "core/comm/testing/comm_contract.h"
#include "core/device/host/host_device.h"

namespace lockstep::comm::nccl {
namespace {

int Number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

// One of this process, shared by all tests.
NcclPlatform platform;
std::unique_ptr<device::Device> device;
std::unique_ptr<Meeting> meeting;
std::unique_ptr<Communicator> world;

INSTANTIATE_TEST_SUITE_P(Nccl, CommContract,
                         testing::Values(WorldUnderTest{
                             .name = "nccl",
                             .run = [](const RankBody& body) { body(*world); },
                             .may_break = false,
                             .device = [](Communicator&) -> device::Device& { return *device; }}));

Status Connect() {
  const int rank = Number("OMPI_COMM_WORLD_RANK");
  LOCKSTEP_ASSIGN_OR_RETURN(platform, OpenNccl(Number("OMPI_COMM_WORLD_LOCAL_RANK"),
                                               /*host_access=*/true));
  device =
      platform.device ? std::move(platform.device) : std::make_unique<device::host::HostDevice>();
  meeting = std::make_unique<FolderMeeting>(std::getenv("LOCKSTEP_TEST_MEETING"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto connected, ConnectNccl(rank, Number("OMPI_COMM_WORLD_SIZE"), *meeting, "world", *device,
                                  NcclOptionsFromEnvironment(), Deadline::AfterSeconds(60)));
  world = std::make_unique<StagedCommunicator>(std::move(connected), *device);
  return OkStatus();
}

}  // namespace
}  // namespace lockstep::comm::nccl

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const lockstep::Status status = lockstep::comm::nccl::Connect();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return static_cast<int>(lockstep::ExitCodeOf(status.code()));
  }
  const int failed = RUN_ALL_TESTS();
  lockstep::comm::nccl::world.reset();
  return failed;
}
