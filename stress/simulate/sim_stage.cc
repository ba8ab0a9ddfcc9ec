// Runs the ranks of one communicator on the simulated network, each with its gate of faults. Faults
// from outside act at their virtual time.
#include "stress/simulate/sim_stage.h"

#include <csignal>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/comm/recorded.h"
#include "core/comm/sim/sim_kernels.h"
#include "core/comm/sim/sim_world.h"
#include "core/journal/journal.h"
#include "stress/faults/fault_gate.h"
#include "stress/faults/faulty_communicator.h"
#include "stress/simulate/sim_memory.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::simulate {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

// What is kept of a rank while and after it runs.
struct KeptRank {
  explicit KeptRank(std::size_t events)
      : capacity(events),
        memory(journal::JournalBytes(events) / sizeof(Line) + 1),
        journal(journal::JournalWriter::Create(std::as_writable_bytes(std::span(memory)), events)) {
  }

  std::size_t capacity;
  std::vector<Line> memory;
  journal::JournalWriter journal;
  std::optional<workloads::ProgramReport> report;
  int own_signal = 0;  // by which an injected crash ended it
  faults::RankMarks marks;
  bool connected = false;
};

class SimBody final : public faults::RankBody, public faults::SimulatedRank {
 public:
  SimBody(comm::sim::RankContext& context, KeptRank& rank,
          const std::vector<faults::PlannedFault>& faults, std::vector<bool>& fired)
      : context_(context), rank_(rank), faults_(faults), fired_(fired) {}

  // A program of one rank may never wait.
  void AtMoment() override {
    if (++moments_ % kMomentsPerQuestion == 0) context_.HeedInterrupt();
  }

  void Journal(std::size_t fault_index) override {
    rank_.journal.Fault(fault_index);
    fired_[fault_index] = true;
  }

  Status ApplyOutside(std::size_t fault_index) override {
    const faults::PlannedFault& fault = faults_[fault_index];
    const std::int64_t now = context_.now_ns();
    if (fault.kind == faults::FaultKind::kStop) {
      // The end first: a stop takes effect at once.
      if (fault.duration_seconds) {
        context_.Inject({comm::sim::SimFault::Kind::kContinue, context_.rank(),
                         now + static_cast<std::int64_t>(*fault.duration_seconds * 1e9)});
      }
      context_.Inject({comm::sim::SimFault::Kind::kStop, context_.rank(), now});
    } else {
      context_.Inject({comm::sim::SimFault::Kind::kKill, context_.rank(), now});
    }
    context_.Sleep(1);  // it takes effect while the rank waits
    return OkStatus();
  }

  void Exit(int code) override { context_.Exit(code); }
  double SecondsSinceStart() override { return static_cast<double>(context_.now_ns()) * 1e-9; }
  Status Sleep(std::int64_t ns) override { return context_.Sleep(ns), OkStatus(); }
  device::Device* device() override { return &context_.device(); }
  faults::SimulatedRank* simulated() override { return this; }
  faults::RankMarks& marks() override { return rank_.marks; }
  void CrashBy(int signal) override {
    rank_.own_signal = signal;
    context_.Exit(128 + signal);
  }
  void Hang() override { context_.Hang(); }

 private:
  static constexpr std::uint64_t kMomentsPerQuestion = 64;

  comm::sim::RankContext& context_;
  std::uint64_t moments_ = 0;
  KeptRank& rank_;
  const std::vector<faults::PlannedFault>& faults_;
  std::vector<bool>& fired_;
};

// With NCCL training computes and communicates on a GPU, and its program goes on meanwhile.
bool ComputesOnGpu(const scenario::Scenario& scenario, comm::sim::SimRules rules) {
  return rules == comm::sim::SimRules::kNccl &&
         std::holds_alternative<ddp::TrainingProgram>(scenario.workload);
}

