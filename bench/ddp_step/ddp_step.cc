// A training step of core/ddp/engine.h on a model with synthetic gradients. The true mean of every
// gradient is known in advance, so each iteration compares a window of them. The engine's times
// are added up to the parts of the step.
#include "bench/ddp_step/ddp_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/ddp_step/cases.h"
#include "bench/ddp_step/models.h"
#include "bench/ddp_step/untraced_step.h"
#include "bench/measure/step.h"
#include "bench/plan/step_fields.h"
#include "core/collective/pattern_memory.h"
#include "core/ddp/engine.h"
#include "core/device/tile.h"
#include "core/journal/purpose.h"

namespace lockstep::bench::ddp_step {
namespace {

// Iterations that may pass until the buckets are rebuilt; PyTorch needs two, or three.
constexpr int kMostToRebuild = 8;
// Of the elements that a timed iteration has compared; the rest have their turn in the next ones.
constexpr std::int64_t kWindows = 16;
// PowerSGD's warm-up: PyTorch's default of 1000 iterations would outlast the measurement.
constexpr std::int64_t kPowerSgdStart = 2;
// PowerSGD restores a gradient of rank 1 but for the rounding of its orthogonalization.
constexpr double kPowerSgdTolerance = 1e-3;

ddp::EngineOptions OptionsOf(const DdpStep& step) {
  ddp::EngineOptions options{.buckets = BucketOptionsOf(step),
                             .broadcast_buffers = step.broadcast_buffers};
  const Result<ddp::CommHook> hook = ddp::ParseCommHook("--comm-hook", step.comm_hook);
  LOCKSTEP_CHECK(hook.ok(), "the plan's hooks were parsed before");
  options.hook = *hook;
  options.power_sgd.start_iteration = kPowerSgdStart;
  return options;
}

// How far a mean of gradients may be from the exact one, relative to it.
double Tolerance(const DdpStep& step, collective::DataType type, int ranks) {
  if (step.comm_hook == "powersgd") return kPowerSgdTolerance;
  collective::DataType travels = type;
  if (step.comm_hook == "fp16") travels = collective::DataType::kF16;
  if (step.comm_hook == "bf16") travels = collective::DataType::kBf16;
  return ddp::RoundingOfMean(ranks, step.accumulate, /*all_reduces=*/1,
                             std::max(ddp::RoundingOf(travels), ddp::RoundingOf(type)));
}

// Sums over the micro-batches of an iteration, ns.
struct Times {
  double buffers = 0;
  double forward = 0;
  double backward = 0;
  double exposed = 0;
  double copy_back = 0;
  double communication = 0;
};

bool IsOfGradients(const ddp::CollectiveTimes& times) {
  using enum journal::Purpose;
  const journal::Purpose purpose = times.annotation.purpose;
  return purpose == kBucket || purpose == kUnusedBitmap || purpose == kPowerSgdFactorP ||
         purpose == kPowerSgdFactorQ;
}

// When the last gradient was ready. Its bucket is launched right then; the engine's own mark comes
// after the launch, and when the thread of the communication takes the processor, much later.
Ticks ComputeEnd(const ddp::StepTimes& step) {
  Ticks launched = 0;
  for (const ddp::CollectiveTimes& collective : step.collectives) {
    if (collective.annotation.purpose != journal::Purpose::kBucket) continue;
    launched = std::max(launched, collective.ready);
  }
  return launched == 0 ? step.backward_compute_end : std::min(launched, step.backward_compute_end);
}

void Add(const ddp::StepTimes& step, double ns_per_tick, Times& times) {
  const auto ns = [&](Ticks from, Ticks to) {
    return to > from ? static_cast<double>(to - from) * ns_per_tick : 0.0;
  };
  const double buffers = ns(step.buffers_begin, step.buffers_end);
  times.buffers += buffers;
  times.forward += ns(step.forward_begin, step.forward_end) - buffers;
  const Ticks computed = ComputeEnd(step);
  times.backward += ns(step.backward_begin, computed);
  Ticks communicated = computed;  // when the last gradient had travelled
  for (const ddp::CollectiveTimes& collective : step.collectives) {
    if (!IsOfGradients(collective)) continue;
    times.communication += ns(collective.start, collective.end);
    communicated = std::max(communicated, collective.end);
  }
  times.exposed += ns(computed, communicated);
  times.copy_back += ns(communicated, step.backward_end);
}

class DdpStepRunner final : public measure::Step {
 public:
  DdpStepRunner(const measure::Bench& bench, std::uint32_t case_index, ModelCache& models)
      : bench_(bench),
        planned_(bench.plan.cases[case_index]),
        plan_(plan::StepOf<DdpStep>(planned_)),
        models_(models),
        checks_(bench.checks()),
        low_rank_(plan_.comm_hook == "powersgd") {
    if (!plan_.timeline) untraced_.emplace(bench);
  }

