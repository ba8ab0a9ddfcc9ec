// Runs the ranks of a trial on the simulated network, and cuts their journals at a virtual time to
// what agents would know then.
#include "stress/fuzz/simulate.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/base/check.h"
#include "core/base/deadline.h"
#include "core/base/random.h"
#include "core/collective/pattern.h"
#include "core/comm/recorded.h"
#include "core/comm/sim/sim_kernels.h"
#include "core/ddp/journal_observer.h"
#include "core/ddp/small_models.h"
#include "core/ddp/training.h"
#include "core/journal/journal.h"

namespace lockstep::stress::fuzz {
namespace {

constexpr std::size_t kEvents = 256;  // more than a program of ten steps writes
constexpr std::size_t kTrainingEvents = 4096;
constexpr double kForEverSeconds = 1e6;

// Zeroed memory for a journal.
class RankMemory {
 public:
  explicit RankMemory(std::size_t events) : lines_(journal::JournalBytes(events) / sizeof(Line)) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines_)); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
};

// One call's buffers, and whether its result is the one that the program was meant to give.
class Call {
 public:
  Call(const FuzzTrial& trial, const PlannedCall& real, const collective::Operation& meant,
       int size, int rank)
      : real_(real.operation), meant_(meant), size_(size), rank_(rank), stamp_(real.index) {
    // Of the meant operation, so that what ranks send does not depend on who errs.
    const collective::Pattern pattern(trial.seed, meant_, size);
    const auto send = static_cast<std::size_t>(
        std::max(collective::SendBytes(real_, size), collective::SendBytes(meant_, size)));
    const auto receive = static_cast<std::size_t>(
        std::max(collective::RecvBytes(real_, size), collective::RecvBytes(meant_, size)));
    send_.resize(send + 1);
    receive_.resize(receive + 1);
    seed_ = trial.seed;
    pattern.FillSend(send_.data(), 0,
                     collective::SendBytes(meant_, size) / collective::SizeOf(meant_.type), rank,
                     stamp_);
    pattern.Poison(receive_.data(), 0,
                   collective::RecvBytes(meant_, size) / collective::SizeOf(meant_.type));
  }
  const collective::Operation& operation() const { return real_; }
  collective::Buffers buffers() { return {send_.data(), receive_.data()}; }
  std::string Wrong() const {
    collective::CheckReport report;
    collective::Pattern(seed_, meant_, size_)
        .CheckRecv(receive_.data(), 0,
                   collective::RecvBytes(meant_, size_) / collective::SizeOf(meant_.type), rank_,
                   stamp_, report);
    if (report.wrong == 0) return "";
    return fmt::format("step {}, {}: {} of {} elements are wrong", stamp_,
                       collective::Describe(meant_), report.wrong, report.checked);
  }

 private:
  collective::Operation real_, meant_;
  int size_, rank_;
  std::uint64_t stamp_, seed_ = 0;
  std::vector<std::byte> send_, receive_;
};

class RankRun {
 public:
  RankRun(const FuzzTrial& trial, comm::sim::RankContext& context, journal::JournalWriter& journal,
          FuzzRun& run)
      : trial_(trial), context_(context), journal_(journal), run_(run), rank_(context.rank()) {
    meant_.resize(trial.steps.size());
    for (const PlannedCall& call : MeantCalls(trial, rank_)) meant_[call.index] = call.operation;
  }

  Status Run() {
    if (trial_.training) return Train();
    LOCKSTEP_RETURN_IF_ERROR(Inject(trial_.at_init));
    journal_.EnterPhase(journal::Phase::kConnect);
    LOCKSTEP_RETURN_IF_ERROR(Connect());
    journal_.EnterPhase(journal::Phase::kMeasure);
    Status status = CallAll();
    if (!status.ok()) return status;
    Compare();
    journal_.Exit(0);
    if (trial_.lingers) context_.Linger();
    return status;
  }

