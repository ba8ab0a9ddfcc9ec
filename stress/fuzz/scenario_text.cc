// A trial in the words of scenario files (stress/scenario/scenario.h).
#include <fmt/format.h>

#include <set>

#include "stress/fuzz/trial.h"

namespace lockstep::stress::fuzz {
namespace {

std::string TextOf(const FuzzTrial& trial, const PlannedCall& call) {
  const collective::Operation& operation = call.operation;
  const collective::CollectiveInfo& info = collective::InfoOf(operation.collective);
  std::string text = fmt::format("{} {}", collective::NameOf(operation.collective),
                                 trial.communicators[call.communicator].name);
  if (operation.collective == collective::Collective::kBarrier) return text;
  text += fmt::format(" {} {}", collective::NameOf(operation.type), operation.count);
  if (info.rooted)
    text += fmt::format(" {}={}", IsMessage(operation) ? "peer" : "root", operation.root);
  if (info.reduces) text += fmt::format(" op={}", collective::NameOf(operation.reduction));
  return text;
}

std::string StreamOf(const FuzzTrial& trial, std::size_t communicator) {
  const std::size_t streams = trial.streams == StreamUse::kTwoFifos ? 2 : 1;
  return fmt::format("s{}", communicator % streams);
}

// " stream=s0 wait=s1", or nothing on the program itself. `used`: streams of the rank.
std::string StreamText(const FuzzTrial& trial, const PlannedCall& call,
                       const std::set<std::string>& used) {
  if (trial.streams == StreamUse::kInline) return "";
  std::string text = " stream=" + StreamOf(trial, call.communicator);
  const std::string other = StreamOf(trial, call.communicator + 1);
  if (trial.waits[call.index] && used.contains(other)) text += " wait=" + other;
  return text;
}

// Of a fault that a script can say; "" of another.
std::string StepOf(const FuzzTrial& trial) {
  if (trial.fault == FuzzFault::kSlow) return fmt::format("sleep {}us", trial.lasts_ns / 1000);
  if (trial.fault == FuzzFault::kExit) return fmt::format("exit {}", trial.seed % 3);
  if (trial.fault == FuzzFault::kThrow) return "throw";
  return trial.fault == FuzzFault::kHang ? "hang" : "";
}

std::string ListOf(const FuzzTrial& trial, int rank) {
  std::vector<std::string> steps;
  const std::string fault = rank == trial.faulty ? StepOf(trial) : "";
  bool injected = fault.empty();
  std::set<std::string> used;
  int since_await = 0;
  for (const PlannedCall& call : RealCalls(trial, rank)) {
    if (!injected && (trial.at_init || call.index >= trial.at)) {
      steps.push_back(fault);
      injected = true;
    }
    steps.push_back(TextOf(trial, call) + StreamText(trial, call, used));
    if (trial.streams == StreamUse::kInline) continue;
    used.insert(StreamOf(trial, call.communicator));
    if (++since_await < trial.calls_an_await) continue;
    since_await = 0;
    for (const std::string& stream : used) steps.push_back("wait " + stream);
  }
  if (!injected) steps.push_back(fault);
  return steps.empty() ? "" : fmt::format("\"{}\"", fmt::join(steps, "\", \""));
}

// The n-th collective that the rank calls, from 1.
std::string MomentOf(const FuzzTrial& trial) {
  if (trial.at_ns >= 0) return fmt::format("time:{}us", trial.at_ns / 1000);
  if (trial.at_init) return "init";
  std::size_t nth = 1;
  const std::vector<PlannedCall> calls = RealCalls(trial, trial.faulty);
  for (const PlannedCall& call : calls) nth += call.index < trial.at ? 1 : 0;
  return nth > calls.size() ? "before:finalize" : fmt::format("collective:{}", nth);
}

std::string_view OutsideFault(FuzzFault fault) {
  if (fault == FuzzFault::kCrash) return "segfault";
  if (fault == FuzzFault::kKill) return "kill";
  return fault == FuzzFault::kStop || fault == FuzzFault::kPause ? "stop" : "";
}

std::string TrainingText(const FuzzTrial& trial) {
  const ddp::TrainingProgram& program = *trial.training;
  std::string text = fmt::format("model = \"{}\"\ninputs = {}\ncompute_us = {}\n", program.model,
                                 program.inputs.values[0], program.compute_us.values[0]);
  if (program.join) {
    text += fmt::format("join = true\nextra_inputs_per_rank = {}\n", program.extra_inputs_per_rank);
  }
  if (program.find_unused_parameters) {
    text += "find_unused_parameters = true\nbranch = [";
    for (const char branch : program.branch.values) text += fmt::format("\"{}\",", branch);
    text.back() = ']';
    text += '\n';
  }
  if (program.evaluation) {
    const std::vector<std::int64_t> inputs(static_cast<std::size_t>(trial.ranks),
                                           program.evaluation->inputs.values[0]);
    text +=
        fmt::format("eval = {{ after_iteration = 0, inputs = [{}] }}\n", fmt::join(inputs, ", "));
  }
  if (program.barrier == ddp::BarrierPlace::kAfterLoop) text += "barrier = \"after_loop\"\n";
  if (trial.fault == FuzzFault::kNone) return text;
  // Scenarios have names for some of the points only.
  return text + fmt::format("# {} of rank {} at {}\n", NameOf(trial.fault), trial.faulty,
                            trial.at_ns >= 0 ? fmt::format("{} ns", trial.at_ns)
                                             : fmt::format("its point {}", trial.at));
}

}  // namespace

std::string ScenarioText(const FuzzTrial& trial) {
  std::string text = fmt::format(
      "name = \"fuzz/{0}\"\ndescription = \"rules {1}, {2} of rank {3}\"\nsource = \"fuzz "
      "--seed={0} --sim-rules={1}\"\nranks = {4}\n\n[workload]\nkind = \"{5}\"\n",
      trial.seed, comm::sim::NameOf(trial.rules), NameOf(trial.fault), trial.faulty, trial.ranks,
      trial.training ? "ddp_training" : "script");
  if (trial.training) return text + TrainingText(trial);
  if (trial.lingers) text += "after_finish = \"linger\"\n";
  std::string others;
  for (std::size_t i = 1; i < trial.communicators.size(); ++i) {
    others += fmt::format("{}{} = [{}]", i > 1 ? ", " : "", trial.communicators[i].name,
                          fmt::join(trial.communicators[i].members, ", "));
  }
  if (!others.empty()) text += fmt::format("communicators = {{ {} }}\n", others);
  for (int rank = 0; rank < trial.ranks; ++rank) {
    text += fmt::format("rank.{} = [{}]\n", rank, ListOf(trial, rank));
  }
  const std::string_view fault = OutsideFault(trial.fault);
  if (fault.empty()) return text;
  text += fmt::format("\n[[fault]]\nkind = \"{}\"\nrank = {}\nat = \"{}\"\n", fault, trial.faulty,
                      MomentOf(trial));
  if (trial.fault == FuzzFault::kPause) {
    text += fmt::format("duration = \"{}us\"\n", trial.lasts_ns / 1000);
  }
  return text;
}

}  // namespace lockstep::stress::fuzz
