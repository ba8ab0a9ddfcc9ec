// A random MPI program of messages and collectives with at most one error: what its ranks call, and
// nothing of what must be said of it. Everything follows from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "watch/events/event.h"

namespace lockstep::watch::fuzz {

using events::Call;

enum class Error : std::uint8_t {
  kNone,
  kSkip,       // a step
  kSwap,       // a step and its next
  kWrongTag,   // of its half of a message
  kWrongComm,  // … which both ranks are in
  kWrongPeer,
  kWild,          // it receives from anybody and any tag
  kExtraSend,     // that nobody receives
  kExtraReceive,  // that nobody sends
  kNoWait,        // for a request
  kTooLong,       // a message that its receive has no room for
  kWrongType,
  kWrongCall,  // another collective
  kWrongRoot,
  kDies,
};
inline constexpr int kErrors = static_cast<int>(Error::kDies) + 1;
std::string_view NameOf(Error error);

inline constexpr int kAny = -1;  // a source or a tag

// What some ranks do together. All ranks take their steps in one order, so without an error no
// schedule and no amount of buffering makes them hang. Ranks are those of the world.
struct Step {
  enum class Kind : std::uint8_t {
    kMessage,   // from[0] to `to`
    kExchange,  // from[0] and `to` call MPI_Sendrecv
    kGather,  // each of `from` sends to `to`, which takes them in any order, with a tag of its own
    kCollective,
  };
  Kind kind = Kind::kMessage;
  std::uint64_t number = 0;  // stays when others are taken away
  std::size_t comm = 0;
  std::vector<int> from;
  int to = 0;
  int tag = 0;
  Call send = Call::kSend;
  Call receive = Call::kRecv;  // kProbe: and then MPI_Recv
  bool any_source = false;
  bool any_tag = false;
  Call collective = Call::kBarrier;
  int root = 0;  // a member
};

struct Program {
  std::uint64_t seed = 0;  // of its schedule and library, too
  int ranks = 2;
  std::vector<std::vector<int>> comms;  // members, ascending; the world first, then its copy
  std::vector<Step> steps;
  bool lax = true;      // a library whose collectives let a member go as early as MPI allows
  int buffered = 0;     // of 4 standard sends, how many the library takes at once
  int completions = 0;  // of 8 steps, after how many a rank awaits requests
  Error error = Error::kNone;
  int faulty = 0;      // the rank
  std::size_t at = 0;  // its step
  int other = 0;       // kWrongPeer, kExtraSend, kExtraReceive: whom it means
};

// One call of a rank.
struct Action {
  Call call = Call::kNone;
  bool dies = false;  // in place of a call
  std::size_t comm = 0;
  int line = 0;  // the same in all ranks
  int peer = 0;  // of the world, or kAny
  int tag = 0;   // or kAny
  int root = 0;  // a member
  std::int64_t count = 1;
  std::uint32_t type = 0;
  std::uint32_t request = 0;            // that it leaves
  std::vector<std::uint32_t> requests;  // that it awaits
};

Program DrawProgram(std::uint64_t seed);

bool TakesPart(const Program& program, const Step& step, int rank);
int MemberOf(const Program& program, std::size_t comm, int rank);  // -1: it is none

// The calls of a rank, MPI_Finalize last; its error is in them.
std::vector<Action> ActionsOf(const Program& program, int rank);

// Line by line, for people.
std::string Describe(const Program& program);

}  // namespace lockstep::watch::fuzz