 private:
  class Surroundings final : public ddp::TrainingSurroundings {
   public:
    explicit Surroundings(RankRun& run) : run_(run) {}
    Status Sleep(std::int64_t ns) override { return run_.context_.Sleep(ns), OkStatus(); }
    Status Reach(const ddp::TrainingPoint&) override {
      return run_.Inject(points_++ >= run_.trial_.at);
    }

   private:
    RankRun& run_;
    std::size_t points_ = 0;
  };

  Status Train() {
    const ddp::TrainingProgram& program = *trial_.training;
    journal_.EnterPhase(journal::Phase::kConnect);
    comm::RecordedCommunicator recorded(context_.Connect(), journal_, 0);
    comm::sim::SimKernels kernels(context_);
    Surroundings surroundings(*this);
    auto module = ddp::MakeSmallModel(
        program.model,
        {.branch_c = program.branch.At(rank_) == 'c', .compute_us = program.compute_us.At(rank_)},
        kernels);
    if (!module.ok()) return module.status();
    ddp::TrainingOutcome outcome;  // outlives the streams
    // NCCL's calls come back at once; the others block a thread beside the caller.
    const auto compute = trial_.rules == comm::sim::SimRules::kNccl
                             ? context_.device().NewStream()
                             : context_.device().NewInlineStream();
    const auto communication = context_.device().NewStream();
    ddp::JournalObserver observer(recorded);
    outcome = ddp::RunTraining(
        program, **module,
        {recorded, context_.device(), kernels, *compute, *communication, &observer}, surroundings);
    if (outcome.status.ok()) journal_.Exit(0);
    return outcome.status;
  }

  Status Connect() {
    others_.push_back(
        std::make_unique<comm::RecordedCommunicator>(context_.Connect(), journal_, 0));
    for (std::size_t i = 1; i < trial_.communicators.size(); ++i) {
      const bool member = Includes(trial_.communicators[i], rank_);
      LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<comm::Communicator> made,
                                others_[0]->Split(member ? 0 : -1, rank_, Forever()));
      others_.push_back(std::move(made));
    }
    const int streams = trial_.streams == StreamUse::kTwoFifos ? 2 : 1;
    for (int i = 0; i < streams; ++i) {
      streams_.push_back(trial_.streams == StreamUse::kInline ? context_.device().NewInlineStream()
                                                              : context_.device().NewStream());
    }
    return OkStatus();
  }

  Status CallAll() {
    Random random(trial_.seed + static_cast<std::uint64_t>(rank_));
    int since_await = 0;
    for (const PlannedCall& planned : RealCalls(trial_, rank_)) {
      LOCKSTEP_RETURN_IF_ERROR(Inject(!trial_.at_init && planned.index >= trial_.at));
      const auto longest = static_cast<std::uint64_t>(trial_.compute_ns[planned.index]);
      const auto spread = static_cast<std::int64_t>(random.Below(longest + 1));
      if (longest > 0) context_.Compute(spread);
      calls_.push_back(std::make_unique<Call>(trial_, planned, meant_[planned.index],
                                              others_[planned.communicator]->size(),
                                              others_[planned.communicator]->rank()));
      if (trial_.waits[planned.index]) WaitForOther(planned.communicator);
      LOCKSTEP_RETURN_IF_ERROR(others_[planned.communicator]->Enqueue(
          planned.operation, calls_.back()->buffers(), StreamOf(planned.communicator)));
      if (++since_await < trial_.calls_an_await) continue;
      since_await = 0;
      LOCKSTEP_RETURN_IF_ERROR(AwaitAll());
    }
    LOCKSTEP_RETURN_IF_ERROR(AwaitAll());
    return Inject(!trial_.at_init);
  }

  device::Stream& StreamOf(std::size_t communicator) {
    return *streams_[communicator % streams_.size()];
  }

  void WaitForOther(std::size_t communicator) {
    if (streams_.size() < 2) return;
    events_.push_back(context_.device().NewEvent());
    StreamOf(communicator + 1).Record(*events_.back());
    StreamOf(communicator).WaitFor(*events_.back());
  }

  Status AwaitAll() {
    for (std::size_t i = 0; i < others_.size(); ++i) {
      if (others_[i] == nullptr) continue;
      LOCKSTEP_RETURN_IF_ERROR(others_[i]->Await(StreamOf(i), Forever()));
    }
    return OkStatus();
  }

  void Compare() {
    std::string& wrong = run_.wrong[static_cast<std::size_t>(rank_)];
    for (const auto& call : calls_) {
      if (wrong.empty()) wrong = call->Wrong();
    }
  }

  // Injects the fault into this rank here, once.
  Status Inject(bool here) {
    const bool timed = trial_.at_ns >= 0;
    if (!here || timed || injected_ || rank_ != trial_.faulty || Diverges(trial_.fault)) {
      return OkStatus();
    }
    injected_ = true;
    if (trial_.fault == FuzzFault::kNone) return OkStatus();
    run_.fault_ns = context_.now_ns();
    switch (trial_.fault) {
      case FuzzFault::kSlow:
        context_.Sleep(trial_.lasts_ns);
        break;
      case FuzzFault::kPause:
        context_.Inject(
            {comm::sim::SimFault::Kind::kContinue, rank_, context_.now_ns() + trial_.lasts_ns});
        context_.Inject({comm::sim::SimFault::Kind::kStop, rank_, context_.now_ns()});
        break;
      case FuzzFault::kStop:
        context_.Inject({comm::sim::SimFault::Kind::kStop, rank_, context_.now_ns()});
        break;
      case FuzzFault::kKill:
        context_.Inject({comm::sim::SimFault::Kind::kKill, rank_, context_.now_ns()});
        break;
      case FuzzFault::kExit:
        context_.Exit(static_cast<int>(trial_.seed % 3));
      case FuzzFault::kCrash:
        context_.Crash("a crash of the program");
      case FuzzFault::kHang:
        context_.Hang();
      case FuzzFault::kThrow:
        return SystemFailed("the program raised an exception");
      default:
        break;
    }
    return OkStatus();
  }

  static Deadline Forever() { return Deadline::AfterSeconds(kForEverSeconds); }

  const FuzzTrial& trial_;
  comm::sim::RankContext& context_;
  journal::JournalWriter& journal_;
  FuzzRun& run_;
  int rank_;
  bool injected_ = false;
  std::vector<collective::Operation> meant_;  // by step
  // What streams refer to goes after them.
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::unique_ptr<comm::Communicator>> others_;  // by communicator; null: not a member
  std::vector<std::unique_ptr<device::Event>> events_;
  std::vector<std::unique_ptr<device::Stream>> streams_;
};