  // The first time: DDP's constructor, and iterations until the buckets are rebuilt (and PowerSGD
  // compresses); and the capture, if the step is to be replayed.
  Status Prepare() override {
    if (engine_ != nullptr || plan_.first_iteration) return OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(Construct());
    LOCKSTEP_RETURN_IF_ERROR(RebuildBuckets());
    return plan_.cuda_graph ? Capture() : OkStatus();
  }

  // Where the first iteration is what counts, every one gets a new engine.
  Status Rewrite(bool, bool) override {
    if (plan_.first_iteration) LOCKSTEP_RETURN_IF_ERROR(Construct());
    if (!plan_.cuda_graph) engine_->ZeroGrad();  // a graph overwrites
    return OkStatus();
  }

  Result<comm::Interval> Run() override {
    if (!plan_.cuda_graph) {
      LOCKSTEP_ASSIGN_OR_RETURN(interval_, RunCalled());
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(interval_, untraced_->Replay(launched_));
      newest_input_ += plan_.accumulate;
    }
    return interval_;
  }

  void Compare(measure::Comparison& comparison) override {
    if (!checks_) return;
    for (std::size_t i = 0; i < engine_->layout().size(); ++i) CompareBucket(i, comparison);
    bench_.link.journal().EnterPhase(journal::Phase::kMeasure);
    ++compared_;
  }

  Status TakeParts(std::vector<double>& values) override {
    if (!plan_.timeline) {
      values.push_back(bench_.Ns(interval_.entry, launched_));
      values.push_back(bench_.Ns(launched_, interval_.exit));
      return OkStatus();
    }
    LOCKSTEP_RETURN_IF_ERROR(TakeTimes());
    Times sum;
    for (const ddp::StepTimes& step : steps_) Add(step, bench_.ns_per_tick, sum);
    // A queue's hand-over can make the wait longer than the collectives took.
    const double overlap =
        sum.communication > 0 ? std::max(0.0, 1 - sum.exposed / sum.communication) : 0;
    values.insert(values.end(), {sum.buffers, sum.forward, sum.backward, sum.exposed, sum.copy_back,
                                 sum.communication, overlap});
    return OkStatus();
  }

 private:
  Status Construct() {
    LOCKSTEP_ASSIGN_OR_RETURN(model_, models_.Get(plan_.model, low_rank_));
    engine_.reset();  // before another one takes its place in the shared memory
    const ddp::EnginePorts ports = untraced_ ? untraced_->Ports(models_.Ports()) : models_.Ports();
    LOCKSTEP_ASSIGN_OR_RETURN(engine_, ddp::Engine::Make(*model_, OptionsOf(plan_), ports));
    LOCKSTEP_RETURN_IF_ERROR(engine_->Construct());
    engine_->launcher().set_keep_times(plan_.timeline);
    return untraced_ ? untraced_->Await() : OkStatus();
  }

  Status RebuildBuckets() {
    const bool rebuilds = ddp::RebuildsBuckets(OptionsOf(plan_).buckets);
    const int fewest = low_rank_ ? kPowerSgdStart + 1 : 1;
    for (int i = 0; i < kMostToRebuild; ++i) {
      if (i >= fewest && (!rebuilds || engine_->has_rebuilt_buckets())) return OkStatus();
      engine_->ZeroGrad();
      LOCKSTEP_RETURN_IF_ERROR(Iterate(1));  // static_graph must not begin under no_sync
      LOCKSTEP_RETURN_IF_ERROR(FinishIteration());
    }
    LOCKSTEP_CHECK(false, "the buckets are rebuilt within a few iterations");
    return OkStatus();
  }

  // An iteration like any other, but for the number of its input, which the device counts.
  Status Capture() {
    newest_input_ = 0;
    return untraced_->Capture([this](std::int64_t* counter) {
      engine_->ZeroGrad();
      model_->set_input_counter(counter);
      const Status status = Iterate(plan_.accumulate);
      model_->set_input_counter(nullptr);
      return status;
    });
  }

  // Waits for the last iteration, whose times are kept where there is a timeline.
  Status FinishIteration() { return untraced_ ? untraced_->Await() : TakeTimes(); }

  // Of so many micro-batches; only the last one's gradients travel.
  Status Iterate(std::int64_t micro_batches) {
    steps_.clear();
    model_->set_compute(plan_.compute_ms * 1e3 / static_cast<double>(micro_batches),
                        plan_.compute == "matmul");
    for (std::int64_t micro = 1; micro <= micro_batches; ++micro) {
      engine_->set_require_backward_grad_sync(micro == micro_batches);
      LOCKSTEP_RETURN_IF_ERROR(engine_->Forward({.input = ++bench_.stamp}));
      LOCKSTEP_RETURN_IF_ERROR(engine_->Backward());
      // The last one's are taken when the clock does not run any more.
      if (plan_.timeline && micro < micro_batches) LOCKSTEP_RETURN_IF_ERROR(TakeTimes());
    }
    return OkStatus();
  }

  Status TakeTimes() {
    LOCKSTEP_ASSIGN_OR_RETURN(steps_.emplace_back(), engine_->TakeStepTimes());
    return OkStatus();
  }

