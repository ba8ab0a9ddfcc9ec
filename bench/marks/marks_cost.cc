// What it costs that a GPU marks what it begins and ends: the same all-reduce with and without its
// marks, called one by one and replayed as a graph, in pairs within one process a rank.
//
//   marks_cost [SECONDS]          of a size (5); a process a rank, as the launcher says
//
// The library is LOCKSTEP_NCCL_LIBRARY's; with more than one rank they meet in the folder
// LOCKSTEP_TEST_MEETING. Rank 0 prints a line a size. Exit codes: 0 all within the limits (less
// than 2 % at 8 B, nothing measurable from 1 MiB); 1 one is beyond; 2 usage; 3 too uncertain to
// say; 4 no library or no GPU.
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
#include "fmt/format.h"

namespace lockstep::bench::marks {
namespace {

constexpr double kConnectSeconds = 60;
constexpr double kBatchSeconds = 0.005;
constexpr double kAllConfidence = 0.95;  // all sizes together

struct Limit {
  std::int64_t bytes;
  double most;  // part of the time; 0: nothing measurable
};
constexpr Limit kLimits[] = {{8, 0.02}, {1 << 20, 0}, {16 << 20, 0}, {64 << 20, 0}};
constexpr int kCallsInGraph[] = {0, 8};
constexpr double kConfidence =
    1 - (1 - kAllConfidence) / static_cast<double>(std::size(kLimits) * std::size(kCallsInGraph));

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

Result<CostVerdict> MeasureSize(Setup& setup, const Limit& limit, int calls_in_graph) {
  collective::Operation operation;
  operation.count = limit.bytes / collective::SizeOf(operation.type);
  device::Device& device = *setup.platform.device;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto send, device.Allocate(limit.bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto recv, device.Allocate(limit.bytes));
  const MarkedWork work = {operation, {send->data(), recv->data()}, calls_in_graph};
  LOCKSTEP_ASSIGN_OR_RETURN(const auto without, setup.sides->Make(work, /*marked=*/false));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto with, setup.sides->Make(work, /*marked=*/true));
  LOCKSTEP_RETURN_IF_ERROR(without->Run(5).status());
  LOCKSTEP_ASSIGN_OR_RETURN(const double work_ns, without->Run(5));
  const std::string key = fmt::format("plan {} {}", limit.bytes, calls_in_graph);
  LOCKSTEP_ASSIGN_OR_RETURN(const PairPlan plan,
                            AgreeOnPlan(setup, key, work_ns * std::max(1, calls_in_graph)));
  LOCKSTEP_ASSIGN_OR_RETURN(const PairedTimes times, MeasurePairs(*without, *with, plan));
  const Cost cost = JudgeCost(times.ratios, limit.most, kConfidence);
  if (setup.rank == 0) {
    fmt::print("{:<9} {:<9} {:>10} {:>10}  {:+8.2f} % [{:+.2f}, {:+.2f}]  {:<20} {}\n",
               FormatBytes(limit.bytes), calls_in_graph == 0 ? "called" : "replayed",
               FormatDuration(times.without_ns), FormatDuration(times.with_ns),
               100 * (cost.ratio.median - 1), 100 * (cost.ratio.low - 1),
               100 * (cost.ratio.high - 1),
               limit.most > 0 ? fmt::format("less than {:g} %", 100 * limit.most)
                              : std::string("nothing measurable"),
               NameOf(cost.verdict));
    LOCKSTEP_RETURN_IF_ERROR(FlushOutput());
  }
  return cost.verdict;
}

Result<CostVerdict> MeasureAll(Setup& setup) {
  LOCKSTEP_RETURN_IF_ERROR(Connect(setup));
  if (setup.rank == 0) {
    fmt::print("marks by {}, {} rank{}; pairs of batches, {:.1f} % intervals of their ratio\n",
               journal::NameOf(setup.sides->method()), setup.size, setup.size == 1 ? "" : "s",
               100 * kConfidence);
    fmt::print("{:<9} {:<9} {:>10} {:>10}  {:<27}  {:<20} {}\n", "size", "", "without", "with",
               "more", "limit", "verdict");
  }
  CostVerdict worst = CostVerdict::kWithin;
  for (const int calls_in_graph : kCallsInGraph) {
    for (const Limit& limit : kLimits) {
      LOCKSTEP_ASSIGN_OR_RETURN(const CostVerdict verdict,
                                MeasureSize(setup, limit, calls_in_graph));
      const bool worse = verdict == CostVerdict::kBeyond ||
                         (verdict == CostVerdict::kUnclear && worst == CostVerdict::kWithin);
      if (worse) worst = verdict;
    }
  }
  return worst;
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
  LOCKSTEP_ASSIGN_OR_RETURN(const CostVerdict worst, MeasureAll(setup));
  if (worst == CostVerdict::kBeyond) return ExitCode::kFailed;
  return worst == CostVerdict::kWithin ? ExitCode::kPass : ExitCode::kInconclusive;
}

}  // namespace
}  // namespace lockstep::bench::marks

int main(int argc, char** argv) {
  return lockstep::RunProgram("marks_cost",
                              [=] { return lockstep::bench::marks::Main(argc, argv); });
}
