// The user's training loop around the engine: epochs, loads, evaluation, barriers. It tells its
// surroundings of each point before it passes it, so that faults can be planted there. Load times
// come from a generator seeded by rank.
#include "core/ddp/training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/random.h"

namespace lockstep::ddp {
namespace {

using At = TrainingPoint::At;

// One rank's run of a program.
class Training {
 public:
  Training(const TrainingProgram& program, Module& module, const EnginePorts& ports,
           TrainingSurroundings& surroundings)
      : program_(program),
        module_(module),
        ports_(ports),
        surroundings_(surroundings),
        rank_(ports.communicator.rank()),
        random_(Mix64(program.seed) + static_cast<std::uint64_t>(rank_)) {}

  TrainingOutcome Run() {
    outcome_.status = RunAll();
    outcome_.engine = std::move(engine_);
    return std::move(outcome_);
  }

 private:
  Status RunAll() {
    LOCKSTEP_RETURN_IF_ERROR(Reach(At::kInit, Phase::kConstruct));
    Begin(SectionKind::kConstructor);
    LOCKSTEP_ASSIGN_OR_RETURN(engine_, Engine::Make(module_, EngineOptionsOf(program_), ports_));
    LOCKSTEP_RETURN_IF_ERROR(engine_->Construct());
    for (epoch_ = 0; epoch_ < program_.epochs && !ended_; ++epoch_) {
      LOCKSTEP_RETURN_IF_ERROR(RunEpoch());
    }
    LOCKSTEP_RETURN_IF_ERROR(Reach(At::kEnd, Phase::kFinalize));
    // Where a program on a device finds out that a collective never ended.
    return engine_->Synchronize();
  }
  Status RunEpoch() {
    LOCKSTEP_RETURN_IF_ERROR(Reach(At::kEpoch, Phase::kCompute));
    next_input_ = 0;
    if (program_.join) {
      engine_->EnterJoin({program_.divide_by_initial_world_size, program_.join_throw});
    }
    const std::int64_t inputs = InputsOf(program_, rank_, ports_.communicator.size());
    for (std::int64_t i = 0; i < inputs && !ended_; ++i) {
      if (iteration_ >= program_.first_iteration) {
        LOCKSTEP_RETURN_IF_ERROR(RunIteration(i));
      } else {
        ++next_input_;
      }
      outcome_.iterations = ++iteration_;
    }
    engine_->set_iteration(-1);
    if (program_.join) {
      LOCKSTEP_RETURN_IF_ERROR(Reach(At::kJoinExit, Phase::kJoinExit));
      Begin(SectionKind::kJoinExit);
      LOCKSTEP_RETURN_IF_ERROR(engine_->ExitJoin());
    }
    LOCKSTEP_RETURN_IF_ERROR(Reach(At::kAfterLoop, Phase::kCompute));
    if (program_.barrier != BarrierPlace::kAfterLoop) return OkStatus();
    Begin(SectionKind::kAfterLoop);
    return Barrier();
  }
  Status RunIteration(std::int64_t in_epoch) {
    Begin(SectionKind::kIteration, iteration_);
    engine_->set_iteration(static_cast<std::int32_t>(iteration_));
    LOCKSTEP_RETURN_IF_ERROR(Reach(At::kLoad, Phase::kLoad));
    LOCKSTEP_RETURN_IF_ERROR(Load());
    const auto& no_sync = program_.no_sync_iterations;
    engine_->set_require_backward_grad_sync(std::ranges::find(no_sync, in_epoch) == no_sync.end());
    if (program_.zero_grad) engine_->ZeroGrad();
    LOCKSTEP_RETURN_IF_ERROR(Reach(At::kForward, Phase::kForward));
    LOCKSTEP_RETURN_IF_ERROR(engine_->Forward({.input = next_input_++}));
    LOCKSTEP_RETURN_IF_ERROR(Reach(At::kBackward, Phase::kBackward));
    LOCKSTEP_RETURN_IF_ERROR(engine_->Backward());
    engine_->set_require_backward_grad_sync(true);
    if (program_.barrier == BarrierPlace::kInLoop) LOCKSTEP_RETURN_IF_ERROR(Barrier());
    if (EvaluatesAfter(in_epoch)) LOCKSTEP_RETURN_IF_ERROR(Evaluate());
    return Reach(At::kIterationEnd, Phase::kCompute);
  }
  Status Load() {
    const LoadTime& time = program_.load_us.At(rank_);
    double us = time.mean_us;
    if (time.kind == LoadTime::Kind::kUniform) us += time.spread_us * (2 * random_.Uniform() - 1);
    if (time.kind == LoadTime::Kind::kExponential) us *= -std::log(1 - random_.Uniform());
    return us > 0 ? surroundings_.Sleep(static_cast<std::int64_t>(us * 1000)) : OkStatus();
  }
  Status Evaluate() {
    using Evaluation = EvaluationProgram;
    const Evaluation& evaluation = *program_.evaluation;
    LOCKSTEP_RETURN_IF_ERROR(Reach(At::kEvaluation, Phase::kEvaluate));
    Begin(SectionKind::kEvaluation, iteration_);
    const std::int64_t inputs = EvaluatesHere() ? evaluation.inputs.At(rank_) : 0;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const Pass pass = {
          .input = next_input_++, .training = evaluation.train_mode, .grad = evaluation.grad};
      LOCKSTEP_RETURN_IF_ERROR(evaluation.through == Evaluation::Through::kDdp
                                   ? engine_->Forward(pass)
                                   : engine_->ForwardModule(pass));
    }
    ended_ = evaluation.then == Evaluation::Then::kEnd;
    return evaluation.then == Evaluation::Then::kBarrier ? Barrier() : OkStatus();
  }
  Status Barrier() {
    Enter(Phase::kBarrier);
    return engine_->Barrier(program_.barrier_kind);
  }
  bool EvaluatesAfter(std::int64_t in_epoch) const {
    return program_.evaluation && program_.evaluation->after_iteration == in_epoch;
  }
  bool EvaluatesHere() const {
    const std::vector<int>& ranks = program_.evaluation->ranks;
    return ranks.empty() || std::ranges::find(ranks, rank_) != ranks.end();
  }

  Status Reach(At at, Phase phase) {
    outcome_.where = {at, epoch_, iteration_};
    Enter(phase);
    return surroundings_.Reach(outcome_.where);
  }
  void Enter(Phase phase) {
    if (ports_.observer != nullptr) ports_.observer->OnPhase(phase);
  }
  void Begin(SectionKind kind, std::int64_t index = 0) {
    if (ports_.observer != nullptr) ports_.observer->OnSection({kind, index});
  }

  const TrainingProgram& program_;
  Module& module_;
  const EnginePorts& ports_;
  TrainingSurroundings& surroundings_;
  int rank_;
  Random random_;
  std::unique_ptr<Engine> engine_;
  std::int64_t epoch_ = 0;
  std::int64_t iteration_ = 0;
  std::int64_t next_input_ = 0;  // of this epoch; evaluation takes some too
  bool ended_ = false;           // the evaluation was the end
  TrainingOutcome outcome_;
};

}  // namespace

TrainingOutcome RunTraining(const TrainingProgram& program, Module& module,
                            const EnginePorts& ports, TrainingSurroundings& surroundings) {
  const Status valid = ValidateProgram(program, ports.communicator.size());
  if (!valid.ok()) {
    TrainingOutcome refused;
    refused.status = valid;
    return refused;
  }
  return Training(program, module, ports, surroundings).Run();
}

}  // namespace lockstep::ddp
