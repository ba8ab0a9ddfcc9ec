#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/random.h"
#include "core/collective/pattern.h"
#include "stress/workloads/rank_program.h"

namespace lockstep {
namespace {

using Kind = ScriptStep::Kind;

// Silence is judged from outside; no wait in here gives up before.
constexpr double kForEverSeconds = 24 * 3600;

class ScriptRun {
 public:
  ScriptRun(const ScriptProgram& program, std::uint64_t seed, const RankPorts& ports)
      : program_(program),
        seed_(seed),
        ports_(ports),
        steps_(program.steps[static_cast<std::size_t>(ports.world.rank())]) {}

  RankReport Run() {
    report_.where = "script";
    report_.status = RunAll();
    return report_;
  }

 private:
  Status RunAll();
  Status Connect();
  Status Allocate();
  Status RunStep(const ScriptStep& step, std::size_t index);
  Status Call(const ScriptStep& step, std::size_t index);
  Status Churn(const ScriptStep& step);
  Status Pass(const ScriptStep& step, Phase phase);
  Status CallOn(Communicator& communicator, const ScriptStep& step);

  Communicator& CommunicatorOf(const ScriptStep& step) {
    return step.communicator == 0 ? ports_.world : *others_[step.communicator - 1];
  }

  const ScriptProgram& program_;
  const std::uint64_t seed_;
  const RankPorts& ports_;
  const std::vector<ScriptStep>& steps_;
  std::vector<std::unique_ptr<Communicator>> others_;  // by index - 1; null: not a member
  std::vector<bool> promised_;                         // by communicator
  std::unique_ptr<Buffer> send_;
  std::unique_ptr<Buffer> recv_;
  std::vector<std::uint64_t> calls_;  // by communicator: the same on all of its ranks
  RankReport report_;
};

Status ScriptRun::Connect() {
  ports_.recorded.EnterPhase(Phase::kConnect);
  calls_.resize(program_.communicators.size());
  for (std::size_t i = 0; i < program_.communicators.size(); ++i) {
    promised_.push_back(PromisesRightData(program_, i));
    if (i == 0) continue;
    const std::vector<int>& members = program_.communicators[i].members;
    const bool member = std::binary_search(members.begin(), members.end(), ports_.world.rank());
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> made,
                              ports_.world.Split(member ? 0 : -1, ports_.world.rank(),
                                                 Deadline::AfterSeconds(kForEverSeconds)));
    others_.push_back(std::move(made));
  }
  return OkStatus();
}

Status ScriptRun::Allocate() {
  ports_.recorded.EnterPhase(Phase::kAllocate);
  std::int64_t bytes = 64;
  for (const ScriptStep& step : steps_) {
    const int size = static_cast<int>(program_.communicators[step.communicator].members.size());
    bytes = std::max({bytes, SendBytes(step.operation, size), RecvBytes(step.operation, size)});
  }
  LOCKSTEP_ASSIGN_OR_RETURN(send_, ports_.device.Allocate(bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(recv_, ports_.device.Allocate(bytes));
  return OkStatus();
}

Status ScriptRun::CallOn(Communicator& communicator, const ScriptStep& step) {
  const Operation& operation = step.operation;
  const bool check = promised_[step.communicator] && communicator.capabilities().moves_data;
  const std::uint64_t stamp = calls_[step.communicator]++;
  const Pattern pattern(seed_, operation, communicator.size());
  const std::int64_t sent = SendBytes(operation, communicator.size()) / SizeOf(operation.type);
  const std::int64_t received = RecvBytes(operation, communicator.size()) / SizeOf(operation.type);
  if (check) {
    pattern.FillSend(send_->data(), 0, sent, communicator.rank(), stamp);
    pattern.Poison(recv_->data(), 0, received);
  }
  ports_.recorded.EnterPhase(Phase::kMeasure);
  LOCKSTEP_RETURN_IF_ERROR(
      communicator.Enqueue(operation, {send_->data(), recv_->data()}, ports_.compute));
  LOCKSTEP_RETURN_IF_ERROR(
      communicator.Await(ports_.compute, Deadline::AfterSeconds(kForEverSeconds)));
  if (!check) return OkStatus();
  CheckReport found;
  pattern.CheckRecv(recv_->data(), 0, received, communicator.rank(), stamp, found);
  report_.checked += found.checked;
  if (found.wrong > 0 && report_.wrong_data.empty()) {
    const WrongElement& first = found.first.front();
    report_.wrong_data = fmt::format(
        "{} of iteration {}: {} of {} elements are wrong, element {} is {} instead of {}",
        Describe(operation), report_.iteration, found.wrong, found.checked, first.element,
        first.got, first.expected);
  }
  return OkStatus();
}

Status ScriptRun::Call(const ScriptStep& step, std::size_t index) {
  for (std::int64_t i = 0; i < step.times; ++i) {
    if (step.communicator == 0) {
      ports_.recorded.AnnotateNext({Purpose::kStep, static_cast<std::int32_t>(index),
                                    static_cast<std::int32_t>(report_.iteration)});
    }
    LOCKSTEP_RETURN_IF_ERROR(CallOn(CommunicatorOf(step), step));
  }
  return OkStatus();
}

Status ScriptRun::Churn(const ScriptStep& step) {
  for (std::int64_t i = 0; i < step.times; ++i) {
    Communicator& parent = CommunicatorOf(step);
    ports_.recorded.EnterPhase(Phase::kConnect);
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::unique_ptr<Communicator> made,
        parent.Split(0, parent.rank(), Deadline::AfterSeconds(kForEverSeconds)));
    if (step.kind == Kind::kSplit) continue;
    LOCKSTEP_RETURN_IF_ERROR(CallOn(*made, step));
  }
  return OkStatus();
}

Status ScriptRun::Pass(const ScriptStep& step, Phase phase) {
  for (std::int64_t i = 0; i < step.times; ++i) {
    ports_.recorded.EnterPhase(phase);
    LOCKSTEP_RETURN_IF_ERROR(ports_.body.Sleep(step.ns));
  }
  return OkStatus();
}

Status ScriptRun::RunStep(const ScriptStep& step, std::size_t index) {
  switch (step.kind) {
    case Kind::kCollective:
      return Call(step, index);
    case Kind::kChurn:
    case Kind::kSplit:
      return Churn(step);
    case Kind::kLoad:
      return Pass(step, Phase::kLoad);
    case Kind::kSleep:
    case Kind::kCompute:
      return Pass(step, Phase::kCompute);
    case Kind::kExit:
      ports_.body.Exit(step.exit_code);
      return OkStatus();
    case Kind::kThrow:
      return SystemFailed("the program raised an exception (step 'throw')");
    case Kind::kHang:
      ports_.recorded.EnterPhase(Phase::kCompute);
      return ports_.body.Sleep(static_cast<std::int64_t>(kForEverSeconds * 1e9));
    case Kind::kFinish:
      break;
  }
  return OkStatus();
}

Status ScriptRun::RunAll() {
  LOCKSTEP_RETURN_IF_ERROR(Connect());
  LOCKSTEP_RETURN_IF_ERROR(Allocate());
  for (std::int64_t round = 0; round < program_.rounds; ++round) {
    report_.iteration = round;
    LOCKSTEP_RETURN_IF_ERROR(ports_.gate.Reach(FaultMoment::Kind::kIteration, round));
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].kind == Kind::kFinish) return OkStatus();
      LOCKSTEP_RETURN_IF_ERROR(RunStep(steps_[i], i));
    }
  }
  return ports_.world.Await(ports_.compute, Deadline::AfterSeconds(kForEverSeconds));
}

}  // namespace

RankReport RunScript(const ScriptProgram& program, std::uint64_t seed, const RankPorts& ports) {
  return ScriptRun(program, seed, ports).Run();
}

}  // namespace lockstep
