// Draws a random program and a fault from a seed. All ranks have the steps in one order, so that
// without the fault it cannot hang.
#include "stress/fuzz/trial.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/base/random.h"

namespace lockstep::stress::fuzz {
namespace {

constexpr int kMostRanks = 8;
constexpr std::uint64_t kMostCommunicators = 3;  // beside the world
constexpr std::uint64_t kMostSteps = 10;
constexpr std::uint64_t kTrainsOneIn = 40;
constexpr std::int64_t kMicrosecond = 1000;
constexpr std::int64_t kMillisecond = 1'000'000;
// Longer than any proof takes, shorter than the deadline of the judge.
constexpr std::int64_t kMostSlow = 5'000 * kMillisecond;

class Drawing {
 public:
  Drawing(std::uint64_t seed, comm::sim::SimRules rules) : random_(Mix64(seed)) {
    trial_.seed = seed;
    trial_.rules = rules;
  }

  FuzzTrial Draw() {
    trial_.ranks = 2 + static_cast<int>(Below(kMostRanks - 1));
    if (OneIn(kTrainsOneIn)) {
      DrawTraining();
      return std::move(trial_);
    }
    DrawCommunicators();
    const std::uint64_t steps = 1 + Below(kMostSteps);
    while (trial_.steps.size() < steps) {
      DrawStep();
      trial_.compute_ns.push_back(OneIn(4) ? 0 : Spread(10 * kMicrosecond));
    }
    trial_.streams = static_cast<StreamUse>(Below(3));
    trial_.calls_an_await = 1 + static_cast<int>(Below(4));
    trial_.lingers = OneIn(3);
    DrawWaits();
    DrawFault();
    DrawMessages();
    DrawNonblockingCalls();
    return std::move(trial_);
  }

 private:
  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }
  std::int64_t Spread(std::int64_t most) {
    return 1 + static_cast<std::int64_t>(Below(static_cast<std::uint64_t>(most)));
  }

  void DrawCommunicators() {
    std::vector<int> all(static_cast<std::size_t>(trial_.ranks));
    std::iota(all.begin(), all.end(), 0);
    trial_.communicators.push_back({"world", all});
    const std::uint64_t others = OneIn(2) ? 0 : 1 + Below(kMostCommunicators);
    for (std::uint64_t i = 0; i < others; ++i) {
      random_.Shuffle(all);
      const auto size = static_cast<std::ptrdiff_t>(2 + Below(all.size() - 1));
      std::vector<int> members(all.begin(), all.begin() + size);
      std::sort(members.begin(), members.end());
      trial_.communicators.push_back({"c" + std::to_string(i + 1), std::move(members)});
    }
  }

  std::int64_t DrawCount() {
    constexpr std::int64_t kCounts[] = {1, 1, 2, 2, 3, 7, 33, 256, 600, 5000};
    if (OneIn(40)) return 0;
    if (OneIn(400)) return 200'000;
    return kCounts[Below(std::size(kCounts))];
  }

  collective::Operation DrawOperation(int size) {
    constexpr collective::Collective kKinds[] = {
        collective::Collective::kAllReduce, collective::Collective::kAllReduce,
        collective::Collective::kBroadcast, collective::Collective::kBarrier,
        collective::Collective::kAllGather, collective::Collective::kReduceScatter,
        collective::Collective::kReduce};
    for (;;) {
      collective::Operation operation;
      operation.collective = kKinds[Below(std::size(kKinds))];
      if (!comm::sim::SimCapabilities(trial_.rules).supports(operation).ok()) continue;
      if (operation.collective == collective::Collective::kBarrier) return operation;
      operation.type = collective::AllDataTypes()[Below(collective::AllDataTypes().size())];
      operation.count = DrawCount();
      const collective::CollectiveInfo& info = collective::InfoOf(operation.collective);
      if (info.reduces) operation.reduction = static_cast<collective::Reduction>(Below(4));
      if (info.rooted) operation.root = static_cast<int>(Below(static_cast<std::uint64_t>(size)));
      return operation;
    }
  }