bool IsTimed(const FuzzTrial& trial) {
  return trial.at_ns >= 0 && (trial.fault == FuzzFault::kKill || trial.fault == FuzzFault::kStop);
}

bool IsOver(comm::sim::RankState state) {
  return state != comm::sim::RankState::kHung && state != comm::sim::RankState::kStopped;
}

// A stopped rank is what the program's faults stop; it stays so, but for a pause.
bool StoppedAt(const FuzzTrial& trial, const FuzzRun& run, int rank, std::int64_t ns) {
  return trial.fault == FuzzFault::kStop && rank == trial.faulty && run.fault_ns >= 0 &&
         run.fault_ns <= ns;
}

void DescribeEnd(const FuzzTrial& trial, const comm::sim::RankEnd& end,
                 verdict::RankEvidence& evidence) {
  switch (end.state) {
    case comm::sim::RankState::kFinished:
      evidence.state = verdict::ProcessState::kExited;
      return;
    case comm::sim::RankState::kFailed:
      evidence.error = end.message;
      return;
    case comm::sim::RankState::kExited:
      evidence.state = verdict::ProcessState::kExited;
      evidence.exit_code = end.exit_code;
      return;
    case comm::sim::RankState::kCrashed:
      evidence.state = verdict::ProcessState::kSignalled;
      evidence.signal = trial.fault == FuzzFault::kCrash ? SIGSEGV : SIGABRT;
      return;
    case comm::sim::RankState::kKilled:
      evidence.state = verdict::ProcessState::kSignalled;
      evidence.signal = SIGKILL;
      return;
    case comm::sim::RankState::kStopped:
    case comm::sim::RankState::kHung:
      return;
  }
}

}  // namespace

