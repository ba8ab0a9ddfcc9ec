// Runs the steps of a script: on the program's thread, or on a lane beside it where a step names a
// stream. Every element of every result that is known is compared.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/random.h"
#include "core/collective/pattern.h"
#include "stress/scenario/scenario.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::workloads {
namespace {

using Kind = scenario::ScriptStep::Kind;

// What checks of results found; written by one thread.
struct Found {
  std::int64_t checked = 0;
  std::int64_t unchecked = 0;
  std::string first_wrong = {};
  std::int64_t wrong_iteration = -1;
};

// Where steps run, with the buffers that they use one after the other.
struct Lane {
  Found found;
  std::unique_ptr<device::Buffer> send;
  std::unique_ptr<device::Buffer> recv;
  std::deque<std::unique_ptr<device::Event>> events;  // that it waits for
  std::unique_ptr<device::Stream> stream;             // null: the program's own. Ends first
};

static_assert(scenario::kMaxScenarioRanks <= collective::Pattern::kMaxWorldSize);

// One call on its lane. Buffers are filled and checked in the order of the lane.
struct Invocation {
  collective::Operation operation;
  std::uint64_t seed = 0;
  std::uint64_t stamp = 0;
  int rank = 0;
  int size = 1;
  std::int64_t iteration = 0;

  collective::Pattern pattern() const { return {seed, operation, size}; }
  void Prepare(const Lane& lane) const {
    pattern().FillSend(lane.send->data(), 0,
                       collective::SendBytes(operation, size) / collective::SizeOf(operation.type),
                       rank, stamp);
    pattern().Poison(lane.recv->data(), 0,
                     collective::RecvBytes(operation, size) / collective::SizeOf(operation.type));
  }
  void Check(Lane& lane) const {
    collective::CheckReport found;
    pattern().CheckRecv(lane.recv->data(), 0,
                        collective::RecvBytes(operation, size) / collective::SizeOf(operation.type),
                        rank, stamp, found);
    lane.found.checked += found.checked;
    if (found.wrong == 0 || !lane.found.first_wrong.empty()) return;
    const collective::WrongElement& first = found.first.front();
    lane.found.wrong_iteration = iteration;
    lane.found.first_wrong =
        fmt::format("{}: {} of {} elements are wrong, element {} is {} instead of {}",
                    collective::DescribeIn(iteration, operation), found.wrong, found.checked,
                    first.element, first.got, first.expected);
  }
};

class ScriptRun {
 public:
  ScriptRun(const scenario::ScriptProgram& program, std::uint64_t seed, const RankPorts& ports)
      : program_(program),
        seed_(seed),
        ports_(ports),
        steps_(program.steps[static_cast<std::size_t>(
            ports.members.empty() ? ports.world.rank()
                                  : ports.members[static_cast<std::size_t>(ports.world.rank())])]) {
  }
  // All streams end before any buffer goes: while one ends, other ranks still read what was posted.
  ~ScriptRun() {
    for (auto& [name, lane] : lanes_) lane.stream.reset();
  }
  ScriptRun(const ScriptRun&) = delete;
  ScriptRun& operator=(const ScriptRun&) = delete;

  RankReport Run() {
    report_.where = "script";
    report_.status = RunAll();
    for (const auto& [name, lane] : lanes_) {
      report_.checked += lane.found.checked;
      report_.unchecked += lane.found.unchecked;
      if (!report_.wrong_data.empty()) continue;
      report_.wrong_data = lane.found.first_wrong;
      report_.wrong_iteration = lane.found.wrong_iteration;
    }
    return report_;
  }

 private:
  Status RunAll() {
    LOCKSTEP_RETURN_IF_ERROR(Connect());
    LOCKSTEP_RETURN_IF_ERROR(Allocate());
    SkipIterations();
    for (std::int64_t round = ports_.first_iteration; round < program_.rounds; ++round) {
      report_.iteration = round;
      report_.completed = round;
      LOCKSTEP_RETURN_IF_ERROR(ports_.gate.Reach(faults::FaultMoment::Kind::kIteration, round));
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        if (steps_[i].kind == Kind::kFinish) return Finish();
        LOCKSTEP_RETURN_IF_ERROR(RunStep(steps_[i], i));
      }
    }
    report_.completed = program_.rounds;
    return Finish();
  }

  Status Connect() {
    ports_.recorded.EnterPhase(journal::Phase::kConnect);
    const std::size_t communicators = program_.communicators.size();
    others_.resize(communicators - 1);
    for (const std::size_t i : program_.creation[static_cast<std::size_t>(ports_.world.rank())]) {
      const std::vector<int>& members = program_.communicators[i].members;
      const bool member = std::binary_search(members.begin(), members.end(), ports_.world.rank());
      LOCKSTEP_ASSIGN_OR_RETURN(
          others_[i - 1], ports_.world.Split(member ? 0 : -1, ports_.world.rank(), Forever()));
    }
    return OkStatus();
  }