  Result<comm::Interval> RunCalled() {
    comm::Interval interval;
    interval.entry = NowTicks();
    LOCKSTEP_RETURN_IF_ERROR(Iterate(plan_.accumulate));
    launched_ = NowTicks();
    LOCKSTEP_RETURN_IF_ERROR(untraced_ ? untraced_->Await()
                                       : bench_.stream.Synchronize(measure::Never()));
    interval.exit = NowTicks();
    newest_input_ = bench_.stamp;
    return interval;
  }

  void CompareBucket(std::size_t index, measure::Comparison& comparison) const {
    const ddp::Bucket& bucket = engine_->layout()[index];
    const bool all = compared_ == 0 || bench_.plan.check == plan::CheckMode::kFull;
    const std::int64_t window = compared_ % kWindows;
    const std::int64_t begin = all ? 0 : bucket.elements * window / kWindows;
    const std::int64_t end = all ? bucket.elements : bucket.elements * (window + 1) / kWindows;
    const double tolerance = Tolerance(plan_, bucket.type, bench_.communicator.size());
    measure::Comparison::Located located{static_cast<std::int64_t>(index), 0, "", ""};
    std::int64_t offset = 0;  // of the parameter in the bucket
    for (const int param : bucket.params) {
      const std::int64_t numel = model_->params()[static_cast<std::size_t>(param)].info.numel;
      const std::int64_t from = std::max<std::int64_t>(begin - offset, 0);
      const std::int64_t stop = std::min(numel, end - offset);
      if (from < stop) CompareGradient(param, from, stop, tolerance, offset, located, comparison);
      offset += numel;
    }
    if (!located.got.empty()) comparison.located.push_back(located);
    comparison.checked += end - begin;
  }

  // Elements [begin, end) of the parameter; the first wrong one is located at `offset` + its index.
  void CompareGradient(int param, std::int64_t begin, std::int64_t end, double tolerance,
                       std::int64_t offset, measure::Comparison::Located& located,
                       measure::Comparison& comparison) const {
    const ddp::Parameter& parameter = model_->params()[static_cast<std::size_t>(param)];
    const collective::DataType type = parameter.info.type;
    const ddp::ExpectedGradient expected(bench_.communicator.size(),
                                         newest_input_ - plan_.accumulate + 1, plan_.accumulate,
                                         param, parameter.info, low_rank_);
    const auto found = [&](std::int64_t wrong, std::int64_t element, double got) {
      comparison.wrong += wrong;
      if (!located.got.empty()) return;
      located = {located.operation, offset + element, fmt::format("{}", expected.At(element)),
                 fmt::format("{} ({}.grad, element {})", got, parameter.info.name, element)};
    };
    // A rank that compares millions of elements is no silent one.
    const auto alive = [this] { bench_.link.journal().EnterPhase(journal::Phase::kCheck); };
    alive();
    if (!parameter.has_grad) return found(end - begin, begin, std::nan(""));
    if (bench_.pattern_memory != nullptr && !low_rank_) {
      std::vector<double> tile;
      const std::int64_t length = std::min(device::kTile, parameter.info.numel);
      for (std::int64_t i = 0; i < length; ++i) tile.push_back(expected.At(i));
      const void* data =
          static_cast<const std::byte*>(parameter.grad) + begin * collective::SizeOf(type);
      const collective::PatternDifference difference =
          bench_.pattern_memory->CompareTile(type, data, end - begin, tile, begin, tolerance);
      if (difference.wrong == 0) return;
      return found(difference.wrong, begin + difference.first,
                   ddp::GradientElement(type, &difference.got, 0));
    }
    for (std::int64_t i = begin; i < end; ++i) {
      if ((i - begin + 1) % ddp::kElementsAtOnce == 0) alive();
      const double want = expected.At(i), got = ddp::GradientElement(type, parameter.grad, i);
      if (!(std::abs(got - want) <= tolerance * want)) found(1, i, got);
    }
  }

  measure::Bench bench_;
  const plan::PlannedCase& planned_;
  DdpStep plan_;
  ModelCache& models_;
  bool checks_;
  bool low_rank_;
  ddp::ManifestModel* model_ = nullptr;
  std::optional<UntracedStep> untraced_;  // without a timeline; outlives the engine
  std::unique_ptr<ddp::Engine> engine_;
  std::vector<ddp::StepTimes> steps_;  // of the last iteration, one a micro-batch
  Ticks launched_ = 0;                 // in the last iteration: the host had nothing left to launch
  comm::Interval interval_;            // of the last iteration
  std::int64_t newest_input_ = 0;      // that gradients are of
  std::int64_t compared_ = 0;  // iterations; the first one wholly, later ones a window at a time
};

}  // namespace

std::unique_ptr<measure::Step> MakeDdpStep(const measure::Bench& bench, std::uint32_t case_index,
                                           ModelCache& models) {
  return std::make_unique<DdpStepRunner>(bench, case_index, models);
}

}  // namespace lockstep::bench::ddp_step