FuzzRun Simulate(const FuzzTrial& trial) {
  FuzzRun run;
  const auto ranks = static_cast<std::size_t>(trial.ranks);
  const std::size_t events = trial.training ? kTrainingEvents : kEvents;
  std::vector<RankMemory> memory(ranks, RankMemory(events));
  std::vector<journal::JournalWriter> writers;
  for (RankMemory& one : memory)
    writers.push_back(journal::JournalWriter::Create(one.bytes(), events));
  run.wrong.resize(ranks);
  comm::sim::SimOptions options = {.ranks = trial.ranks, .rules = trial.rules, .seed = trial.seed};
  options.network.jitter = 2 * Random(trial.seed).Uniform();
  comm::sim::SimWorld world(options);
  if (IsTimed(trial)) {
    const bool kill = trial.fault == FuzzFault::kKill;
    world.Schedule({kill ? comm::sim::SimFault::Kind::kKill : comm::sim::SimFault::Kind::kStop,
                    trial.faulty, trial.at_ns});
  }
  run.report = world.Run([&](comm::sim::RankContext& context) {
    journal::JournalWriter& journal = writers[static_cast<std::size_t>(context.rank())];
    return RankRun(trial, context, journal, run).Run();
  });
  LOCKSTEP_CHECK(run.report.complete, "a program of few steps comes to its end");
  for (RankMemory& one : memory) {
    run.journals.push_back(journal::JournalReader(one.bytes(), events).Newest(events));
    LOCKSTEP_CHECK(run.journals.back().missed == 0, "the journal holds a whole program");
  }
  const comm::sim::RankEnd& end = run.report.ranks[static_cast<std::size_t>(trial.faulty)];
  // Its streams are unwound before anyone hears of what it raised.
  if (trial.fault == FuzzFault::kThrow && run.fault_ns >= 0) run.fault_ns = end.at_ns;
  if (IsTimed(trial)) {
    const comm::sim::RankState state = end.state;
    const bool fired =
        state == comm::sim::RankState::kKilled || state == comm::sim::RankState::kStopped;
    if (fired) run.fault_ns = trial.at_ns;
  }
  return run;
}

std::vector<verdict::RankEvidence> EvidenceAt(const FuzzTrial& trial, const FuzzRun& run,
                                              std::int64_t ns) {
  std::vector<verdict::RankEvidence> all;
  for (int rank = 0; rank < trial.ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const comm::sim::RankEnd& end = run.report.ranks[index];
    verdict::RankEvidence evidence;
    evidence.rank = rank;
    for (const journal::JournalEvent& event : run.journals[index].events) {
      if (static_cast<std::int64_t>(event.ticks) > ns) break;
      evidence.journal.events.push_back(event);
    }
    if (StoppedAt(trial, run, rank, ns)) {
      evidence.state = verdict::ProcessState::kStopped;
      evidence.signal = SIGSTOP;
    } else if (IsOver(end.state) && end.at_ns <= ns) {
      DescribeEnd(trial, end, evidence);
    }
    const auto& events = evidence.journal.events;
    const auto newest = events.empty() ? 0 : static_cast<std::int64_t>(events.back().ticks);
    evidence.seconds_silent =
        ns == kAtTheEnd ? kForEverSeconds : static_cast<double>(ns - newest) / 1e9;
    all.push_back(std::move(evidence));
  }
  return all;
}

verdict::Setting SettingOf(const FuzzTrial& trial) {
  verdict::Setting setting;
  setting.backend = comm::sim::NameOf(trial.rules);
  setting.nonblocking_calls = HasNonblockingCalls(trial);
  setting.one_stream = trial.streams != StreamUse::kTwoFifos && !setting.nonblocking_calls;
  for (std::size_t i = 1; i < trial.communicators.size(); ++i) {
    setting.groups.push_back({static_cast<std::uint16_t>(i), trial.communicators[i].name,
                              trial.communicators[i].members});
  }
  return setting;
}

}  // namespace lockstep::stress::fuzz
