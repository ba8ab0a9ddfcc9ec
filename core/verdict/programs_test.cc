// Real programs of training in simulation, under the rules of each library. The engine really
// writes the journals, and what is wrong with the program is known. All that is said here is
// proved: no rank is ever silent long enough for a suspicion.
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

namespace lockstep::verdict {
namespace {

constexpr std::size_t kEvents = 4096;

class SimSurroundings final : public ddp::TrainingSurroundings {
 public:
  explicit SimSurroundings(comm::sim::RankContext& context) : context_(context) {}
  Status Sleep(std::int64_t ns) override { return context_.Sleep(ns), OkStatus(); }

 private:
  comm::sim::RankContext& context_;
};

struct RankMemory {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines = std::vector<Line>(journal::JournalBytes(kEvents) / sizeof(Line));
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines)); }
};

Status RunRank(const ddp::TrainingProgram& program, comm::sim::SimRules rules,
               comm::sim::RankContext& context, journal::JournalWriter& journal) {
  comm::RecordedCommunicator recorded(context.Connect(), journal, 0);
  device::host::HostKernels kernels;
  SimSurroundings surroundings(context);
  auto module = ddp::MakeSmallModel(
      program.model, {.branch_c = program.branch.At(context.rank()) == 'c'}, kernels);
  if (!module.ok()) return module.status();
  ddp::TrainingOutcome outcome;  // outlives the streams
  // NCCL's calls come back at once; the others block a thread beside the caller.
  const auto compute = rules == comm::sim::SimRules::kNccl ? context.device().NewStream()
                                                           : context.device().NewInlineStream();
  const auto communication = context.device().NewStream();
  ddp::JournalObserver observer(recorded);
  outcome = ddp::RunTraining(
      program, **module, {recorded, context.device(), kernels, *compute, *communication, &observer},
      surroundings);
  if (outcome.status.ok()) journal.Exit(0);
  return outcome.status;
}

RankEvidence EvidenceOf(int rank, const comm::sim::RankEnd& end, RankMemory& memory) {
  RankEvidence evidence;
  evidence.rank = rank;
  evidence.journal = journal::JournalReader(memory.bytes(), kEvents).Newest(kEvents);
  if (end.state == comm::sim::RankState::kFinished) evidence.state = ProcessState::kExited;
  if (end.state == comm::sim::RankState::kFailed) evidence.error = end.message;
  if (end.state == comm::sim::RankState::kCrashed) {
    evidence.state = ProcessState::kSignalled;
    evidence.signal = 6;
  }
  return evidence;
}

