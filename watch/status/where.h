// In which call each thread of a rank is, by its newest events. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "watch/events/event.h"

namespace lockstep::watch::status {

using events::Event;

struct ThreadNow {
  std::uint16_t thread = 0;
  bool inside = false;         // in `call`; else it left `call` last
  Event call;                  // as it was entered; after it left only its name is known
  std::uint64_t since = 0;     // ticks of entering, or of leaving
  int requests = 0;            // that a Wait was given
  std::vector<Event> awaited;  // the calls that posted them, as far as `newest` goes back
};

// `newest`: of one rank, the oldest first; events that are not whole have phase kNothing. A thread
// of which no entry and no return is among them is left out.
std::vector<ThreadNow> WhereNow(const std::vector<Event>& newest);

// "MPI_Recv from 1, tag 7", "MPI_Wait: MPI_Irecv from any, any tag", "all_reduce 19".
std::string Describe(const ThreadNow& thread);
// "world", "group 0", "c9f3" (the same in all its ranks); "": the call has none.
std::string NameOfComm(const Event& call);

}  // namespace lockstep::watch::status
