// Messages around the ring of ranks over sizes: the traffic of pipeline-parallel training. The
// inputs lie in the arena that cases share, and a rotating window of them and of the results is
// rewritten, as in bench/collectives.
#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/harness/bench_main.h"
#include "bench/measure/input_arena.h"
#include "bench/measure/kind.h"
#include "bench/measure/step.h"
#include "bench/measure/sweep_options.h"
#include "bench/sendrecv/cases.h"
#include "core/collective/pattern.h"

namespace lockstep::bench::sendrecv {
namespace {

std::byte* At(void* base, std::int64_t offset) { return static_cast<std::byte*>(base) + offset; }

// Both are posted before either is awaited: in a ring that sends first, all ranks would wait.
class SendRecvStep final : public measure::Step {
 public:
  SendRecvStep(const measure::Bench& bench, std::uint32_t case_index)
      : bench_(bench),
        receive_(comm::AsSupported(bench.backend, bench.plan.cases[case_index].operations.front())),
        send_(receive_),
        receiving_(receive_.blocking == collective::Blocking::kBlocking ? bench.side_stream
                                                                        : &bench_.stream),
        input_{0, receive_.count * collective::SizeOf(receive_.type)},
        windows_(bench.WindowsOf(input_.bytes)) {
    const int rank = bench.communicator.rank();
    receive_.root = LeftOf(rank, bench.plan.world_size);
    send_.collective = collective::Collective::kSend;
    send_.root = RightOf(rank, bench.plan.world_size);
  }

  Status Prepare() override {
    if (!bench_.checks()) return OkStatus();
    bench_.inputs.Select(PatternOf(send_), /*writes=*/true);
    bench_.inputs.Cover(input_, ++bench_.stamp);
    return OkStatus();
  }

  Status Rewrite(bool first, bool warmup) override {
    if (!bench_.checks()) return OkStatus();
    const std::int64_t window = ++bench_.stamp % windows_;
    if (first || warmup || bench_.plan.check == plan::CheckMode::kFull) {
      bench_.inputs.Rewrite(input_, window, windows_, bench_.stamp);
    }
    const std::int64_t begin = receive_.count * window / windows_;
    const std::int64_t end = receive_.count * (window + 1) / windows_;
    PatternOf(receive_).Poison(At(bench_.recv, begin * collective::SizeOf(receive_.type)), begin,
                               end - begin);
    return OkStatus();
  }

  Result<comm::Interval> Run() override {
    comm::RecordedCommunicator& communicator = bench_.communicator;
    comm::Interval interval{.entry = NowTicks()};
    LOCKSTEP_RETURN_IF_ERROR(communicator.StartGroup());
    LOCKSTEP_RETURN_IF_ERROR(communicator.Enqueue(receive_, {nullptr, bench_.recv}, *receiving_));
    LOCKSTEP_RETURN_IF_ERROR(
        communicator.Enqueue(send_, {bench_.inputs.At(0), nullptr}, bench_.stream));
    LOCKSTEP_RETURN_IF_ERROR(communicator.EndGroup());
    LOCKSTEP_RETURN_IF_ERROR(communicator.Await(*receiving_, measure::Never()));
    interval.exit = NowTicks();
    return interval;
  }

  void Compare(measure::Comparison& comparison) override {
    if (!bench_.checks()) return;
    const std::int64_t size = collective::SizeOf(receive_.type);
    const collective::Pattern pattern = PatternOf(receive_);
    collective::CheckReport report;
    bench_.inputs.ForEachStamp(
        input_, [&](std::int64_t begin, std::int64_t bytes, std::uint32_t stamp) {
          pattern.CheckRecv(At(bench_.recv, begin), begin / size, bytes / size,
                            bench_.communicator.rank(), stamp, report);
        });
    comparison.Add(0, report);
  }

 private:
  collective::Pattern PatternOf(const collective::Operation& operation) const {
    return collective::Pattern(bench_.plan.seed, operation, bench_.plan.world_size,
                               bench_.pattern_memory);
  }

  measure::Bench bench_;
  collective::Operation receive_;
  collective::Operation send_;
  device::Stream* receiving_;  // beside the caller where the library has only blocking calls
  measure::ArenaRange input_;
  std::int64_t windows_;
};

class SendRecv final : public measure::Kind {
 public:
  std::string name() const override { return "bench_sendrecv"; }
  std::string description() const override {
    return "Send to the right neighbour and receive from the left: message sizes, as pipeline "
           "stages pass activations on.";
  }
  void AddOptions(ArgumentParser& parser) override {
    sweep_.Add(parser);
    parser.Refuse("-o,--op", "bench_sendrecv reduces nothing");
    parser.Refuse("-r,--root", "bench_sendrecv has no root");
  }
  Status ReadOptions(const ArgumentParser& parser, measure::ReportFormat,
                     plan::BenchSpec&) override {
    return sweep_.Read(parser, axes_.sizes, axes_.types);
  }
  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override {
    return sendrecv::Expand(spec, axes_, ranks);
  }
  measure::StepFactory StepsOf(const measure::Bench& bench) const override {
    return [&bench](std::uint32_t i) { return std::make_unique<SendRecvStep>(bench, i); };
  }

 private:
  measure::SweepOptions sweep_;
  Axes axes_;
};

}  // namespace
}  // namespace lockstep::bench::sendrecv

int main(int argc, char** argv) {
  lockstep::bench::sendrecv::SendRecv kind;
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