// The program between its connection and its end.
Status RunConnected(const SimStage& stage, comm::sim::SimRules rules,
                    comm::sim::RankContext& context, KeptRank& rank, SimBody& body,
                    faults::FaultGate& gate) {
  const cases::StressCase& stress_case = *stage.stress_case;
  workloads::RankReport report;  // outlives the streams, which may refer to what it keeps
  comm::sim::SimKernels kernels(context);
  comm::RecordedCommunicator recorded(
      std::make_unique<faults::FaultyLibrary>(context.Connect(), gate), rank.journal,
      static_cast<std::uint16_t>(stage.generation));
  faults::FaultyCalls world(recorded, gate, context.device());
  const std::unique_ptr<device::Stream> compute = ComputesOnGpu(stress_case.scenario, rules)
                                                      ? context.device().NewStream()
                                                      : context.device().NewInlineStream();
  const std::unique_ptr<device::Stream> communication = context.device().NewStream();
  workloads::RankPorts ports = {
      world, recorded, context.device(), kernels, *compute, *communication, gate, body, true, true};
  if (stage.generation > 0) {
    ports.first_iteration = stage.first_iteration;
    ports.members = stage.members;
    ports.restarted = stage.restarted[static_cast<std::size_t>(context.rank())];
  }
  report = workloads::RunWorkload(stress_case.scenario, stress_case.seed, ports);
  rank.report = report;
  if (report.status.ok()) {
    recorded.EnterPhase(journal::Phase::kFinalize);
    report.status = gate.Reach(faults::FaultMoment::Kind::kBeforeFinalize);
    if (!report.status.ok()) rank.report->status = report.status;
  }
  if (report.status.ok()) gate.NeverFinalize();
  rank.journal.Exit(report.status.ok() ? 0 : 1);
  // As a process that raised: it leaves, and waits for none of its streams.
  if (!report.status.ok()) context.Fail(report.status.message());
  if (scenario::Lingers(stress_case.scenario)) context.Linger();
  return OkStatus();
}

// Whether the ranks have other places than at the beginning.
bool Renumbered(const SimStage& stage) {
  return static_cast<int>(stage.members.size()) != stage.stress_case->scenario.ranks;
}

Status RunRank(const SimStage& stage, comm::sim::SimRules rules, comm::sim::RankContext& context,
               KeptRank& rank, std::vector<bool>& fired) {
  rank.journal.EnterPhase(journal::Phase::kStart);
  SimBody body(context, rank, stage.faults, fired);
  faults::FaultGate gate(stage.faults, stage.members[static_cast<std::size_t>(context.rank())],
                         body);
  const bool again = stage.generation > 0;
  const Status begun =
      gate.Reach(again ? faults::FaultMoment::Kind::kRebuild : faults::FaultMoment::Kind::kInit);
  if (!begun.ok()) {
    rank.report = workloads::ProgramReport{.status = begun, .where = "connect"};
    rank.journal.Exit(1);
    return begun;
  }
  rank.journal.EnterPhase(journal::Phase::kConnect);
  // It connects to others than those who wait for it.
  if (again && rank.marks.wrong_membership && Renumbered(stage)) context.Hang();
  context.Meet();  // connecting takes all ranks, as on real ones
  rank.connected = true;
  return RunConnected(stage, rules, context, rank, body, gate);
}

// `looked_ns`: when whoever judges looks.
verdict::RankEvidence EvidenceOf(int number, const comm::sim::RankEnd& end, const KeptRank& rank,
                                 std::int64_t looked_ns) {
  verdict::RankEvidence evidence;
  evidence.rank = number;
  evidence.journal = journal::JournalReader(std::as_bytes(std::span(rank.memory)), rank.capacity)
                         .Newest(rank.capacity);
  evidence.system = end.where;
  const std::vector<journal::JournalEvent>& events = evidence.journal.events;
  const std::int64_t newest = events.empty() ? 0 : static_cast<std::int64_t>(events.back().ticks);
  const auto exited = [&](int code) {
    evidence.state = verdict::ProcessState::kExited;
    evidence.exit_code = code;
  };
  const auto signalled = [&](int signal) {
    evidence.state = verdict::ProcessState::kSignalled;
    evidence.signal = signal;
  };
  switch (end.state) {
    case comm::sim::RankState::kFinished:
      exited(0);
      break;
    case comm::sim::RankState::kFailed:
      exited(1);
      evidence.error = end.message;
      break;
    case comm::sim::RankState::kExited:
      rank.own_signal != 0 ? signalled(rank.own_signal) : exited(end.exit_code);
      break;
    case comm::sim::RankState::kCrashed:
      signalled(SIGABRT);
      break;
    case comm::sim::RankState::kKilled:
      signalled(SIGKILL);
      break;
    case comm::sim::RankState::kStopped:
      evidence.state = verdict::ProcessState::kStopped;
      evidence.signal = SIGSTOP;
      break;
    case comm::sim::RankState::kHung:
      evidence.seconds_silent = static_cast<double>(looked_ns - newest) * 1e-9;
      break;
  }
  return evidence;
}

