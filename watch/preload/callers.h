// Calls that some ranks make together before they have a communicator. The judge is told who they
// are, as of the members of one: also of those who never come, and so can't say it themselves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "watch/events/event.h"
#include "watch/preload/mpi_abi.h"
#include "watch/preload/real.h"

namespace lockstep::watch::preload {

// The group of a communicator, which is freed here.
class Group {
 public:
  Group(const char* function, Handle comm) { Real<int(Handle, Handle*)>(function)(comm, &handle_); }
  ~Group() { Real<int(Handle*)>("PMPI_Group_free")(&handle_); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  Handle handle() const { return handle_; }

 private:
  Handle handle_;
};

// What is said of a rank of the world: kMpiUndefined where it is another world's.
template <typename Visit>
void ForEachInWorld(Handle group, Visit visit) {
  constexpr int kAtATime = 64;
  const Group world("PMPI_Comm_group", abi.comm_world);
  const auto translate =
      Real<int(Handle, int, const int*, Handle, int*)>("PMPI_Group_translate_ranks");
  int size = 0;
  Real<int(Handle, int*)>("PMPI_Group_size")(group, &size);
  for (int first = 0; first < size; first += kAtATime) {
    const int count = std::min(size - first, kAtATime);
    int here[kAtATime];
    int there[kAtATime];
    std::iota(here, here + count, first);
    translate(group, count, here, world.handle(), there);
    std::for_each(there, there + count, visit);
  }
}

// A name that is the same in all callers. events::kUnknownComm: one of them is in another world, or
// this process is not among them; then nothing is written down.
std::uint64_t CallersOfGroup(Handle comm, Handle group, int tag, events::Call call);
// Of the members on both sides.
std::uint64_t CallersOfInter(Handle inter, events::Call call);
// Of this process and the rank `other` of the communicator.
std::uint64_t CallersOfPair(Handle comm, int other, int tag, events::Call call);

}  // namespace lockstep::watch::preload
