// The ranks of one communicator as the library sees them: calls that meet, and who settles when.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/sim/fate.h"
#include "core/comm/sim/mismatch.h"
#include "core/comm/sim/rules.h"
#include "core/comm/sim/scheduler.h"

namespace lockstep::comm::sim {

// What all groups of a world share; outlives them.
struct SimLibrary {
  SimRules rules;
  SimNetwork network;
  Scheduler& scheduler;
  // The library ends the process of this rank of the world.
  std::function<void(int member, std::string why)> crash;
};

// Calls at one meeting place, one a rank (of a message: its two ends).
struct SimMeeting {
  SimCall* At(int rank) const { return calls[static_cast<std::size_t>(rank)].get(); }

  std::vector<std::shared_ptr<SimCall>> calls;  // by rank; of a message: sender, receiver
  Operation first;                              // of the call that came first
  std::size_t here = 0;
  std::size_t settled = 0;
  bool uniform = true;  // all calls so far are the same
  bool mixed = false;   // of different kinds
};

class SimGroup {
 public:
  // `members` are ranks of the world, by rank in the group.
  SimGroup(int id, std::vector<int> members, const SimLibrary& library)
      : id_(id), members_(std::move(members)), library_(library) {}

  int id() const { return id_; }
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<int>& members() const { return members_; }
  int PlaceOf(int member) const;  // its rank in the group, or -1

  // The call has come to its place: settles it and others, as far as the rules let them.
  void Post(const std::shared_ptr<SimCall>& call);
  // Its rank gives the call up: its buffers are not touched any more.
  void Withdraw(const SimCall& call);
  // This rank's connections close: its own calls fail, and those of others that need it.
  void Close(int rank);

 private:
  std::shared_ptr<SimCall>& PlaceIn(SimMeeting& meeting, const SimCall& call) const;
  void Advance(SimMeeting& meeting, SimCall& arrived);
  void SettleAll(SimMeeting& meeting);
  void SettleMessage(SimMeeting& meeting, SimCall& arrived);
  void AdvanceBroadcast(SimMeeting& meeting, SimCall& arrived);
  bool ReceiveFromParent(SimMeeting& meeting, SimCall& call);
  void SettleSender(SimMeeting& meeting, SimCall& call);
  void AdvanceReduce(SimMeeting& meeting, SimCall& arrived);
  void SettleReduced(SimMeeting& meeting, SimCall& call);
  // The call of the rank above (of a child) in the tree, if it is here and sees it so, too.
  SimCall* ParentIn(const SimMeeting& meeting, const SimCall& call) const;
  SimCall* ChildIn(const SimMeeting& meeting, const SimCall& call, int child) const;
  bool ChildrenAre(const SimMeeting& meeting, const SimCall& call, bool holding) const;
  bool Needs(const SimMeeting& meeting, const SimCall& call, int peer) const;
  void Settle(SimMeeting& meeting, SimCall& call, double ns, SimFate fate);
  void FailClosed(SimMeeting& meeting, SimCall& call, int peer);

  int id_;
  std::vector<int> members_;
  const SimLibrary& library_;
  std::map<SimPlace, SimMeeting> meetings_;
  std::set<int> closed_;
};

}  // namespace lockstep::comm::sim