  Status Allocate() {
    ports_.recorded.EnterPhase(journal::Phase::kAllocate);
    std::map<std::string, std::int64_t> bytes = {{"", 64}};
    for (const scenario::ScriptStep& step : steps_) {
      const int size = static_cast<int>(program_.communicators[step.communicator].members.size());
      std::int64_t& most = bytes[step.stream];
      most = std::max({most, std::int64_t{64}, collective::SendBytes(step.operation, size),
                       collective::RecvBytes(step.operation, size)});
    }
    if (bytes.size() > 1 && !ports_.streams_call) {
      return Unsupported(
          "the script has streams, and {} is called by one thread only here; use --backend=gloo or "
          "sim",
          ports_.world.capabilities().backend);
    }
    for (const auto& [name, most] : bytes) {
      Lane& lane = lanes_[name];
      LOCKSTEP_ASSIGN_OR_RETURN(lane.send, ports_.device.Allocate(most));
      LOCKSTEP_ASSIGN_OR_RETURN(lane.recv, ports_.device.Allocate(most));
      if (!name.empty()) lane.stream = ports_.device.NewStream();
    }
    return OkStatus();
  }

  // What comes next on the step's stream waits for what is on the other one by now.
  Status WaitFor(const scenario::ScriptStep& step) {
    if (step.wait.empty() || step.wait == step.stream) return OkStatus();
    device::Stream& other = *lanes_.at(step.wait).stream;
    if (step.stream.empty()) return other.Synchronize(Forever());
    Lane& lane = lanes_.at(step.stream);
    while (!lane.events.empty() && lane.events.front()->Reached()) lane.events.pop_front();
    lane.events.push_back(ports_.device.NewEvent());
    other.Record(*lane.events.back());
    lane.stream->WaitFor(*lane.events.back());
    return OkStatus();
  }

  Status RunStep(const scenario::ScriptStep& step, std::size_t index) {
    LOCKSTEP_RETURN_IF_ERROR(WaitFor(step));
    switch (step.kind) {
      case Kind::kCollective:
        return Call(step, index);
      case Kind::kChurn:
      case Kind::kSplit:
        return Churn(step);
      case Kind::kLoad:
        return Pass(step, journal::Phase::kLoad);
      case Kind::kSleep:
      case Kind::kCompute:
        return Pass(step, journal::Phase::kCompute);
      case Kind::kExit:
        ports_.body.Exit(step.exit_code);
        return OkStatus();
      case Kind::kThrow:
        return SystemFailed("the program raised an exception (step 'throw')");
      case Kind::kHang:
        ports_.recorded.EnterPhase(journal::Phase::kCompute);
        return ports_.body.Sleep(static_cast<std::int64_t>(kForEverSeconds * 1e9));
      case Kind::kAllocate:
        ports_.recorded.EnterPhase(journal::Phase::kAllocate);
        return ports_.device.Allocate(step.bytes).status();
      case Kind::kKernel:
        return LaunchKernel();
      case Kind::kWait:
      case Kind::kFinish:
        break;
    }
    return OkStatus();
  }

  Status Call(const scenario::ScriptStep& step, std::size_t index) {
    comm::Communicator* const communicator = CommunicatorOf(step);
    if (communicator == nullptr) {
      // As PyTorch does: it warns, and nothing happens.
      std::string& wrong = lanes_.at("").found.first_wrong;
      if (!wrong.empty()) return OkStatus();
      wrong = fmt::format(
          "{} on '{}', whose members are {}, returned without any effect: {} is none",
          collective::Describe(step.operation), program_.communicators[step.communicator].name,
          fmt::join(program_.communicators[step.communicator].members, ", "), ports_.world.rank());
      return OkStatus();
    }
    for (std::int64_t i = 0; i < step.times; ++i) {
      if (step.communicator == 0) {
        ports_.recorded.AnnotateNext({journal::Purpose::kStep, static_cast<std::int32_t>(index),
                                      static_cast<std::int32_t>(report_.iteration)});
      }
      LOCKSTEP_RETURN_IF_ERROR(CallOn(*communicator, step));
    }
    return OkStatus();
  }