  void DrawTraining() {
    constexpr std::string_view kModels[] = {"linear_1_1", "bn_4_4_2", "two_branch"};
    ddp::TrainingProgram program;
    program.model = kModels[Below(std::size(kModels))];
    program.inputs = {{Spread(3)}};
    program.compute_us = {{static_cast<double>(Below(30))}};
    // Each of these is right: what is not is the scenarios' business.
    if (program.model == "two_branch") {
      program.find_unused_parameters = true;
      program.branch.values.clear();
      for (int rank = 0; rank < trial_.ranks; ++rank) {
        program.branch.values.push_back(OneIn(2) ? 'b' : 'c');
      }
    } else if (OneIn(2)) {
      program.join = true;
      program.extra_inputs_per_rank = static_cast<std::int64_t>(Below(3));
    } else if (OneIn(2)) {
      program.evaluation = ddp::EvaluationProgram{.after_iteration = 0, .ranks = {}};
    }
    if (OneIn(3)) program.barrier = ddp::BarrierPlace::kAfterLoop;
    trial_.training = program;
    std::vector<int> all(static_cast<std::size_t>(trial_.ranks));
    std::iota(all.begin(), all.end(), 0);
    trial_.communicators.push_back({"world", all});
    trial_.fault = static_cast<FuzzFault>(Below(static_cast<std::uint64_t>(FuzzFault::kSkip)));
    trial_.faulty = static_cast<int>(Below(static_cast<std::uint64_t>(trial_.ranks)));
    trial_.at = Below(16);
    trial_.lasts_ns = Spread(OneIn(2) ? kMillisecond : kMostSlow);
    const bool timed = trial_.fault == FuzzFault::kKill || trial_.fault == FuzzFault::kStop;
    if (timed && OneIn(2)) trial_.at_ns = Spread(200 * kMicrosecond);
  }

  void DrawStep() {
    scenario::ScriptStep step;
    step.kind = scenario::ScriptStep::Kind::kCollective;
    if (!OneIn(2)) step.communicator = Below(trial_.communicators.size());
    const auto size = static_cast<int>(trial_.communicators[step.communicator].members.size());
    // Programs repeat themselves.
    if (!trial_.steps.empty() && OneIn(3)) {
      const scenario::ScriptStep& before = trial_.steps[Below(trial_.steps.size())];
      if (before.communicator == step.communicator) step.operation = before.operation;
    }
    if (step.operation.count == 0) step.operation = DrawOperation(size);
    trial_.steps.push_back(step);
  }

  // From numbers of its own, so that what a seed draws besides does not depend on it.
  void DrawWaits() {
    Random random(Mix64(trial_.seed ^ 0x3a17));
    for (std::size_t i = 0; i < trial_.steps.size(); ++i) {
      trial_.waits.push_back(trial_.streams == StreamUse::kTwoFifos && random.Below(3) == 0);
    }
  }

  // Some steps become messages; what a rank calls instead of the others stays a collective.
  void DrawMessages() {
    Random random(Mix64(trial_.seed ^ 0x6d73));
    trial_.senders.assign(trial_.steps.size(), -1);
    if (random.Below(2) == 0) return;
    for (std::size_t i = 0; i < trial_.steps.size(); ++i) {
      const std::size_t size = trial_.communicators[trial_.steps[i].communicator].members.size();
      const std::uint64_t sender = random.Below(size);
      const std::uint64_t receiver = (sender + 1 + random.Below(size - 1)) % size;
      if (random.Below(3) != 0 || (Diverges(trial_.fault) && i == trial_.at)) continue;
      collective::Operation& operation = trial_.steps[i].operation;
      const bool barrier = operation.collective == collective::Collective::kBarrier;
      operation = {.collective = collective::Collective::kSend,
                   .type = barrier ? collective::DataType::kF32 : operation.type,
                   .count = barrier ? 7 : operation.count,
                   .root = static_cast<int>(receiver)};
      trial_.senders[i] = static_cast<int>(sender);
    }
  }

  void DrawNonblockingCalls() {
    Random random(Mix64(trial_.seed ^ 0x706f));
    if (trial_.rules == comm::sim::SimRules::kGloo || random.Below(3) != 0) return;
    for (scenario::ScriptStep& step : trial_.steps) {
      if (random.Below(2) == 0) step.operation.blocking = collective::Blocking::kNonblocking;
    }
    if (Diverges(trial_.fault)) {
      trial_.operation.blocking = trial_.steps[trial_.at].operation.blocking;
    }
  }

  void DrawFault() {
    trial_.fault = static_cast<FuzzFault>(Below(kFuzzFaults));
    trial_.faulty = static_cast<int>(Below(static_cast<std::uint64_t>(trial_.ranks)));
    trial_.at = Below(trial_.steps.size());
    if (Diverges(trial_.fault)) return DrawDivergence();
    trial_.lasts_ns = Spread(OneIn(2) ? kMillisecond : kMostSlow);
    // One more place: after the last.
    trial_.at = Below(trial_.steps.size() + 1);
    const FuzzFault fault = trial_.fault;
    if (fault == FuzzFault::kNone) return;
    trial_.at_init = OneIn(12);
    if ((fault == FuzzFault::kKill || fault == FuzzFault::kStop) && OneIn(2)) {
      trial_.at_ns = Spread(static_cast<std::int64_t>(trial_.steps.size()) * 12 * kMicrosecond);
    }
  }

