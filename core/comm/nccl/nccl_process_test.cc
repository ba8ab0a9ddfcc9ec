// The communicator contract with a process a rank, on whatever LOCKSTEP_NCCL_LIBRARY works with: a
// GPU, or (a stand-in) the host. Started by nccl_process_test.sh with LOCKSTEP_TEST_MEETING.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "core/comm/comm_contract.h"
#include "core/comm/nccl/nccl_backend.h"
#include "core/comm/nccl/testing/staged_communicator.h"
#include "core/device/host/host_device.h"

namespace lockstep {
namespace {

// Processes meet in a folder: a file a key.
class FolderMeeting final : public Meeting {
 public:
  explicit FolderMeeting(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Status Put(const std::string& key, const std::string& value) override {
    const std::filesystem::path path = PathOf(key);
    std::ofstream(path.string() + ".part", std::ios::binary) << value;
    std::filesystem::rename(path.string() + ".part", path);
    return OkStatus();
  }
  Result<std::string> Get(const std::string& key, Deadline deadline) override {
    while (!std::filesystem::exists(PathOf(key))) {
      if (deadline.Passed()) return DeadlineExceeded("nobody put " + key);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    std::stringstream text;
    text << std::ifstream(PathOf(key), std::ios::binary).rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path PathOf(std::string key) const {
    for (char& letter : key) {
      if (letter == '/') letter = '_';
    }
    return folder_ / key;
  }
  std::filesystem::path folder_;
};

int Number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

// One of this process, shared by all tests.
NcclPlatform platform;
std::unique_ptr<Device> device;
std::unique_ptr<Meeting> meeting;
std::unique_ptr<Communicator> world;

INSTANTIATE_TEST_SUITE_P(Nccl, CommContract,
                         testing::Values(WorldUnderTest{
                             .name = "nccl",
                             .run = [](const RankBody& body) { body(*world); },
                             .may_break = false,
                             .device = [](Communicator&) -> Device& { return *device; }}));

Status Connect() {
  const int rank = Number("OMPI_COMM_WORLD_RANK");
  LOCKSTEP_ASSIGN_OR_RETURN(platform, OpenNccl(Number("OMPI_COMM_WORLD_LOCAL_RANK"),
                                               /*host_access=*/true));
  device = platform.device ? std::move(platform.device) : std::make_unique<HostDevice>();
  meeting = std::make_unique<FolderMeeting>(std::getenv("LOCKSTEP_TEST_MEETING"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto connected, ConnectNccl(rank, Number("OMPI_COMM_WORLD_SIZE"), *meeting, "world", *device,
                                  NcclOptionsFromEnvironment(), Deadline::AfterSeconds(60)));
  world = std::make_unique<StagedCommunicator>(std::move(connected), *device);
  return OkStatus();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const lockstep::Status status = lockstep::Connect();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return static_cast<int>(lockstep::ExitCodeOf(status.code()));
  }
  const int failed = RUN_ALL_TESTS();
  lockstep::world.reset();
  return failed;
}
