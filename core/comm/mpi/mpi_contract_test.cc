// The communicator contract in every process of an MPI launch.
//   mpi_contract_test [one|caller|divided|late]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "core/comm/mpi/mpi_communicator.h"
#include "core/comm/testing/comm_contract.h"

namespace lockstep::comm::mpi {
namespace {

// MPI lives once in a process, so all tests share one communicator.
std::unique_ptr<Communicator> world;

INSTANTIATE_TEST_SUITE_P(Mpi, CommContract,
                         testing::Values(WorldUnderTest{
                             "mpi", [](const RankBody& body) { body(*world); },
                             /*fifo_streams=*/true, /*may_break=*/false}));

// Connected for the calling thread only.
class CallerOnly : public CommContract {};
INSTANTIATE_TEST_SUITE_P(Mpi, CallerOnly,
                         testing::Values(WorldUnderTest{
                             "mpi", [](const RankBody& body) { body(*world); },
                             /*fifo_streams=*/false, /*may_break=*/false}));

TEST_P(CallerOnly, RefusesStreamsBesideTheCaller) {
  const auto stream = device::host::HostDevice().NewStream();
  collective::Operation operation;
  operation.collective = collective::Collective::kBarrier;
  EXPECT_EQ(world->Enqueue(operation, {}, *stream).code(), StatusCode::kUnsupported);
}

TEST_P(CallerOnly, ResultsAreThoseOfTheReference) {
  for (const collective::Blocking blocking :
       {collective::Blocking::kBlocking, collective::Blocking::kNonblocking}) {
    for (const auto& stream : Streams(*world)) CheckAll(*world, *stream, 7, blocking);
  }
}

TEST_P(CallerOnly, ABlockingOperationFollowsThePostedOnes) {
  const auto stream = device::host::HostDevice().NewInlineStream();
  std::int64_t value = world->rank() + 1;
  collective::Operation operation;
  operation.type = collective::DataType::kI64;
  operation.count = 1;
  operation.blocking = collective::Blocking::kNonblocking;
  ASSERT_TRUE(world->Enqueue(operation, {&value, &value}, *stream).ok());
  operation.blocking = collective::Blocking::kBlocking;
  ASSERT_TRUE(world->Enqueue(operation, {&value, &value}, *stream).ok());
  ASSERT_TRUE(world->Await(*stream, Soon()).ok());
  const std::int64_t size = world->size();
  EXPECT_EQ(value, size * size * (size + 1) / 2);
}

// A file that says of a rank how far it is.
std::string MarkerOf(const char* what, int rank) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  return std::string(folder != nullptr ? folder : "/tmp") + "/" + what + "-" + std::to_string(rank);
}

void WriteMarker(const char* what, const char* text) {
  const std::string path = MarkerOf(what, world->rank()), part = path + ".part";
  if (std::FILE* file = std::fopen(part.c_str(), "w")) {
    std::fputs(text, file);
    std::fclose(file);
    std::rename(part.c_str(), path.c_str());  // whoever sees it sees it whole
  }
}

void AwaitMarkers(const char* what, int first_rank) {
  const Deadline limit = Deadline::AfterSeconds(60);
  for (int rank = first_rank; rank < world->size(); ++rank) {
    while (access(MarkerOf(what, rank).c_str(), F_OK) != 0 && !limit.Passed()) usleep(10'000);
  }
}

// Run alone: rank 0 comes when the others have given up, and they may not finalize afterwards.
class Late : public CommContract {};
INSTANTIATE_TEST_SUITE_P(Mpi, Late,
                         testing::Values(WorldUnderTest{
                             "mpi", [](const RankBody& body) { body(*world); },
                             /*fifo_streams=*/true, /*may_break=*/true}));

TEST_P(Late, AwaitEndsAtItsDeadline) {
  const auto stream = device::host::HostDevice().NewInlineStream();
  collective::Operation operation;
  operation.collective = collective::Collective::kBarrier;
  operation.blocking = collective::Blocking::kNonblocking;
  if (world->rank() == 0) {
    AwaitMarkers("given-up", 1);
    ASSERT_TRUE(world->Enqueue(operation, {}, *stream).ok());
    return;
  }
  ASSERT_TRUE(world->Enqueue(operation, {}, *stream).ok());
  const Status status = world->Await(*stream, Deadline::AfterSeconds(0.2));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.message();
  EXPECT_FALSE(stream->status().ok());
  WriteMarker("given-up", "");
}

bool Connect(std::string_view mode) {
  MpiOptions options;
  options.threads = mode == "one" ? MpiThreads::kOneAtATime : MpiThreads::kCaller;
  if (mode == "divided") options.most_elements_per_call = 3;  // every operation in several calls
  auto connected = ConnectMpi(options);
  if (!connected.ok()) {
    std::fprintf(stderr, "%s\n", connected.status().message().c_str());
    return false;
  }
  world = std::move(connected).value();
  return true;
}

std::string FilterOf(std::string_view mode) {
  if (mode == "one") return "*CommContract*";
  return mode == "late" ? "*Late.AwaitEnds*" : "*CallerOnly.Re*:*CallerOnly.AB*";
}

// The marker is the result: mpirun calls leaving without MPI_Finalize a failure, and ends all ranks
// when the first leaves, so they leave together.
[[noreturn]] void LeaveWithoutFinalize(int failed) {
  WriteMarker("late", failed == 0 ? "passed" : "failed");
  AwaitMarkers("late", 0);
  _exit(failed);
}

}  // namespace
}  // namespace lockstep::comm::mpi

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string mode = argc > 1 ? argv[1] : "one";
  testing::GTEST_FLAG(filter) = lockstep::comm::mpi::FilterOf(mode);
  if (!lockstep::comm::mpi::Connect(mode)) return 4;
  const int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) return 5;
  if (mode == "late") lockstep::comm::mpi::LeaveWithoutFinalize(failed);
  lockstep::comm::mpi::world.reset();  // finalizes
  // A second life is refused, not attempted.
  if (lockstep::comm::mpi::ConnectMpi().status().code() != lockstep::StatusCode::kUnsupported)
    return 6;
  return failed;
}