  Status Churn(const scenario::ScriptStep& step) {
    for (std::int64_t i = 0; i < step.times; ++i) {
      comm::Communicator& parent = *CommunicatorOf(step);
      ports_.body.AtMoment();  // alone it waits for nobody
      ports_.recorded.EnterPhase(journal::Phase::kConnect);
      LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<comm::Communicator> made,
                                parent.Split(0, parent.rank(), Forever()));
      if (step.kind == Kind::kSplit) continue;
      LOCKSTEP_RETURN_IF_ERROR(CallOn(*made, step));
    }
    return OkStatus();
  }

  Status Pass(const scenario::ScriptStep& step, journal::Phase phase) {
    for (std::int64_t i = 0; i < step.times; ++i) {
      ports_.recorded.EnterPhase(phase);
      if (!step.stream.empty()) {
        lanes_.at(step.stream).stream->Enqueue([&body = ports_.body, ns = step.ns] {
          return body.Sleep(ns);
        });
        continue;
      }
      LOCKSTEP_RETURN_IF_ERROR(ports_.body.Sleep(step.ns));
    }
    return OkStatus();
  }

  Status LaunchKernel() {
    ports_.recorded.EnterPhase(journal::Phase::kCompute);
    const Lane& own = lanes_.at("");
    // Nothing else in a script scales anything.
    ports_.kernels.Scale(ports_.compute, collective::DataType::kF32, own.recv->data(),
                         own.send->data(), 1, 2.0);
    return ports_.compute.Synchronize(Forever());
  }

  Status CallOn(comm::Communicator& communicator, const scenario::ScriptStep& step) {
    Lane& lane = lanes_.at(step.stream);
    const bool beside = lane.stream != nullptr;
    device::Stream& stream = beside ? *lane.stream : ports_.compute;
    Series& series = SeriesOf(step, communicator.rank());
    const bool check = series.promised && communicator.capabilities().moves_data;
    if (!check && collective::RecvBytes(step.operation, communicator.size()) > 0)
      ++lane.found.unchecked;
    const Invocation invocation = {step.operation,      series.seed,         series.calls++,
                                   communicator.rank(), communicator.size(), report_.iteration};
    if (check && beside) {
      stream.Enqueue([&lane, invocation] { return invocation.Prepare(lane), OkStatus(); });
    } else if (check) {
      invocation.Prepare(lane);
    }
    ports_.recorded.EnterPhase(journal::Phase::kMeasure);
    LOCKSTEP_RETURN_IF_ERROR(
        communicator.Enqueue(step.operation, {lane.send->data(), lane.recv->data()}, stream));
    if (beside) {
      if (check) stream.Enqueue([&lane, invocation] { return invocation.Check(lane), OkStatus(); });
      return OkStatus();
    }
    LOCKSTEP_RETURN_IF_ERROR(communicator.Await(stream, Forever()));
    if (check) invocation.Check(lane);
    return OkStatus();
  }

  Status Finish() {
    const Deadline deadline = Forever();
    for (const auto& [name, lane] : lanes_) {
      if (lane.stream != nullptr) LOCKSTEP_RETURN_IF_ERROR(lane.stream->Synchronize(deadline));
    }
    return ports_.world.Await(ports_.compute, deadline);
  }

  // Results go on where the iterations before have left them.
  void SkipIterations() {
    if (ports_.first_iteration == 0) return;
    for (const scenario::ScriptStep& step : steps_) {
      const comm::Communicator* const communicator = CommunicatorOf(step);
      if (step.kind != Kind::kCollective || communicator == nullptr) continue;
      SeriesOf(step, communicator->rank()).calls +=
          static_cast<std::uint64_t>(ports_.first_iteration * step.times);
    }
  }

  // Calls that stand in one order on all ranks that take part.
  struct Series {
    bool promised = false;
    std::uint64_t seed = 0;
    std::uint64_t calls = 0;
  };

  // Of the communicator's collectives, or of the messages from one of its ranks to another.
  Series& SeriesOf(const scenario::ScriptStep& step, int place) {
    const collective::Collective called = step.operation.collective;
    const bool message = collective::IsMessage(called);
    const bool sends = called == collective::Collective::kSend;
    const int from = !message ? -1 : sends ? place : step.operation.root;
    const int to = !message ? -1 : sends ? step.operation.root : place;
    const auto [found, is_new] = series_.try_emplace({step.communicator, from, to});
    Series& series = found->second;
    if (!is_new) return series;
    series.promised = message
                          ? scenario::PromisesRightMessages(program_, step.communicator, from, to)
                          : program_.promised[step.communicator];
    // What was taken for a result of another communicator, or another rank's message, is wrong.
    series.seed = seed_ + (static_cast<std::uint64_t>(step.communicator) << 32) +
                  (static_cast<std::uint64_t>(to + 1) << 48);
    return series;
  }

  // Null: the rank is no member.
  comm::Communicator* CommunicatorOf(const scenario::ScriptStep& step) {
    return step.communicator == 0 ? &ports_.world : others_[step.communicator - 1].get();
  }

  const scenario::ScriptProgram& program_;
  const std::uint64_t seed_;
  const RankPorts ports_;
  const std::vector<scenario::ScriptStep>& steps_;
  std::vector<std::unique_ptr<comm::Communicator>> others_;  // by index - 1; null: not a member
  // By communicator, sender and receiver; -1: a collective.
  std::map<std::tuple<std::size_t, int, int>, Series> series_;
  RankReport report_;
  std::map<std::string, Lane> lanes_;  // by stream; "": the program's own
};

}  // namespace

RankReport Run(const scenario::ScriptProgram& program, std::uint64_t seed, const RankPorts& ports) {
  const auto run = std::make_shared<ScriptRun>(program, seed, ports);
  RankReport report = run->Run();
  // Streams that are still at it keep what they work on; a simulation unwinds them here.
  if (!report.status.ok() && !ports.virtual_time) report.kept = run;
  return report;
}

}  // namespace lockstep::stress::workloads
