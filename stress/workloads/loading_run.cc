// Loads the batches of a rank's shard, meets the others between two of them, and tells figures of
// what was loaded.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "stress/workloads/batch_source.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::workloads {
namespace {

constexpr std::int64_t kAgreedElements = 16;

class LoadingRun {
 public:
  LoadingRun(const scenario::LoadingProgram& program, std::uint64_t seed, const RankPorts& ports)
      : program_(program), seed_(seed), ports_(ports) {}

  RankReport Run() {
    report_.where = "loading";
    report_.status = RunAll();
    report_.figures["distinct_samples"] = static_cast<double>(seen_.size());
    return std::move(report_);
  }

 private:
  Status RunAll() {
    ports_.recorded.EnterPhase(journal::Phase::kAllocate);
    for (const char* name : {"batches", "samples", "repeated_epochs", "load_seconds",
                             "load_seconds_max", "waited_seconds"}) {
      report_.figures[name] = 0;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(source_, OpenBatches(program_, seed_, ports_));
    LOCKSTEP_ASSIGN_OR_RETURN(sent_, ports_.device.Allocate(kAgreedElements * 4));
    LOCKSTEP_ASSIGN_OR_RETURN(received_, ports_.device.Allocate(kAgreedElements * 4));
    for (std::int64_t epoch = 0; epoch < program_.epochs; ++epoch) {
      LOCKSTEP_RETURN_IF_ERROR(ports_.gate.Reach(faults::FaultMoment::Kind::kEpoch, epoch));
      LOCKSTEP_RETURN_IF_ERROR(RunEpoch(program_.set_epoch ? epoch : 0));
    }
    return ports_.world.Await(ports_.compute, Deadline::AfterSeconds(kForEverSeconds));
  }

  Status RunEpoch(std::int64_t epoch) {
    LOCKSTEP_RETURN_IF_ERROR(source_->StartEpoch(epoch));
    LOCKSTEP_ASSIGN_OR_RETURN(
        const datasets::sampler::SampleIndices expected,
        IndicesOf(program_, epoch, ports_.world.rank(), ports_.world.size(), seed_));
    std::vector<std::int64_t> order;
    std::vector<std::int64_t> batch;
    for (;;) {
      LOCKSTEP_RETURN_IF_ERROR(
          ports_.gate.Reach(faults::FaultMoment::Kind::kIteration, report_.iteration + 1));
      ports_.recorded.EnterPhase(journal::Phase::kLoad);
      const double begun = ports_.body.SecondsSinceStart();
      LOCKSTEP_ASSIGN_OR_RETURN(const bool more, source_->Next(batch));
      if (!more) break;
      ++report_.iteration;
      Loaded(ports_.body.SecondsSinceStart() - begun, batch);
      order.insert(order.end(), batch.begin(), batch.end());
      LOCKSTEP_RETURN_IF_ERROR(Agree());
    }
    Compare(order, expected);
    if (!order.empty() && order == before_) ++report_.figures["repeated_epochs"];
    before_ = std::move(order);
    return OkStatus();
  }

  void Loaded(double seconds, const std::vector<std::int64_t>& batch) {
    Figures& figures = report_.figures;
    ++figures["batches"];
    figures["samples"] += static_cast<double>(batch.size());
    figures["load_seconds"] += seconds;
    figures["load_seconds_max"] = std::max(figures["load_seconds_max"], seconds);
    seen_.insert(batch.begin(), batch.end());
  }

  // Ends the iteration as the program says.
  Status Agree() {
    if (program_.between == scenario::LoadingProgram::Between::kNone) return OkStatus();
    collective::Operation operation;
    operation.collective = collective::Collective::kBarrier;
    if (program_.between == scenario::LoadingProgram::Between::kAllReduce) {
      operation = {.collective = collective::Collective::kAllReduce, .count = kAgreedElements};
    }
    ports_.recorded.EnterPhase(journal::Phase::kMeasure);
    ports_.recorded.AnnotateNext(
        {journal::Purpose::kStep, 0, static_cast<std::int32_t>(report_.iteration)});
    const double begun = ports_.body.SecondsSinceStart();
    LOCKSTEP_RETURN_IF_ERROR(
        ports_.world.Enqueue(operation, {sent_->data(), received_->data()}, ports_.compute));
    LOCKSTEP_RETURN_IF_ERROR(
        ports_.world.Await(ports_.compute, Deadline::AfterSeconds(kForEverSeconds)));
    report_.figures["waited_seconds"] += ports_.body.SecondsSinceStart() - begun;
    return OkStatus();
  }

  void Compare(const std::vector<std::int64_t>& order,
               const datasets::sampler::SampleIndices& expected) {
    report_.checked += expected.size();
    const auto count = static_cast<std::int64_t>(order.size());
    if (count != expected.size()) {
      report_.wrong_data =
          fmt::format("{} samples were loaded, and the sampler has {}", count, expected.size());
    }
    for (std::int64_t i = 0; i < std::min(count, expected.size()); ++i) {
      const std::int64_t got = order[static_cast<std::size_t>(i)];
      if (got == expected[i] || !report_.wrong_data.empty()) continue;
      report_.wrong_data =
          fmt::format("sample {} of the epoch is {} instead of {}", i, got, expected[i]);
    }
  }

  const scenario::LoadingProgram& program_;
  const std::uint64_t seed_;
  const RankPorts& ports_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<device::Buffer> sent_;
  std::unique_ptr<device::Buffer> received_;
  std::set<std::int64_t> seen_;
  std::vector<std::int64_t> before_;  // the epoch before, in its order
  RankReport report_;
};

}  // namespace

RankReport RunLoading(const scenario::LoadingProgram& program, std::uint64_t seed,
                      const RankPorts& ports) {
  return LoadingRun(program, seed, ports).Run();
}

}  // namespace lockstep::stress::workloads
