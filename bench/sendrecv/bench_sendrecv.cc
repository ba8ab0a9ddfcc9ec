// Messages around the ring of ranks over sizes: the traffic of pipeline-parallel training.
#include <string>

#include "bench/harness/bench_main.h"
#include "bench/measure/kind.h"
#include "bench/measure/sweep_options.h"
#include "bench/sendrecv/cases.h"
#include "bench/sendrecv/send_recv_step.h"

namespace lockstep::bench::sendrecv {
namespace {

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
  Status ReadOptions(const ArgumentParser&, measure::ReportFormat, plan::BenchSpec&) override {
    return sweep_.Read(axes_.sizes, axes_.types);
  }
  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override {
    return sendrecv::Expand(spec, axes_, ranks);
  }
  measure::StepFactory StepsOf(const measure::Bench& bench) const override {
    return [&bench](std::uint32_t i) { return MakeSendRecvStep(bench, i); };
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