std::vector<RankEvidence> Simulate(const ddp::TrainingProgram& program, int ranks,
                                   comm::sim::SimRules rules) {
  std::vector<RankMemory> memory(static_cast<std::size_t>(ranks));
  std::vector<journal::JournalWriter> journals;
  for (RankMemory& one : memory)
    journals.push_back(journal::JournalWriter::Create(one.bytes(), kEvents));
  comm::sim::SimWorld world({.ranks = ranks, .rules = rules});
  const comm::sim::SimReport report = world.Run([&](comm::sim::RankContext& context) {
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
std::string Found(const ddp::TrainingProgram& program, comm::sim::SimRules rules, int ranks = 2) {
  const std::vector<RankEvidence> evidence = Simulate(program, ranks, rules);
  Setting setting;
  setting.deadline_seconds = std::numeric_limits<double>::infinity();
  setting.backend = comm::sim::NameOf(rules);
  const Judgement judgement = Judge(evidence, setting);
  if (judgement.findings.empty()) return std::string(NameOf(judgement.verdict));
  const Finding& first = judgement.findings.front();
  EXPECT_TRUE(first.proved);
  // For who reads the log of a test that fails.
  fmt::print("{}: {}\n{}\n", first.cause.name(), first.message,
             FormatTrace(TraceOf(evidence, setting, judgement, {.rows_before = 2})));
  return fmt::format("{} of {}", first.cause.name(), fmt::join(first.culprits, ","));
}

ddp::TrainingProgram Case(int number, ddp::BarrierKind barrier = ddp::BarrierKind::kNative) {
  ddp::TrainingProgram program;
  program.model = "linear_1_1";
  program.inputs = {{5}};
  program.extra_inputs_per_rank = 1;
  program.join = number == 1 || number == 4 || number == 6;
  if (number == 3 || number == 4) program.barrier = ddp::BarrierPlace::kInLoop;
  if (number == 5 || number == 6) program.barrier = ddp::BarrierPlace::kAfterLoop;
  program.barrier_kind = barrier;
  return program;
}

TEST(Programs, SixCasesOfUnevenInputs) {
  for (const comm::sim::SimRules rules :
       {comm::sim::SimRules::kGloo, comm::sim::SimRules::kMpi, comm::sim::SimRules::kNccl}) {
    SCOPED_TRACE(comm::sim::NameOf(rules));
    for (const int ranks : {2, 3}) {
      EXPECT_EQ(Found(Case(1), rules, ranks), "pass");
      EXPECT_EQ(Found(Case(6), rules, ranks), "pass");
    }
    EXPECT_EQ(Found(Case(2), rules), "uneven_inputs of 0");
    EXPECT_EQ(Found(Case(3), rules), "uneven_inputs of 0");
    EXPECT_EQ(Found(Case(4), rules), "collective_mismatch of 0,1");
    EXPECT_EQ(Found(Case(5), rules), "uneven_inputs of 0");
    // Where the barrier is an all-reduce of one element, the library notices nothing.
    EXPECT_EQ(Found(Case(4, ddp::BarrierKind::kAllReduce), rules), "collective_mismatch of 0,1");
    EXPECT_EQ(Found(Case(5, ddp::BarrierKind::kAllReduce), rules), "uneven_inputs of 0");
  }
}

ddp::TrainingProgram Evaluation(bool grad, ddp::EvaluationProgram::Then then) {
  ddp::TrainingProgram program;
  program.model = "bn_4_4_2";
  program.inputs = {{5}};
  program.evaluation = ddp::EvaluationProgram{.after_iteration = 2, .ranks = {0}, .grad = grad};
  program.evaluation->then = then;
  return program;
}

TEST(Programs, EvaluationOnOneRank) {
  using Then = ddp::EvaluationProgram::Then;
  for (const comm::sim::SimRules rules : {comm::sim::SimRules::kGloo, comm::sim::SimRules::kMpi}) {
    SCOPED_TRACE(comm::sim::NameOf(rules));
    // PyTorch compensates, unless every forward pass of the evaluation broadcasts.
    EXPECT_EQ(Found(Evaluation(false, Then::kTrain), rules), "pass");
    EXPECT_EQ(Found(Evaluation(true, Then::kTrain), rules), "one_sided_evaluation of 0");
    EXPECT_EQ(Found(Evaluation(false, Then::kBarrier), rules), "one_sided_evaluation of 0");
    // Cured in the two ways that the remedy names.
    ddp::TrainingProgram module = Evaluation(false, Then::kBarrier);
    module.evaluation->through = ddp::EvaluationProgram::Through::kModule;
    EXPECT_EQ(Found(module, rules), "pass");
    ddp::TrainingProgram silent = Evaluation(false, Then::kBarrier);
    silent.broadcast_buffers = false;
    EXPECT_EQ(Found(silent, rules), "pass");
  }
  EXPECT_EQ(Found(Evaluation(false, Then::kEnd), comm::sim::SimRules::kGloo),
            "one_sided_evaluation of 0");
}

TEST(Programs, HealthyOnesPass) {
  for (const comm::sim::SimRules rules :
       {comm::sim::SimRules::kGloo, comm::sim::SimRules::kMpi, comm::sim::SimRules::kNccl}) {
    SCOPED_TRACE(comm::sim::NameOf(rules));
    ddp::TrainingProgram program;
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
}  // namespace lockstep::verdict
