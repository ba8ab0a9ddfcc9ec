// What it costs that a GPU marks what it begins and ends: the same all-reduce with and without its
// marks, called one by one and replayed as a graph, in pairs within one process a rank.
//
//   marks_cost [SECONDS]          of a size (5); a process a rank, as the launcher says
//
// The library is LOCKSTEP_NCCL_LIBRARY's; with more than one rank they meet in the folder
// LOCKSTEP_TEST_MEETING. Rank 0 prints a line a size: what a call takes with and without them, and
// what they add. Exit codes: 0; 1 the library failed; 2 usage; 4 no library or no GPU.
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bench/marks/mark_sides.h"
#include "bench/marks/paired_cost.h"
#include "core/base/program.h"
#include "core/base/status.h"
#include "core/base/units.h"
#include "core/comm/folder_meeting.h"
#include "core/comm/local_meeting.h"
#include "core/comm/nccl/nccl_backend.h"
#include "core/comm/nccl/nccl_communicator.h"
#include "core/stats/stats.h"
#include "fmt/format.h"

namespace lockstep::bench::marks {
namespace {

constexpr double kConnectSeconds = 60;
constexpr double kBatchSeconds = 0.005;
constexpr double kAllConfidence = 0.95;  // all sizes together
constexpr std::int64_t kSizes[] = {8, 1 << 20, 16 << 20, 64 << 20};
constexpr int kCallsInGraph[] = {0, 8};
constexpr double kConfidence =
    1 - (1 - kAllConfidence) / static_cast<double>(std::size(kSizes) * std::size(kCallsInGraph));

int NumberOf(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

struct Setup {
  int rank = NumberOf("OMPI_COMM_WORLD_RANK", 0);
  int size = NumberOf("OMPI_COMM_WORLD_SIZE", 1);
  double seconds = 5;
  std::unique_ptr<comm::Meeting> meeting;
  std::span<std::byte> marks;  // before the device, which it outlives
  comm::nccl::NcclPlatform platform;
  std::unique_ptr<device::Stream> stream;
  std::unique_ptr<comm::nccl::NcclCommunicator> communicator;
  std::unique_ptr<MarkSides> sides;
};

Status Connect(Setup& setup) {
  const char* const folder = std::getenv("LOCKSTEP_TEST_MEETING");
  if (setup.size > 1 && folder == nullptr) {
    return InvalidInput(
        "LOCKSTEP_TEST_MEETING is not set; name an empty folder that all ranks see");
  }
  if (folder != nullptr) {
    setup.meeting = std::make_unique<comm::FolderMeeting>(folder);
  } else {
    setup.meeting = std::make_unique<comm::LocalMeeting>();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(setup.platform,
                            comm::nccl::OpenNccl(NumberOf("OMPI_COMM_WORLD_LOCAL_RANK", 0),
                                                 /*host_access=*/false));
  if (setup.platform.device == nullptr) {
    return EnvironmentError(
        "the library is a stand-in of tests, and what works on the host marks nothing; give "
        "LOCKSTEP_NCCL_LIBRARY a real one, on a machine with a GPU");
  }
  void* const page = mmap(nullptr, journal::kDeviceMarksBytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return EnvironmentError("no page of memory is left for the marks");
  setup.marks = {static_cast<std::byte*>(page), journal::kDeviceMarksBytes};
  setup.stream = setup.platform.device->NewInlineStream();
  LOCKSTEP_ASSIGN_OR_RETURN(
      setup.communicator,
      comm::nccl::ConnectNccl(setup.rank, setup.size, *setup.meeting, "world",
                              *setup.platform.device, comm::nccl::NcclOptionsFromEnvironment(),
                              Deadline::AfterSeconds(kConnectSeconds)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      setup.sides,
      MarkSides::Open(*setup.communicator, *setup.platform.device, *setup.stream, setup.marks));
  return OkStatus();
}

// All ranks do as many as rank 0 has time for.
Result<PairPlan> AgreeOnPlan(Setup& setup, const std::string& key, double work_ns) {
  PairPlan plan = PlanPairs(work_ns, setup.seconds, kBatchSeconds);
  if (setup.size == 1) return plan;
  if (setup.rank == 0) {
    LOCKSTEP_RETURN_IF_ERROR(setup.meeting->Put(key, fmt::format("{} {}", plan.pairs, plan.batch)));
    return plan;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            setup.meeting->Get(key, Deadline::AfterSeconds(kConnectSeconds)));
  if (std::sscanf(text.c_str(), "%d %d", &plan.pairs, &plan.batch) != 2) {
    return SystemFailed("rank 0 left no plan in the meeting: " + text);
  }
  return plan;
}

Status MeasureSize(Setup& setup, std::int64_t bytes, int calls_in_graph) {
  collective::Operation operation;
  operation.count = bytes / collective::SizeOf(operation.type);
  device::Device& device = *setup.platform.device;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto send, device.Allocate(bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto recv, device.Allocate(bytes));
  const MarkedWork work = {operation, {send->data(), recv->data()}, calls_in_graph};
  LOCKSTEP_ASSIGN_OR_RETURN(const auto without, setup.sides->Make(work, /*marked=*/false));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto with, setup.sides->Make(work, /*marked=*/true));
  LOCKSTEP_RETURN_IF_ERROR(without->Run(5).status());
  LOCKSTEP_ASSIGN_OR_RETURN(const double work_ns, without->Run(5));
  const std::string key = fmt::format("plan {} {}", bytes, calls_in_graph);
  LOCKSTEP_ASSIGN_OR_RETURN(const PairPlan plan,
                            AgreeOnPlan(setup, key, work_ns * std::max(1, calls_in_graph)));
  LOCKSTEP_ASSIGN_OR_RETURN(const PairedTimes times, MeasurePairs(*without, *with, plan));
  const stats::MedianInterval added =
      stats::EstimateMedianOfIndependent(times.added_ns, kConfidence);
  if (setup.rank != 0) return OkStatus();
  const double half_width = (added.high - added.low) / 2;
  const auto us = [](double ns, double half_ns) { return FormatChange(ns / 1e3, half_ns / 1e3); };
  fmt::print("{:<9} {:<9} {:>10} {:>10}  {} us [{}, {}]\n", FormatBytes(bytes),
             calls_in_graph == 0 ? "called" : "replayed", FormatDuration(times.without_ns),
             FormatDuration(times.with_ns), us(added.median, half_width), us(added.low, half_width),
             us(added.high, half_width));
  return FlushOutput();
}

Status MeasureAll(Setup& setup) {
  LOCKSTEP_RETURN_IF_ERROR(Connect(setup));
  if (setup.rank == 0) {
    fmt::print("marks by {}, {} rank{}; pairs of batches, {:.1f} % intervals of what marks add\n",
               journal::NameOf(setup.sides->method()), setup.size, setup.size == 1 ? "" : "s",
               100 * kConfidence);
    fmt::print("{:<9} {:<9} {:>10} {:>10}  {}\n", "size", "", "without", "with", "added");
  }
  for (const int calls_in_graph : kCallsInGraph) {
    for (const std::int64_t bytes : kSizes) {
      LOCKSTEP_RETURN_IF_ERROR(MeasureSize(setup, bytes, calls_in_graph));
    }
  }
  return OkStatus();
}

Status Parse(int argc, char** argv, Setup& setup) {
  if (argc == 1) return OkStatus();
  const std::string_view text = argv[1];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), setup.seconds);
  const bool number = error == std::errc() && end == text.data() + text.size();
  if (argc == 2 && number && setup.seconds > 0 && setup.seconds <= 600) return OkStatus();
  return InvalidInput("one argument is right, the seconds of a size (above 0, up to 600)");
}

Result<ExitCode> Main(int argc, char** argv) {
  Setup setup;
  LOCKSTEP_RETURN_IF_ERROR(Parse(argc, argv, setup));
  LOCKSTEP_RETURN_IF_ERROR(MeasureAll(setup));
  return ExitCode::kPass;
}

}  // namespace
}  // namespace lockstep::bench::marks

int main(int argc, char** argv) {
  return lockstep::RunProgram("marks_cost",
                              [=] { return lockstep::bench::marks::Main(argc, argv); });
}
