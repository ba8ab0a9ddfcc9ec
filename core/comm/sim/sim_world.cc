#include "core/comm/sim/sim_world.h"

#include <exception>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/comm/sim/sim_communicator.h"
#include "core/comm/sim/sim_device.h"
#include "core/comm/sim/state.h"

namespace lockstep {
namespace {

class Context final : public RankContext {
 public:
  Context(SimState& state, int rank)
      : state_(state), rank_(rank), device_(NewSimDevice(state, rank)) {}

  int rank() const override { return rank_; }
  int size() const override { return state_.options.ranks; }
  Device& device() override { return *device_; }
  std::int64_t now_ns() const override { return state_.scheduler.now_ns(); }

  std::unique_ptr<Communicator> Connect() override {
    const std::size_t number = state_.At(rank_).connects++;
    if (number == state_.worlds.size()) {
      std::vector<int> everybody(static_cast<std::size_t>(size()));
      std::iota(everybody.begin(), everybody.end(), 0);
      state_.worlds.push_back(state_.NewGroup(std::move(everybody)));
    }
    return NewSimCommunicator(state_, state_.worlds[number], rank_);
  }
  void Sleep(std::int64_t ns) override { Pass(ns, "sleep"); }
  void Compute(std::int64_t ns) override { Pass(ns, "compute"); }
  [[noreturn]] void Exit(int code) override {
    state_.End(rank_, RankState::kExited, "", code);
    Leave();
  }
  [[noreturn]] void Fail(std::string message) override {
    state_.End(rank_, RankState::kFailed, std::move(message));
    Leave();
  }
  [[noreturn]] void Hang() override { WaitForEver("nothing: it hangs"); }
  [[noreturn]] void Linger() override {
    state_.Linger(rank_);
    WaitForEver("the end");
  }
  void Inject(const SimFault& fault) override { state_.Schedule(fault); }

 private:
  void Pass(std::int64_t ns, std::string_view what) {
    const std::int64_t now = state_.scheduler.now_ns();
    state_.scheduler.SleepUntil(ns > kNever - now ? kNever : now + ns, what);
  }
  [[noreturn]] void Leave() {
    state_.Unwind(rank_);
    WaitForEver("its end");
  }
  [[noreturn]] void WaitForEver(std::string_view what) {
    WaitList nobody;
    state_.scheduler.Wait(nobody, kNever, what);
    throw Cancelled();  // asked for while the rank is being unwound
  }

  SimState& state_;
  int rank_;
  std::unique_ptr<Device> device_;
};

void RunBody(SimState& state, int rank, const SimWorld::Body& body) {
  try {
    Context context(state, rank);
    const Status status = body(context);
    if (status.ok()) return state.End(rank, RankState::kFinished, "");
    state.End(rank, RankState::kFailed, status.message());
  } catch (const Cancelled&) {
    // Its end is on record.
  } catch (const std::exception& error) {
    state.End(rank, RankState::kFailed, error.what());
  }
}

}  // namespace

std::string_view NameOf(RankState state) {
  switch (state) {
    case RankState::kFinished:
      return "finished";
    case RankState::kFailed:
      return "failed";
    case RankState::kExited:
      return "exited";
    case RankState::kCrashed:
      return "crashed";
    case RankState::kKilled:
      return "killed";
    case RankState::kStopped:
      return "stopped";
    case RankState::kHung:
      return "hung";
  }
  return "";
}

class SimWorld::Impl {
 public:
  explicit Impl(const SimOptions& options) : state(options) {}
  SimState state;
  bool ran = false;
};

SimWorld::SimWorld(const SimOptions& options) {
  LOCKSTEP_CHECK(options.ranks > 0, "a world has ranks");
  impl_ = std::make_unique<Impl>(options);
}

SimWorld::~SimWorld() = default;

void SimWorld::Schedule(const SimFault& fault) { impl_->state.Schedule(fault); }

SimReport SimWorld::Run(const Body& body) {
  LOCKSTEP_CHECK(!std::exchange(impl_->ran, true), "a world runs once");
  SimState& state = impl_->state;
  const VirtualTime time(state.scheduler.clock());
  for (int rank = 0; rank < state.options.ranks; ++rank) {
    state.At(rank).body = std::make_unique<Task>(
        rank, [&state, rank, &body] { RunBody(state, rank, body); });
    state.scheduler.Start(*state.At(rank).body);
  }
  SimReport report;
  report.complete = state.scheduler.Run() == Scheduler::Ended::kQuiet;
  report.end_ns = state.scheduler.now_ns();
  for (int rank = 0; rank < state.options.ranks; ++rank) state.RecordHung(rank);
  for (int rank = 0; rank < state.options.ranks; ++rank) state.UnwindNow(rank);
  for (SimRank& rank : state.ranks) report.ranks.push_back(std::move(rank.end));
  return report;
}

}  // namespace lockstep
