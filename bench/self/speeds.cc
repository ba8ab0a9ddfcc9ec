// What is really a speed, as ratios. Two pieces of work run in turn, in an order that is drawn, so
// drift and other programs meet both. A ratio is within its bounds, beyond them, or unclear, by the
// interval of its median. Bounds are wide: they catch work that grows with the square, not a few
// percent. scripts/benchmarks runs this; no test does.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/marks/paired_cost.h"
#include "core/base/clock.h"
#include "core/base/program.h"
#include "core/base/status.h"
#include "core/base/units.h"
#include "core/comm/sim/sim_world.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#include "core/stats/stats.h"
#include "core/verdict/judge.h"
#include "datasets/loader/loader.h"
#include "results/store/store.h"

namespace lockstep::bench::self {
namespace {

constexpr double kConfidence = 0.999;
constexpr const char* kFolder = "/dev/shm";

// Work that is timed as a whole.
class Timed final : public marks::PairSide {
 public:
  explicit Timed(std::function<Status()> work) : work_(std::move(work)) {}
  Result<double> Run(int times) override {
    const std::int64_t begin = MonotonicNs();
    for (int i = 0; i < times; ++i) LOCKSTEP_RETURN_IF_ERROR(work_());
    return static_cast<double>(MonotonicNs() - begin) / times;
  }

