// Calls meet at places; here it is decided when a call has all that it needs. Broadcast and reduce
// advance along the tree of the rules, so a rank can be done before others arrive. Closed
// connections fail the calls that need them. Time comes from the network's formulas.
#include "core/comm/sim/group.h"

#include <algorithm>
#include <iterator>

#include "core/base/check.h"
#include "fmt/format.h"

namespace lockstep::comm::sim {
namespace {

bool SameOperation(const Operation& a, const Operation& b) {
  const collective::CollectiveInfo& info = collective::InfoOf(a.collective);
  return a.collective == b.collective && a.count == b.count && a.type == b.type &&
         (!info.reduces || a.reduction == b.reduction) && (!info.rooted || a.root == b.root);
}

std::shared_ptr<const std::vector<std::byte>> CopyOf(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  if (bytes == 0) return std::make_shared<std::vector<std::byte>>();
  return std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
}

}  // namespace

int SimGroup::PlaceOf(int member) const {
  const auto own = static_cast<std::size_t>(member);
  if (own < members_.size() && members_[own] == member) return member;  // in a world
  const auto found = std::ranges::find(members_, member);
  return found == members_.end() ? -1 : static_cast<int>(found - members_.begin());
}

std::shared_ptr<SimCall>& SimGroup::PlaceIn(SimMeeting& meeting, const SimCall& call) const {
  if (!collective::IsMessage(call.run.collective))
    return meeting.calls[static_cast<std::size_t>(call.rank)];
  return meeting.calls[call.run.collective == Collective::kRecv ? 1 : 0];
}

void SimGroup::Post(const std::shared_ptr<SimCall>& call) {
  SimMeeting& meeting = meetings_[call->place];
  if (meeting.calls.empty()) {
    meeting.calls.resize(collective::IsMessage(call->run.collective) ? 2 : members_.size());
  }
  auto& place = PlaceIn(meeting, *call);
  LOCKSTEP_CHECK(place == nullptr, "a rank comes to a meeting place once");
  place = call;
  if (meeting.here++ == 0) meeting.first = call->run;
  meeting.uniform = meeting.uniform && SameOperation(meeting.first, call->run);
  meeting.mixed = meeting.mixed || meeting.first.collective != call->run.collective;
  const auto gone =
      std::ranges::find_if(closed_, [&](int peer) { return Needs(meeting, *call, peer); });
  if (gone != closed_.end()) {
    FailClosed(meeting, *call, *gone);
  } else {
    Advance(meeting, *call);
  }
  if (meeting.settled == meeting.calls.size()) meetings_.erase(call->place);
}

// Its rank never comes to that place again, so those who need everybody wait for ever.
void SimGroup::Withdraw(const SimCall& call) {
  const auto found = meetings_.find(call.place);
  if (found == meetings_.end() || call.settled || found->second.calls.empty()) return;
  auto& place = PlaceIn(found->second, call);
  if (place.get() != &call) return;  // it did not get there
  place = nullptr;
  --found->second.here;
}

void SimGroup::Close(int rank) {
  if (!closed_.insert(rank).second) return;
  for (auto at = meetings_.begin(); at != meetings_.end();) {
    SimMeeting& meeting = at->second;
    for (const auto& call : meeting.calls) {
      if (call != nullptr && !call->settled && Needs(meeting, *call, rank)) {
        FailClosed(meeting, *call, rank);
      }
    }
    at = meeting.settled == meeting.calls.size() ? meetings_.erase(at) : std::next(at);
  }
}

// In a broadcast only until the data has passed between the two.
bool SimGroup::Needs(const SimMeeting& meeting, const SimCall& call, int peer) const {
  if (call.rank == peer) return true;
  if (collective::IsMessage(call.run.collective)) return call.run.root == peer;
  if (call.run.collective != Collective::kBroadcast) return true;
  const auto holds = [&](int rank) {
    return meeting.At(rank) != nullptr && meeting.At(rank)->holds;
  };
  bool needs = false;
  ForEachChild(library_.rules, call.rank, call.run.root, size(),
               [&](int child) { needs = needs || (child == peer && !holds(child)); });
  for (int above = call.rank; above >= 0 && !needs && !holds(above);) {
    above = ParentOf(library_.rules, above, call.run.root, size());
    needs = above == peer;
  }
  return needs;
}

void SimGroup::FailClosed(SimMeeting& meeting, SimCall& call, int peer) {
  const std::string why = call.rank == peer ? "the connections of this rank are closed"
                                            : fmt::format("Connection closed by peer (rank {})",
                                                          members_[static_cast<std::size_t>(peer)]);
  Settle(meeting, call, library_.network.alpha_ns, {.kind = SimFate::Kind::kError, .message = why});
}

void SimGroup::Settle(SimMeeting& meeting, SimCall& call, double ns, SimFate fate) {
  if (fate.kind == SimFate::Kind::kWaits) return;
  LOCKSTEP_CHECK(!call.settled, "a call is settled once");
  Scheduler& scheduler = library_.scheduler;
  ++meeting.settled;
  call.settled = true;
  call.done_at_ns = scheduler.now_ns() + DrawNs(library_.network, ns, scheduler.random());
  call.delivery = std::move(fate.delivery);
  if (fate.kind == SimFate::Kind::kError) {
    call.status = SystemFailed("{}: {}: {}", SimCapabilities(library_.rules).backend,
                               collective::Describe(call.asked), fate.message);
  }
  if (fate.kind == SimFate::Kind::kCrash) {
    call.status = SystemFailed(fate.message);
    library_.crash(members_[static_cast<std::size_t>(call.rank)],
                   fmt::format("{}: {}", collective::Describe(call.asked), fate.message));
  }
  call.changed.NotifyAll(scheduler);
}

void SimGroup::Advance(SimMeeting& meeting, SimCall& arrived) {
  const Collective collective = arrived.run.collective;
  if (collective::IsMessage(collective)) return SettleMessage(meeting, arrived);
  const bool gloo = library_.rules == SimRules::kGloo;
  if (meeting.mixed) {
    // Nobody else is heard of; see rules.h.
  } else if (collective == Collective::kBroadcast) {
    return AdvanceBroadcast(meeting, arrived);
  } else if (collective == Collective::kReduce && !gloo) {
    return AdvanceReduce(meeting, arrived);
  }
  if (meeting.here == meeting.calls.size() && !meeting.mixed) SettleAll(meeting);
}

void SimGroup::SettleAll(SimMeeting& meeting) {
  SimCalls calls;
  calls.reserve(meeting.calls.size());
  double ns = 0;
  for (const auto& call : meeting.calls) calls.push_back(call.get());
  for (const auto& call : meeting.calls) {
    ns = std::max(ns, CollectiveNs(library_.network, call->run, size()));
    if (meeting.uniform) break;
  }
  std::vector<SimFate> fates =
      meeting.uniform ? FatesOfEqual(calls) : FatesOfDifferent(library_.rules, calls);
  for (std::size_t rank = 0; rank < fates.size(); ++rank) {
    Settle(meeting, *meeting.calls[rank], ns, std::move(fates[rank]));
  }
}

void SimGroup::SettleMessage(SimMeeting& meeting, SimCall& arrived) {
  SimCall* const sender = meeting.At(0);
  SimCall* const receiver = meeting.At(1);
  const double ns = CollectiveNs(library_.network, arrived.run, 2);
  if (&arrived == sender) sender->held = CopyOf(sender->buffers.send, sender->SendSize());
  if (sender == nullptr) return;
  const bool eager = static_cast<std::int64_t>(sender->SendSize()) <= EagerBytes(library_.rules);
  if (!sender->settled && (eager || receiver != nullptr)) {
    Settle(meeting, *sender, ns, {.kind = SimFate::Kind::kDone});
  }
  if (receiver == nullptr) return;
  Settle(meeting, *receiver, ns, FateOfMessage(library_.rules, *receiver, sender->held));
}

SimCall* SimGroup::ParentIn(const SimMeeting& meeting, const SimCall& call) const {
  const int parent = ParentOf(library_.rules, call.rank, call.run.root, size());
  if (parent < 0) return nullptr;
  SimCall* const above = meeting.At(parent);
  return above != nullptr && ChildIn(meeting, *above, call.rank) == &call ? above : nullptr;
}

SimCall* SimGroup::ChildIn(const SimMeeting& meeting, const SimCall& call, int child) const {
  SimCall* const below = meeting.At(child);
  const bool is_above = ParentOf(library_.rules, child, call.run.root, size()) == call.rank;
  return is_above && below != nullptr &&
                 ParentOf(library_.rules, child, below->run.root, size()) == call.rank
             ? below
             : nullptr;
}

bool SimGroup::ChildrenAre(const SimMeeting& meeting, const SimCall& call, bool holding) const {
  bool all = true;
  ForEachChild(library_.rules, call.rank, call.run.root, size(), [&](int child) {
    const SimCall* const below = all ? ChildIn(meeting, call, child) : nullptr;
    all = below != nullptr && (!holding || below->holds);
  });
  return all;
}

// The call has the data of the rank above it, if that one has.
bool SimGroup::ReceiveFromParent(SimMeeting& meeting, SimCall& call) {
  if (call.holds || call.settled) return call.holds;
  if (call.rank == call.run.root) {
    call.held = CopyOf(call.buffers.send, call.BlockSize());
    call.delivery = {call.held, 0, call.held->size()};
    return call.holds = true;
  }
  const SimCall* const above = ParentIn(meeting, call);
  if (above == nullptr || !above->holds) return false;
  SimFate fate = FateOfMessage(library_.rules, call, above->held);
  if (fate.kind == SimFate::Kind::kDone) {
    call.delivery = fate.delivery;
    call.held = fate.delivery.data;
    return call.holds = true;
  }
  Settle(meeting, call, CollectiveNs(library_.network, call.run, size()), std::move(fate));
  return false;
}

// A rank of a broadcast that has the data is done when its children take it, or need not.
void SimGroup::SettleSender(SimMeeting& meeting, SimCall& call) {
  if (call.settled || !call.holds) return;
  const bool eager = static_cast<std::int64_t>(call.BlockSize()) <= EagerBytes(library_.rules);
  if (!eager && !ChildrenAre(meeting, call, false)) return;
  Settle(meeting, call, CollectiveNs(library_.network, call.run, size()),
         {.kind = SimFate::Kind::kDone, .delivery = call.delivery});
}

void SimGroup::AdvanceBroadcast(SimMeeting& meeting, SimCall& arrived) {
  std::vector<SimCall*> next = {&arrived};
  while (!next.empty()) {
    SimCall& call = *next.back();
    next.pop_back();
    if (!ReceiveFromParent(meeting, call)) continue;
    SettleSender(meeting, call);
    ForEachChild(library_.rules, call.rank, call.run.root, size(), [&](int child) {
      SimCall* const below = ChildIn(meeting, call, child);
      if (below != nullptr && !below->holds && !below->settled) next.push_back(below);
    });
  }
  if (SimCall* const above = ParentIn(meeting, arrived)) SettleSender(meeting, *above);
}

void SimGroup::AdvanceReduce(SimMeeting& meeting, SimCall& arrived) {
  arrived.held = CopyOf(arrived.buffers.send, arrived.SendSize());
  for (SimCall* call = &arrived; call != nullptr; call = ParentIn(meeting, *call)) {
    if (call->holds || !ChildrenAre(meeting, *call, true)) break;
    call->holds = true;
    SettleReduced(meeting, *call);
  }
  ForEachChild(library_.rules, arrived.rank, arrived.run.root, size(), [&](int child) {
    if (SimCall* const below = ChildIn(meeting, arrived, child)) SettleReduced(meeting, *below);
  });
}

void SimGroup::SettleReduced(SimMeeting& meeting, SimCall& call) {
  if (call.settled || !call.holds) return;
  const double ns = CollectiveNs(library_.network, call.run, size());
  if (call.rank != call.run.root) {
    const bool eager = static_cast<std::int64_t>(call.SendSize()) <= EagerBytes(library_.rules);
    if (!eager && ParentIn(meeting, call) == nullptr) return;
    return Settle(meeting, call, ns, {.kind = SimFate::Kind::kDone});
  }
  SimCalls calls;
  for (const auto& here : meeting.calls) calls.push_back(here.get());
  Settle(meeting, call, ns, FateOfRoot(library_.rules, call, calls));
}

}  // namespace lockstep::comm::sim
