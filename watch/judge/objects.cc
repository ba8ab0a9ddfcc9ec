// Objects of MPI from their making until they are freed, and who is a member of which.
#include <numeric>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

using events::Object;

void Judge::MadeObject(int rank, const Event& event) {
  Rank& mine = history_.ranks[Index(rank)];
  if (event.request != 0) mine.objects[event.request] = event;
  unseen_ways_ = unseen_ways_ || IsUnseenWay(event);
  const bool mpi = mine.in.count(events::kWorldComm) > 0;
  mine.in_group =
      mine.in_group || event.call == Call::kGroupInit || (events::OfNccl(event.call) && !mpi);
  if (event.comm <= events::kFreedComm) return;
  Communicator& comm = history_.communicators[event.comm];
  if (comm.size == 0) {
    comm.size = static_cast<int>(event.count);
    comm.inter = (event.flags & events::kIntercomm) != 0;
    comm.world.assign(Index(comm.size), -1);
    // Known before all its members were read.
    if (event.comm == events::kWorldComm) std::iota(comm.world.begin(), comm.world.end(), 0);
    comm.called.assign(Index(comm.size), 0);
    comm.passed.assign(Index(comm.size), 0);
  }
  mine.newest = {};
  if (event.peer < 0 || event.peer >= comm.size) return;
  comm.enqueued = events::OfNccl(event.call);
  const auto [me, first] = mine.in.try_emplace(event.comm, event.peer);
  if (!first && me->second != event.peer) {  // several members in one process
    comm.broken = history_.smaller_groups = true;
  }
  comm.world[Index(event.peer)] = rank;
  mine.in[event.comm] = event.peer;
}

void Judge::Freed(int rank, std::uint32_t number) {
  auto& objects = history_.ranks[Index(rank)].objects;
  const auto found = objects.find(number);
  if (found == objects.end()) return;
  if (found->second.object == Object::kWindow) history_.windows.erase(found->second.comm);
  objects.erase(found);
}

// Those who never say so themselves are members, too.
void Judge::NoteMembers(const Event& event) {
  Communicator& comm = history_.communicators[event.comm];
  for (int each = 0; each < event.count; ++each) {
    const int me = event.peer + each;
    const int rank = static_cast<int>(event.request) + each;
    if (me < 0 || me >= comm.size || rank < 0 || rank >= history_.size) continue;
    Rank& member = history_.ranks[Index(rank)];
    comm.world[Index(me)] = rank;
    if (!member.in.try_emplace(event.comm, me).second) continue;
    member.newest = {};
    if (member.finalizing) EndMember(rank, comm, me);
  }
}

}  // namespace lockstep::watch::judge