  void DrawDivergence() {
    const scenario::ScriptStep& step = trial_.steps[trial_.at];
    const scenario::ScriptCommunicator& communicator = trial_.communicators[step.communicator];
    const auto size = static_cast<int>(communicator.members.size());
    trial_.faulty = communicator.members[Below(communicator.members.size())];
    trial_.operation = step.operation;
    const collective::CollectiveInfo& info = collective::InfoOf(step.operation.collective);
    const bool has_data = step.operation.collective != collective::Collective::kBarrier;
    switch (trial_.fault) {
      case FuzzFault::kWrongCount:
        if (has_data) trial_.operation.count = OtherCount(step.operation.count);
        break;
      case FuzzFault::kWrongType:
        if (has_data)
          trial_.operation.type =
              collective::AllDataTypes()[Below(collective::AllDataTypes().size())];
        break;
      case FuzzFault::kWrongRoot:
        if (info.rooted) {
          trial_.operation.root = static_cast<int>(Below(static_cast<std::uint64_t>(size)));
        }
        break;
      case FuzzFault::kWrongOp:
        if (info.reduces) trial_.operation.reduction = static_cast<collective::Reduction>(Below(4));
        break;
      case FuzzFault::kWrongKind:
      case FuzzFault::kExtra:
        trial_.operation = OneIn(4) ? step.operation : DrawOperation(size);
        break;
      default:
        break;
    }
  }

  std::int64_t OtherCount(std::int64_t count) {
    switch (Below(4)) {
      case 0:
        return count + 1;
      case 1:
        return std::max<std::int64_t>(1, count - 1);
      case 2:
        return 2 * count + 1;
      default:
        return 1 + DrawCount();
    }
  }

  Random random_;
  FuzzTrial trial_;
};

}  // namespace

std::string_view NameOf(FuzzFault fault) {
  constexpr std::string_view kNames[] = {
      "none",       "slow",       "pause",    "exit",       "throw", "crash",
      "kill",       "stop",       "hang",     "skip",       "extra", "wrong_count",
      "wrong_type", "wrong_root", "wrong_op", "wrong_kind", "swap"};
  static_assert(std::size(kNames) == kFuzzFaults);
  return kNames[static_cast<std::size_t>(fault)];
}

FuzzTrial DrawTrial(std::uint64_t seed, comm::sim::SimRules rules) {
  return Drawing(seed, rules).Draw();
}

bool Includes(const scenario::ScriptCommunicator& communicator, int rank) {
  return std::binary_search(communicator.members.begin(), communicator.members.end(), rank);
}

bool IsMessage(const collective::Operation& operation) {
  return operation.collective == collective::Collective::kSend ||
         operation.collective == collective::Collective::kRecv;
}

bool HasNonblockingCalls(const FuzzTrial& trial) {
  return std::ranges::any_of(trial.steps, [](const scenario::ScriptStep& step) {
    return step.operation.blocking == collective::Blocking::kNonblocking;
  });
}

std::vector<PlannedCall> MeantCalls(const FuzzTrial& trial, int rank) {
  std::vector<PlannedCall> calls;
  for (std::size_t i = 0; i < trial.steps.size(); ++i) {
    const scenario::ScriptStep& step = trial.steps[i];
    const scenario::ScriptCommunicator& communicator = trial.communicators[step.communicator];
    if (!Includes(communicator, rank)) continue;
    PlannedCall call = {i, step.communicator, step.operation};
    if (IsMessage(step.operation)) {
      const auto place = static_cast<int>(std::ranges::lower_bound(communicator.members, rank) -
                                          communicator.members.begin());
      const bool receives = place == step.operation.root;
      if (!receives && place != trial.senders[i]) continue;
      if (receives) {
        call.operation.collective = collective::Collective::kRecv;
        call.operation.root = trial.senders[i];
      }
    }
    calls.push_back(call);
  }
  return calls;
}

std::vector<PlannedCall> RealCalls(const FuzzTrial& trial, int rank) {
  std::vector<PlannedCall> calls = MeantCalls(trial, rank);
  if (!Diverges(trial.fault) || rank != trial.faulty) return calls;
  const auto call = std::ranges::find(calls, trial.at, &PlannedCall::index);
  if (call == calls.end()) return calls;
  if (trial.fault == FuzzFault::kSkip) {
    calls.erase(call);
  } else if (trial.fault == FuzzFault::kExtra) {
    calls.insert(call, {call->index, call->communicator, trial.operation});
  } else if (trial.fault == FuzzFault::kSwap) {
    if (std::next(call) != calls.end()) std::swap(*call, *std::next(call));
  } else {
    call->operation = trial.operation;
  }
  return calls;
}

}  // namespace lockstep::stress::fuzz
