// A broadcast of a model's state with DDP's own coalescing (core/ddp/coalesced_broadcast.h). The
// root's values are patterns, and those of the others are made impossible before each iteration.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/collectives/cases.h"
#include "bench/collectives/steps.h"
#include "bench/ddp_step/models.h"
#include "bench/measure/step.h"
#include "bench/plan/step_fields.h"
#include "core/base/check.h"
#include "core/collective/pattern.h"
#include "core/ddp/coalesced_broadcast.h"
#include "core/ddp/launcher.h"

namespace lockstep::bench::collectives {
namespace {

constexpr int kRoot = 0;
constexpr double kWaitSeconds = 86'400;  // silence is judged by the agent

class StateBroadcastStep final : public measure::Step {
 public:
  StateBroadcastStep(const measure::Bench& bench, std::uint32_t case_index,
                     ddp_step::ModelCache& models)
      : bench_(bench),
        planned_(bench.plan.cases[case_index]),
        plan_(plan::StepOf<StateBroadcast>(planned_)),
        models_(models),
        checks_(bench.checks()) {}

  Status Prepare() override {
    if (broadcast_ != nullptr) return OkStatus();
    LOCKSTEP_ASSIGN_OR_RETURN(ddp::ManifestModel* const model, models_.Get(plan_.model, false));
    if (plan_.constructor) {
      for (const ddp::Parameter& parameter : model->params()) {
        tensors_.push_back({parameter.info.type, parameter.info.numel, parameter.data});
      }
    }
    for (const ddp::ModuleBuffer& buffer : model->buffers()) {
      tensors_.push_back({buffer.info.type, buffer.info.numel, buffer.data});
    }
    const ddp::BucketLayout layout = ddp::CoalescedGroups(tensors_);
    LOCKSTEP_CHECK(layout.size() == planned_.operations.size(), "the plan knows the broadcasts");
    for (std::size_t i = 0; i < layout.size(); ++i) {
      const collective::Operation& operation = planned_.operations[i];
      LOCKSTEP_CHECK(layout[i].elements == operation.count, "the plan knows the broadcasts");
      Group& group = groups_.emplace_back(
          Group{collective::Pattern(bench_.plan.seed, operation, bench_.communicator.size()), {}});
      for (const int index : layout[i].params) {
        group.tensors.push_back(tensors_[static_cast<std::size_t>(index)]);
      }
    }
    launcher_ = std::make_unique<ddp::Launcher>(models_.Ports(), kWaitSeconds);
    launcher_->set_keep_times(true);
    broadcast_ = std::make_unique<ddp::CoalescedBroadcast>(*launcher_);
    return OkStatus();
  }

  // In place: the root's values are written again, and those of the others made impossible.
  Status Rewrite(bool, bool) override {
    if (!checks_) return OkStatus();
    ++bench_.stamp;
    const int rank = bench_.communicator.rank();
    for (const Group& group : groups_) {
      std::int64_t offset = 0;
      for (const ddp::TensorRef& tensor : group.tensors) {
        if (rank == kRoot) {
          group.pattern.FillSend(tensor.data, offset, tensor.numel, rank, bench_.stamp);
        } else {
          group.pattern.Poison(tensor.data, offset, tensor.numel);
        }
        offset += tensor.numel;
      }
    }
    return OkStatus();
  }

  Result<comm::Interval> Run() override {
    const journal::Purpose purpose =
        plan_.constructor ? journal::Purpose::kStateBroadcast : journal::Purpose::kBufferBroadcast;
    interval_.entry = NowTicks();
    LOCKSTEP_RETURN_IF_ERROR(broadcast_->Run(tensors_, kRoot, purpose));
    interval_.exit = NowTicks();
    return interval_;
  }

  void Compare(measure::Comparison& comparison) override {
    if (!checks_) return;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      collective::CheckReport report;
      std::int64_t offset = 0;
      for (const ddp::TensorRef& tensor : groups_[i].tensors) {
        groups_[i].pattern.CheckRecv(tensor.data, offset, tensor.numel, bench_.communicator.rank(),
                                     bench_.stamp, report);
        offset += tensor.numel;
      }
      comparison.Add(static_cast<std::int64_t>(i), report);
    }
  }

  Status TakeParts(std::vector<double>& values) override {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ddp::CollectiveTimes> collectives,
                              launcher_->TakeTimes());
    double communication = 0;
    for (const ddp::CollectiveTimes& times : collectives) {
      communication += bench_.Ns(times.start, times.end);
    }
    const double whole = bench_.Ns(interval_.entry, interval_.exit);
    values.insert(values.end(), {communication, whole - communication});
    return OkStatus();
  }

 private:
  // Tensors that travel together.
  struct Group {
    collective::Pattern pattern;
    std::vector<ddp::TensorRef> tensors;  // in the order in which they lie in the flat memory
  };

  measure::Bench bench_;
  const plan::PlannedCase& planned_;
  StateBroadcast plan_;
  ddp_step::ModelCache& models_;
  bool checks_;
  std::vector<ddp::TensorRef> tensors_;
  std::vector<Group> groups_;
  std::unique_ptr<ddp::Launcher> launcher_;
  std::unique_ptr<ddp::CoalescedBroadcast> broadcast_;
  comm::Interval interval_;  // of the last Run
};

}  // namespace

std::unique_ptr<measure::Step> MakeStateBroadcastStep(const measure::Bench& bench,
                                                      std::uint32_t case_index,
                                                      ddp_step::ModelCache& models) {
  return std::make_unique<StateBroadcastStep>(bench, case_index, models);
}

}  // namespace lockstep::bench::collectives
