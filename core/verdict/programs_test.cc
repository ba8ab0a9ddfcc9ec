// Real programs of training in simulation: the journals that the engine really writes, under the
// rules of each library, against what is known to be wrong with the program. All that is said here
// is proved: no rank is ever silent long enough for a suspicion.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/comm/recorded.h"
#include "core/comm/sim/sim_world.h"
#include "core/ddp/journal_observer.h"
#include "core/ddp/small_models.h"
#include "core/ddp/training.h"
#include "core/device/host/host_kernels.h"
#include "core/journal/journal.h"
#include "core/verdict/judge.h"
#include "core/verdict/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr std::size_t kEvents = 4096;

class SimSurroundings final : public TrainingSurroundings {
 public:
  explicit SimSurroundings(RankContext& context) : context_(context) {}
  Status Sleep(std::int64_t ns) override { return context_.Sleep(ns), OkStatus(); }

 private:
  RankContext& context_;
};

struct RankMemory {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines = std::vector<Line>(JournalBytes(kEvents) / sizeof(Line));
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines)); }
};

Status RunRank(const TrainingProgram& program, SimRules rules, RankContext& context,
               JournalWriter& journal) {
  RecordedCommunicator recorded(context.Connect(), journal, 0);
  HostKernels kernels;
  SimSurroundings surroundings(context);
  auto module = MakeSmallModel(program.model,
                               {.branch_c = program.branch.At(context.rank()) == 'c'}, kernels);
  if (!module.ok()) return module.status();
  TrainingOutcome outcome;  // outlives the streams
  // NCCL's calls come back at once; the others block a thread beside the caller.
  const auto compute =
      rules == SimRules::kNccl ? context.device().NewStream() : context.device().NewInlineStream();
  const auto communication = context.device().NewStream();
  JournalObserver observer(recorded);
  outcome = RunTraining(program, **module,
                        {recorded, context.device(), kernels, *compute, *communication, &observer},
                        surroundings);
  if (outcome.status.ok()) journal.Exit(0);
  return outcome.status;
}

RankEvidence EvidenceOf(int rank, const RankEnd& end, RankMemory& memory) {
  RankEvidence evidence;
  evidence.rank = rank;
  evidence.journal = JournalReader(memory.bytes(), kEvents).Newest(kEvents);
  if (end.state == RankState::kFinished) evidence.state = ProcessState::kExited;
  if (end.state == RankState::kFailed) evidence.error = end.message;
  if (end.state == RankState::kCrashed) {
    evidence.state = ProcessState::kSignalled;
    evidence.signal = 6;
  }
  return evidence;
}

std::vector<RankEvidence> Simulate(const TrainingProgram& program, int ranks, SimRules rules) {
  std::vector<RankMemory> memory(static_cast<std::size_t>(ranks));
  std::vector<JournalWriter> journals;
  for (RankMemory& one : memory) journals.push_back(JournalWriter::Create(one.bytes(), kEvents));
  SimWorld world({.ranks = ranks, .rules = rules});
  const SimReport report = world.Run([&](RankContext& context) {
    return RunRank(program, rules, context, journals[static_cast<std::size_t>(context.rank())]);
  });
  std::vector<RankEvidence> evidence;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    evidence.push_back(EvidenceOf(rank, report.ranks[index], memory[index]));
  }
  return evidence;
}

// "uneven_inputs of 0" of the first finding, or the verdict where there is none.
std::string Found(const TrainingProgram& program, SimRules rules, int ranks = 2) {
  const std::vector<RankEvidence> evidence = Simulate(program, ranks, rules);
  Setting setting;
  setting.deadline_seconds = std::numeric_limits<double>::infinity();
  setting.backend = NameOf(rules);
  const Judgement judgement = Judge(evidence, setting);
  if (judgement.findings.empty()) return std::string(NameOf(judgement.verdict));
  const Finding& first = judgement.findings.front();
  EXPECT_TRUE(first.proved);
  // For who reads the log of a test that fails.
  fmt::print("{}: {}\n{}\n", first.cause, first.message,
             FormatTrace(TraceOf(evidence, setting, judgement, {.rows_before = 2})));
  return fmt::format("{} of {}", first.cause, fmt::join(first.culprits, ","));
}

