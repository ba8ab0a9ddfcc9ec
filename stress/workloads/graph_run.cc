// Calls the collectives of a round once, captures them as a graph, replays it round by round, and
// compares every result.
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/collective/pattern.h"
#include "core/comm/keep_graph.h"
#include "core/device/native_stream.h"
#include "fmt/format.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::workloads {
namespace {

// Says when a replay was launched, and nobody has waited for it yet.
class ToldGraph final : public device::StreamGraph {
 public:
  ToldGraph(std::unique_ptr<device::StreamGraph> graph, std::function<Status()> launched)
      : graph_(std::move(graph)), launched_(std::move(launched)) {}
  Status LaunchOn(void* handle) override {
    LOCKSTEP_RETURN_IF_ERROR(graph_->LaunchOn(handle));
    return launched_();
  }

 private:
  std::unique_ptr<device::StreamGraph> graph_;
  std::function<Status()> launched_;
};

class GraphRun {
 public:
  GraphRun(const scenario::GraphReplayProgram& program, std::uint64_t seed, const RankPorts& ports)
      : program_(program), seed_(seed), ports_(ports) {}

  RankReport Run() {
    report_.status = RunAll();
    return report_;
  }

 private:
  struct Slot {
    collective::Operation operation;
    collective::Pattern pattern;
    std::unique_ptr<device::Buffer> send;
    std::unique_ptr<device::Buffer> recv;
  };

  Status RunAll() {
    report_.where = "call";
    LOCKSTEP_RETURN_IF_ERROR(Allocate());
    for (std::int64_t round = 0; round < program_.rounds; ++round) {
      report_.iteration = round;
      report_.completed = round;
      LOCKSTEP_RETURN_IF_ERROR(RunRound(round));
    }
    report_.completed = program_.rounds;
    return OkStatus();
  }

  Status Allocate() {
    ports_.recorded.EnterPhase(journal::Phase::kAllocate);
    const int size = ports_.world.size();
    for (std::size_t i = 0; i < program_.operations.size(); ++i) {
      const collective::Operation& operation = program_.operations[i];
      Slot slot{operation, collective::Pattern(seed_ + (i << 32), operation, size), nullptr,
                nullptr};
      LOCKSTEP_ASSIGN_OR_RETURN(
          slot.send, ports_.device.Allocate(collective::SendBytes(operation, size) + 64));
      LOCKSTEP_ASSIGN_OR_RETURN(
          slot.recv, ports_.device.Allocate(collective::RecvBytes(operation, size) + 64));
      slots_.push_back(std::move(slot));
    }
    return OkStatus();
  }

  Status RunRound(std::int64_t round) {
    LOCKSTEP_RETURN_IF_ERROR(ports_.gate.Reach(faults::FaultMoment::Kind::kIteration, round));
    Prepare(round);
    ports_.recorded.EnterPhase(journal::Phase::kMeasure);
    if (round == 0) {
      LOCKSTEP_RETURN_IF_ERROR(CallAll(ports_.communication));
      LOCKSTEP_RETURN_IF_ERROR(ports_.world.Await(ports_.communication, Forever()));
    } else {
      if (round == 1) LOCKSTEP_RETURN_IF_ERROR(Capture());
      LOCKSTEP_RETURN_IF_ERROR(Replay());
    }
    if (ports_.world.capabilities().moves_data) Check(round);
    return OkStatus();
  }

  Status CallAll(device::Stream& stream) {
    for (const Slot& slot : slots_) {
      LOCKSTEP_RETURN_IF_ERROR(
          ports_.world.Enqueue(slot.operation, {slot.send->data(), slot.recv->data()}, stream));
    }
    return OkStatus();
  }

  Status Capture() {
    report_.where = "capture";
    LOCKSTEP_ASSIGN_OR_RETURN(captured_, ports_.recorded.CaptureDuring([&] {
      return comm::KeepGraph(ports_.communication,
                             [&](device::Stream& kept) { return CallAll(kept); });
    }));
    captured_->graph = std::make_unique<ToldGraph>(
        std::move(captured_->graph), [&gate = ports_.gate, replay = std::int64_t{0}]() mutable {
          return gate.Reach(faults::FaultMoment::Kind::kReplay, replay++);
        });
    return OkStatus();
  }

  Status Replay() {
    report_.where = "replay";
    LOCKSTEP_ASSIGN_OR_RETURN(const bool skipped, IsSkipped());
    if (skipped) return OkStatus();
    return ports_.recorded.Replay(*captured_, ports_.communication, Forever());
  }

  // A graph is launched or not: what is in it was decided when it was captured.
  Result<bool> IsSkipped() {
    bool skipped = false;
    for (const faults::FaultGate::Taken& taken : ports_.gate.TakeForCall()) {
      if (taken.fault.kind != faults::FaultKind::kSkipCollective) {
        return Unsupported(
            "the fault '{}' cannot change a graph that is replayed; let it befall a call of the "
            "first {}, which become the graph, or skip_collective at an iteration",
            faults::NameOf(taken.fault.kind), 2 * slots_.size());
      }
      ports_.gate.Fired(taken);
      skipped = true;
    }
    return skipped;
  }

  void Prepare(std::int64_t round) {
    const int size = ports_.world.size();
    for (const Slot& slot : slots_) {
      slot.pattern.FillSend(slot.send->data(), 0,
                            Elements(slot, collective::SendBytes(slot.operation, size)),
                            ports_.world.rank(), static_cast<std::uint64_t>(round));
      slot.pattern.Poison(slot.recv->data(), 0,
                          Elements(slot, collective::RecvBytes(slot.operation, size)));
    }
  }

  void Check(std::int64_t round) {
    ports_.recorded.EnterPhase(journal::Phase::kCheck);
    const int size = ports_.world.size();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Slot& slot = slots_[i];
      collective::CheckReport found;
      slot.pattern.CheckRecv(slot.recv->data(), 0,
                             Elements(slot, collective::RecvBytes(slot.operation, size)),
                             ports_.world.rank(), static_cast<std::uint64_t>(round), found);
      report_.checked += found.checked;
      if (found.wrong == 0 || !report_.wrong_data.empty()) continue;
      const collective::WrongElement& first = found.first.front();
      report_.wrong_data = fmt::format(
          "{}, call {} of {} {}: {} of {} elements are wrong, element {} is {} instead of {}",
          collective::Describe(slot.operation), i, round == 0 ? "round" : "replay",
          round == 0 ? round : round - 1, found.wrong, found.checked, first.element, first.got,
          first.expected);
    }
  }

  std::int64_t Elements(const Slot& slot, std::int64_t bytes) const {
    return bytes / collective::SizeOf(slot.operation.type);
  }

  const scenario::GraphReplayProgram& program_;
  const std::uint64_t seed_;
  const RankPorts ports_;
  RankReport report_;
  std::vector<Slot> slots_;
  std::optional<comm::CapturedCalls> captured_;  // ends before the buffers
};

}  // namespace

RankReport Run(const scenario::GraphReplayProgram& program, std::uint64_t seed,
               const RankPorts& ports) {
  const auto run = std::make_shared<GraphRun>(program, seed, ports);
  RankReport report = run->Run();
  // A stream that is still at it keeps what it works on.
  if (!report.status.ok()) report.kept = run;
  return report;
}

}  // namespace lockstep::stress::workloads