 private:
  std::function<Status()> work_;
};

enum class Verdict : std::uint8_t { kWithin, kBeyond, kUnclear };

struct Pair {
  std::string_view name;
  std::function<Status()> base;
  std::function<Status()> work;
  double low;  // bounds of work over base
  double high;
};

// All ranks in the same collective, beyond the deadline, but one, which calls another count.
std::vector<verdict::RankEvidence> Stall(int ranks, int records) {
  std::vector<verdict::RankEvidence> evidence(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    verdict::RankEvidence& one = evidence[static_cast<std::size_t>(rank)];
    one.rank = rank;
    one.seconds_silent = 10;
    for (int i = 0; i < records; ++i) {
      journal::JournalEvent event;
      event.index = static_cast<std::uint64_t>(i) + 1;
      event.ticks = 1000 * event.index;
      event.kind = i % 3 == 0   ? journal::EventKind::kEnqueue
                   : i % 3 == 1 ? journal::EventKind::kStart
                                : journal::EventKind::kEnd;
      event.sequence = static_cast<std::uint64_t>(i / 3);
      event.nth = static_cast<std::uint32_t>(event.sequence + 1);
      event.count = 1000;
      one.journal.events.push_back(event);
    }
  }
  for (journal::JournalEvent& event : evidence.front().journal.events) {
    if (event.sequence == evidence.front().journal.events.back().sequence) event.count = 7;
  }
  return evidence;
}

std::function<Status()> Judging(int ranks, int records) {
  const auto evidence = std::make_shared<std::vector<verdict::RankEvidence>>(Stall(ranks, records));
  return [evidence] {
    const verdict::Judgement judgement = verdict::Judge(*evidence, 5);
    return judgement.findings.size() == 1 ? OkStatus() : SystemFailed("the judge found no mistake");
  };
}

std::function<Status()> Decoding(double passes) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(1 << 16, std::byte{7});
  return [bytes, passes] {
    return datasets::loader::Decode(*bytes, passes) != 0 ? OkStatus()
                                                         : SystemFailed("nothing was decoded");
  };
}

std::function<Status()> Simulating(int ranks) {
  return [ranks] {
    comm::sim::SimWorld world({.ranks = ranks, .stack_bytes = 16 * 1024});
    const comm::sim::SimReport report = world.Run([](comm::sim::RankContext& context) -> Status {
      const auto communicator = context.Connect();
      const auto stream = context.device().NewInlineStream();
      float value = 1;
      return communicator->Enqueue({.collective = collective::Collective::kAllReduce, .count = 1},
                                   {&value, &value}, *stream);
    });
    const bool finished = report.ranks.back().state == comm::sim::RankState::kFinished;
    return finished ? OkStatus() : SystemFailed(report.ranks.back().message);
  };
}

results::store::Run MillionSamples() {
  results::store::Run run;
  run.name = "speeds";
  results::store::CaseRecord record;
  record.name = "all_reduce/f32/8";
  record.ranks = record.samples.ranks = 2;
  for (std::int64_t i = 0; i < 1'000'000; ++i) {
    record.samples.round.push_back(static_cast<std::int32_t>(i / 20));
    for (int rank = 0; rank < 2; ++rank) {
      record.samples.entry_ns.push_back(1000 * i + rank);
      record.samples.exit_ns.push_back(1000 * i + 500 + i % 97);
    }
  }
  run.cases.push_back(std::move(record));
  return run;
}

// A file of a million samples of two ranks, and as many bytes as it holds written plainly.
Pair Storing() {
  const std::string path = fmt::format("{}/lockstep-speeds-{}", kFolder, getpid());
  const auto run = std::make_shared<results::store::Run>(MillionSamples());
  const auto store = [run, path]() -> Status {
    LOCKSTEP_RETURN_IF_ERROR(results::store::WriteRun(*run, path));
    std::filesystem::remove(path);
    return OkStatus();
  };
  const auto bytes = std::make_shared<std::vector<char>>(1'000'000 * (2 * 2 * 8 + 4), 'x');
  const auto plain = [bytes, path]() -> Status {
    const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    const bool whole =
        write(fd, bytes->data(), bytes->size()) == static_cast<ssize_t>(bytes->size());
    close(fd);
    std::filesystem::remove(path);
    return whole ? OkStatus() : EnvironmentError("{} takes no more bytes", kFolder);
  };
  return {"a million samples stored, beside as many bytes written", plain, store, 0, 15};
}

// Work that is asked to take 20 ms, beside a loop that takes 20 ms.
Pair Computing() {
  const auto device = std::make_shared<device::host::HostDevice>();
  const std::shared_ptr<device::Stream> stream = device->NewInlineStream();
  const auto memory = std::make_shared<std::vector<char>>(1 << 20, 1);
  const auto kernels = std::make_shared<device::host::HostKernels>();
  const auto spin = [] {
    const std::int64_t end = MonotonicNs() + 20'000'000;
    while (MonotonicNs() < end) {
    }
    return OkStatus();
  };
  const auto compute = [device, stream, memory, kernels] {
    kernels->Compute(*stream, 20e6, memory->data(), static_cast<std::int64_t>(memory->size()));
    return stream->status();
  };
  return {"work asked to take 20 ms, beside 20 ms", spin, compute, 0.5, 2};
}

std::vector<Pair> AllPairs() {
  return {{"judging twice the ranks", Judging(4096, 128), Judging(8192, 128), 0, 3},
          {"judging twice the records", Judging(4096, 128), Judging(4096, 257), 0, 3},
          {"decoding slowed down 10 times", Decoding(20), Decoding(200), 8, 12.5},
          {"simulating twice the ranks", Simulating(4096), Simulating(8192), 0, 3},
          Storing(),
          Computing()};
}

// Prints a line; the verdict.
Result<Verdict> Measure(const Pair& pair, double seconds) {
  Timed base(pair.base), work(pair.work);
  LOCKSTEP_ASSIGN_OR_RETURN(const double base_ns, base.Run(1));
  LOCKSTEP_ASSIGN_OR_RETURN(const double work_ns, work.Run(1));
  marks::PairPlan plan = marks::PlanPairs((base_ns + work_ns) / 2, seconds, 0.01);
  LOCKSTEP_ASSIGN_OR_RETURN(const marks::PairedTimes times, marks::MeasurePairs(base, work, plan));
  const stats::MedianInterval ratio = stats::EstimateMedian(times.ratios, kConfidence);
  const bool within = ratio.low >= pair.low && ratio.high <= pair.high;
  const bool beyond = ratio.low > pair.high || ratio.high < pair.low;
  const Verdict verdict = within ? Verdict::kWithin : beyond ? Verdict::kBeyond : Verdict::kUnclear;
  fmt::print("{}: {} x ({}; bounds {} to {}), {} pairs: {}\n", pair.name,
             FormatFigure(ratio.median, (ratio.high - ratio.low) / 2),
             FormatInterval(ratio.low, ratio.high), pair.low, pair.high, times.ratios.size(),
             within   ? "within"
             : beyond ? "BEYOND"
                      : "unclear");
  LOCKSTEP_RETURN_IF_ERROR(FlushOutput());
  return verdict;
}

Result<ExitCode> Main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  if (argc > 2 || !(seconds > 0)) {
    return InvalidInput("'{}': give the seconds of a pair, as in 5", argv[argc - 1]);
  }
  bool beyond = false, unclear = false;
  for (const Pair& pair : AllPairs()) {
    const Result<Verdict> verdict = Measure(pair, seconds);
    if (!verdict.ok()) {
      return EnvironmentError("{}: {}", pair.name, verdict.status().message());
    }
    beyond = beyond || *verdict == Verdict::kBeyond;
    unclear = unclear || *verdict == Verdict::kUnclear;
  }
  if (beyond) return ExitCode::kRegression;
  return unclear ? ExitCode::kInconclusive : ExitCode::kPass;
}

}  // namespace
}  // namespace lockstep::bench::self

int main(int argc, char** argv) {
  return lockstep::RunProgram("speeds", [=] { return lockstep::bench::self::Main(argc, argv); });
}