TrainingProgram Case(int number, BarrierKind barrier = BarrierKind::kNative) {
  TrainingProgram program;
  program.model = "linear_1_1";
  program.inputs = {{5}};
  program.extra_inputs_per_rank = 1;
  program.join = number == 1 || number == 4 || number == 6;
  if (number == 3 || number == 4) program.barrier = BarrierPlace::kInLoop;
  if (number == 5 || number == 6) program.barrier = BarrierPlace::kAfterLoop;
  program.barrier_kind = barrier;
  return program;
}

TEST(Programs, SixCasesOfUnevenInputs) {
  for (const SimRules rules : {SimRules::kGloo, SimRules::kMpi, SimRules::kNccl}) {
    SCOPED_TRACE(NameOf(rules));
    for (const int ranks : {2, 3}) {
      EXPECT_EQ(Found(Case(1), rules, ranks), "pass");
      EXPECT_EQ(Found(Case(6), rules, ranks), "pass");
    }
    EXPECT_EQ(Found(Case(2), rules), "uneven_inputs of 0");
    EXPECT_EQ(Found(Case(3), rules), "uneven_inputs of 0");
    EXPECT_EQ(Found(Case(4), rules), "collective_mismatch of 0,1");
    EXPECT_EQ(Found(Case(5), rules), "uneven_inputs of 0");
    // Where the barrier is an all-reduce of one element, the library notices nothing.
    EXPECT_EQ(Found(Case(4, BarrierKind::kAllReduce), rules), "collective_mismatch of 0,1");
    EXPECT_EQ(Found(Case(5, BarrierKind::kAllReduce), rules), "uneven_inputs of 0");
  }
}

TrainingProgram Evaluation(bool grad, EvaluationProgram::Then then) {
  TrainingProgram program;
  program.model = "bn_4_4_2";
  program.inputs = {{5}};
  program.evaluation = EvaluationProgram{.after_iteration = 2, .ranks = {0}, .grad = grad};
  program.evaluation->then = then;
  return program;
}

TEST(Programs, EvaluationOnOneRank) {
  using Then = EvaluationProgram::Then;
  for (const SimRules rules : {SimRules::kGloo, SimRules::kMpi}) {
    SCOPED_TRACE(NameOf(rules));
    // PyTorch compensates, unless every forward pass of the evaluation broadcasts.
    EXPECT_EQ(Found(Evaluation(false, Then::kTrain), rules), "pass");
    EXPECT_EQ(Found(Evaluation(true, Then::kTrain), rules), "one_sided_evaluation of 0");
    EXPECT_EQ(Found(Evaluation(false, Then::kBarrier), rules), "one_sided_evaluation of 0");
    // Cured in the two ways that the remedy names.
    TrainingProgram module = Evaluation(false, Then::kBarrier);
    module.evaluation->through = EvaluationProgram::Through::kModule;
    EXPECT_EQ(Found(module, rules), "pass");
    TrainingProgram silent = Evaluation(false, Then::kBarrier);
    silent.broadcast_buffers = false;
    EXPECT_EQ(Found(silent, rules), "pass");
  }
  EXPECT_EQ(Found(Evaluation(false, Then::kEnd), SimRules::kGloo), "one_sided_evaluation of 0");
}

TEST(Programs, HealthyOnesPass) {
  for (const SimRules rules : {SimRules::kGloo, SimRules::kMpi, SimRules::kNccl}) {
    SCOPED_TRACE(NameOf(rules));
    TrainingProgram program;
    program.model = "two_branch";
    program.find_unused_parameters = true;
    program.branch = {{'b', 'c'}};
    EXPECT_EQ(Found(program, rules), "pass");
    program.branch = {{'b'}};
    program.model = "bn_4_4_2";
    program.find_unused_parameters = false;
    program.no_sync_iterations = {1, 2};
    EXPECT_EQ(Found(program, rules, 3), "pass");
    program.join = true;
    program.extra_inputs_per_rank = 2;
    program.no_sync_iterations = {};
    EXPECT_EQ(Found(program, rules, 3), "pass");
  }
}

}  // namespace
}  // namespace lockstep
