// Ends of ranks and planned faults, as entries in the scheduler's list of actions. Unwinding is
// always put off to the next action, because a group may be in the middle of settling calls.
#include "core/comm/sim/state.h"

#include "core/base/check.h"

namespace lockstep::comm::sim {

SimState::SimState(const SimOptions& given)
    : options(given),
      scheduler(given.ranks, given.seed, given.stack_bytes,
                {.silence_ns = given.silence_ns,
                 .switches = given.most_switches,
                 .interrupted = given.interrupted}),
      library{given.rules, given.network, scheduler,
              [this](int member, std::string why) {
                End(member, RankState::kCrashed, std::move(why));
                Unwind(member);
              }},
      ranks(static_cast<std::size_t>(given.ranks)) {}

std::shared_ptr<SimGroup> SimState::NewGroup(std::vector<int> members) {
  auto group =
      std::make_shared<SimGroup>(static_cast<int>(groups.size()), std::move(members), library);
  groups.push_back(group);
  return group;
}

std::shared_ptr<SimSplit> SimState::SplitOf(const SimGroup& group, std::uint64_t nth) {
  const auto place = std::pair(group.id(), nth);
  std::shared_ptr<SimSplit>& kept = splits[place];
  if (kept == nullptr) kept = std::make_shared<SimSplit>();
  std::shared_ptr<SimSplit> split = kept;
  if (split->answers.empty()) split->answers.assign(group.members().size(), {-1, 0});
  if (++split->here == split->answers.size()) splits.erase(place);
  return split;
}

void SimState::End(int rank, RankState how, std::string message, int exit_code) {
  SimRank& record = At(rank);
  if (record.over && !record.lingers) return;
  record.lingers = false;
  record.over = true;
  record.end.state = how;
  record.end.message = std::move(message);
  record.end.exit_code = exit_code;
  record.end.at_ns = scheduler.now_ns();
  if (library.rules != SimRules::kGloo) return;
  // Later, because a group may be at settling right now.
  scheduler.At(scheduler.now_ns(), [this, rank] {
    for (const auto& known : groups) {
      const auto group = known.lock();
      const int place = group == nullptr ? -1 : group->PlaceOf(rank);
      if (place >= 0) group->Close(place);
    }
  });
}

void SimState::Linger(int rank) {
  SimRank& record = At(rank);
  if (record.over) return;
  record.over = true;
  record.lingers = true;
  record.end.state = RankState::kFinished;
  record.end.at_ns = scheduler.now_ns();
}

void SimState::RecordHung(int rank) {
  SimRank& record = At(rank);
  if (record.over) return;
  record.over = true;
  record.end.state = record.stopped ? RankState::kStopped : RankState::kHung;
  record.end.at_ns = scheduler.now_ns();
  record.end.where = record.body->waits_for();
  if (record.open.empty()) return;
  const SimOpenCall& oldest = record.open.front();
  record.end.waiting = SimWaiting{oldest.group, oldest.call->sequence, oldest.call->asked};
  record.end.where = collective::Describe(oldest.call->asked);
}

void SimState::Schedule(const SimFault& fault) {
  LOCKSTEP_CHECK(fault.rank >= 0 && fault.rank < options.ranks, "a fault of a rank");
  scheduler.At(fault.at_ns, [this, fault] {
    switch (fault.kind) {
      case SimFault::Kind::kKill:
        End(fault.rank, RankState::kKilled, "");
        return UnwindNow(fault.rank);
      case SimFault::Kind::kStop:
        At(fault.rank).stopped = true;
        return scheduler.Stop(fault.rank);
      case SimFault::Kind::kContinue:
        At(fault.rank).stopped = false;
        return scheduler.Continue(fault.rank);
    }
  });
}

void SimState::Unwind(int rank) {
  scheduler.At(scheduler.now_ns(), [this, rank] { UnwindNow(rank); });
}

void SimState::UnwindNow(int rank) {
  SimRank& record = At(rank);
  // The work of streams refers to what the body holds, so it goes first.
  for (Task* stream : std::vector<Task*>(record.streams)) scheduler.Cancel(*stream);
  if (record.body != nullptr) scheduler.Cancel(*record.body);
}

}  // namespace lockstep::comm::sim