// It comes by the clock, to a rank that takes part.
bool IsScheduled(const faults::PlannedFault& fault) {
  return faults::SiteOf(fault.kind) == faults::FaultSite::kOutside &&
         fault.moment.kind == faults::FaultMoment::Kind::kTime && fault.rank >= 0;
}

// Faults of the clock; they fire unless the rank is over before.
// The place of a fault's rank among the members; nothing where the fault is none by the clock, or
// its rank has left.
std::optional<int> PlaceOf(const SimStage& stage, const faults::PlannedFault& fault) {
  const auto member = std::ranges::find(stage.members, fault.rank);
  if (!IsScheduled(fault) || member == stage.members.end()) return std::nullopt;
  return static_cast<int>(member - stage.members.begin());
}

void ScheduleFaults(const SimStage& stage, comm::sim::SimWorld& world) {
  for (const faults::PlannedFault& fault : stage.faults) {
    const std::optional<int> place = PlaceOf(stage, fault);
    if (!place) continue;
    const auto at = static_cast<std::int64_t>(fault.moment.seconds * 1e9);
    const bool stops = fault.kind == faults::FaultKind::kStop;
    world.Schedule(
        {stops ? comm::sim::SimFault::Kind::kStop : comm::sim::SimFault::Kind::kKill, *place, at});
    if (!stops || !fault.duration_seconds) continue;
    world.Schedule({comm::sim::SimFault::Kind::kContinue, *place,
                    at + static_cast<std::int64_t>(*fault.duration_seconds * 1e9)});
  }
}

void MarkScheduled(const SimStage& stage, const comm::sim::SimReport& report,
                   std::vector<bool>& fired) {
  for (std::size_t i = 0; i < stage.faults.size(); ++i) {
    const faults::PlannedFault& fault = stage.faults[i];
    const std::optional<int> place = PlaceOf(stage, fault);
    if (!place) continue;
    const comm::sim::RankEnd& end = report.ranks[static_cast<std::size_t>(*place)];
    fired[i] = static_cast<double>(end.at_ns) >= fault.moment.seconds * 1e9;
  }
}

}  // namespace

Status CheckSimMemory(const scenario::Scenario& scenario, comm::sim::SimRules rules) {
  const int fifos = ComputesOnGpu(scenario, rules) ? 2 : 1;
  return CheckSimMemory(scenario.ranks, fifos, RoomOfThisProcess());
}

StageEnd RunStage(const SimStage& stage, comm::sim::SimRules rules, double deadline_seconds,
                  std::vector<bool> fired, const std::function<bool()>& interrupted) {
  const auto ranks = static_cast<int>(stage.members.size());
  std::vector<std::unique_ptr<KeptRank>> kept;
  for (int i = 0; i < ranks; ++i) {
    kept.push_back(std::make_unique<KeptRank>(SimJournalEvents(ranks)));
  }
  StageEnd end;
  end.fired = std::move(fired);
  const auto silence_ns = static_cast<std::int64_t>(deadline_seconds * 1e9);
  comm::sim::SimWorld world({.ranks = ranks,
                             .rules = rules,
                             .seed = stage.stress_case->seed,
                             .silence_ns = silence_ns,
                             .interrupted = interrupted});
  ScheduleFaults(stage, world);
  const comm::sim::SimReport report = world.Run([&](comm::sim::RankContext& context) -> Status {
    KeptRank& rank = *kept[static_cast<std::size_t>(context.rank())];
    try {
      return RunRank(stage, rules, context, rank, end.fired);
    } catch (const std::bad_alloc&) {  // of all ranks together: no fault of this one
      rank.report = workloads::ProgramReport{.status = SimOutOfMemory()};
      return rank.report->status;
    }
  });
  MarkScheduled(stage, report, end.fired);
  end.complete = report.complete;
  // Nothing happens any more for as long as anybody looks, unless that was cut short.
  const std::int64_t looked_ns = report.end_ns + (report.complete ? silence_ns : 0);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    KeptRank& rank = *kept[i];
    end.evidence.push_back(EvidenceOf(stage.members[i], report.ranks[i], rank, looked_ns));
    end.reports.push_back(std::move(rank.report));
    const bool gone = end.evidence.back().state != verdict::ProcessState::kRunning &&
                      report.ranks[i].state != comm::sim::RankState::kFailed;
    end.gone.push_back(gone || rank.marks.raised);
    end.abort_hangs.push_back(rank.marks.abort_hangs);
    end.wrong_membership.push_back(rank.marks.wrong_membership);
    end.connected.push_back(rank.connected);
  }
  return end;
}

}  // namespace lockstep::stress::simulate
