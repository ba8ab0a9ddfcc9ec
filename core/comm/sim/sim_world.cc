// Builds the world, starts a fiber for each rank and reports how every one of them ended. NowTicks
// and deadlines are virtual while it runs. A rank that is left hanging is unwound in the end, so
// that what its stack holds is destroyed.
#include "core/comm/sim/sim_world.h"

#include <exception>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/comm/sim/state.h"

namespace lockstep::comm::sim {

RankContext::RankContext(SimState& state, int rank)
    : state_(state), rank_(rank), device_(NewSimDevice(state, rank)) {}

RankContext::~RankContext() = default;

int RankContext::size() const { return state_.options.ranks; }
std::int64_t RankContext::now_ns() const { return state_.scheduler.now_ns(); }
void RankContext::Sleep(std::int64_t ns) { Pass(ns, "sleep"); }
void RankContext::Compute(std::int64_t ns) { Pass(ns, "compute"); }

void RankContext::Inject(const SimFault& fault) {
  state_.Schedule(fault);
  if (fault.rank == rank_ && fault.at_ns <= now_ns()) Pass(0, "a fault");
}

std::unique_ptr<Communicator> RankContext::Connect() {
  const std::size_t number = state_.At(rank_).connects++;
  if (number == state_.worlds.size()) {
    std::vector<int> everybody(static_cast<std::size_t>(size()));
    std::iota(everybody.begin(), everybody.end(), 0);
    state_.worlds.push_back(state_.NewGroup(std::move(everybody)));
  }
  return NewSimCommunicator(state_, state_.worlds[number], rank_);
}

void RankContext::Meet() {
  const std::size_t number = state_.At(rank_).meets++;
  if (number == state_.met.size()) state_.met.push_back(0);
  if (++state_.met[number] == state_.ranks.size())
    return state_.all_met.NotifyAll(state_.scheduler);
  while (state_.met[number] < state_.ranks.size()) {
    const auto woken = state_.scheduler.Wait(state_.all_met, kNever, "the other ranks");
    if (woken == Scheduler::Woken::kCancelled) return;
  }
}

void RankContext::Exit(int code) { Leave(RankState::kExited, "", code); }
void RankContext::Fail(std::string message) { Leave(RankState::kFailed, std::move(message)); }
void RankContext::Crash(std::string message) { Leave(RankState::kCrashed, std::move(message)); }
void RankContext::Hang() { WaitForEver("nothing: it hangs"); }

void RankContext::Linger() {
  state_.Linger(rank_);
  WaitForEver("the end");
}

void RankContext::HeedInterrupt() {
  if (state_.scheduler.AskInterrupted()) WaitForEver("its program, which was interrupted");
}

void RankContext::Pass(std::int64_t ns, std::string_view what) {
  const std::int64_t now = state_.scheduler.now_ns();
  state_.scheduler.SleepUntil(ns > kNever - now ? kNever : now + ns, what);
}

void RankContext::Leave(RankState how, std::string message, int exit_code) {
  state_.End(rank_, how, std::move(message), exit_code);
  state_.Unwind(rank_);
  WaitForEver("its end");
}

void RankContext::WaitForEver(std::string_view what) {
  WaitList nobody;
  state_.scheduler.Wait(nobody, kNever, what);
  throw Cancelled();  // asked for while the rank is being unwound
}

namespace {

void RunBody(SimState& state, int rank, const SimWorld::Body& body) {
  try {
    RankContext context(state, rank);
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
  static constexpr std::string_view kNames[] = {"finished", "failed",  "exited", "crashed",
                                                "killed",   "stopped", "hung"};
  return kNames[static_cast<std::size_t>(state)];
}

SimWorld::SimWorld(const SimOptions& options) {
  LOCKSTEP_CHECK(options.ranks > 0, "a world has ranks");
  state_ = std::make_unique<SimState>(options);
}

SimWorld::~SimWorld() = default;

void SimWorld::Schedule(const SimFault& fault) { state_->Schedule(fault); }

SimReport SimWorld::Run(const Body& body) {
  LOCKSTEP_CHECK(!std::exchange(ran_, true), "a world runs once");
  SimState& state = *state_;
  const VirtualTime time(state.scheduler.clock());
  for (int rank = 0; rank < state.options.ranks; ++rank) {
    state.At(rank).body =
        std::make_unique<Task>(rank, [&state, rank, &body] { RunBody(state, rank, body); });
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

}  // namespace lockstep::comm::sim
