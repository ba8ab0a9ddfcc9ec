// What a library makes of ranks that call different operations in one position of a communicator:
// the same mistake of a program is a hang with one library and silently wrong data with another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/collective/collective.h"

namespace lockstep::verdict {

using collective::Collective;
using collective::Operation;

enum class Effect : std::uint8_t {
  kStops,      // none of these ranks can ever go on
  kWrongData,  // they go on, and the result is silently wrong
  kUndefined,  // an error, a hang or wrong data: by sizes and algorithm
};

// How calls of several ranks find each other.
enum class Matching : std::uint8_t {
  kPosition,         // the n-th call of all meets the n-th call of all, of whatever kind
  kKind,             // the n-th call of a kind meets the n-th call of that kind
  kPositionAndKind,  // the n-th call meets the n-th call if they are of one kind
};

struct Semantics {
  std::string_view backend;
  Matching matching = Matching::kPositionAndKind;
  // Its barrier is an all-reduce of one f32, as PyTorch's on NCCL (ProcessGroupNCCL.cpp, barrier).
  bool barrier_is_all_reduce = false;
  // A broadcast's root, too, waits for the others, whatever the size.
  bool root_waits = true;
  // A send waits for its receive, whatever the size: no message is kept.
  bool sends_wait = true;
  // A receive is for as many elements as are sent. Elsewhere it may have room for more.
  bool receives_exactly = false;
  bool ignores_all = false;  // no operation does anything
};

// By the name of a backend ("nccl", "mpi", "gloo", "null", and "sim_…" for its imitation of one).
// For any other name, and none: different operations stop all of their ranks.
const Semantics& SemanticsOf(std::string_view backend);

// Whom a rank in an operation certainly waits for, if all call the same. Ranks between a root and a
// leaf depend on the algorithm, which nobody knows.
enum class Needs : std::uint8_t { kAll, kRoot, kNobody };
// For one of the `size` ranks of the communicator.
Needs NeedsOf(const Semantics& semantics, const Operation& operation, bool is_root, int size);

// What has to be the same on all ranks: kind, type, count, and root or reduction if it has them.
bool SameCall(const Operation& a, const Operation& b);

// The two sides of one.
bool AreMessage(const Operation& a, const Operation& b);

// A send and the receive that takes it: one type, and room for all that is sent. MPI-4.0, 3.2.4
// (a longer receive is legal) and 3.3.1 (one type); NCCL's documents of ncclSend (one count). Of a
// library without a name only what is wrong with every one.
bool FitsMessage(const Semantics& semantics, const Operation& a, const Operation& b);

// Of two operations that are not SameCall in one position, or of a message that does not fit. Only
// what a library's rules make certain is kStops or kWrongData. Sources: nccl#1417 ("may hang as
// soon as sizes differ, sometimes works with wrong data") and its 8-byte line (ncclLLFifoLine);
// Open MPI's tags a kind (coll_tags.h) and eager messages; gloo's slots a kind and tag. Reductions
// are compared by no library.
Effect EffectOf(const Semantics& semantics, const Operation& a, const Operation& b);

// Of two operations in one position: the library counts both alike, so that the calls behind them
// still meet by position.
bool CountedAlike(const Semantics& semantics, const Operation& a, const Operation& b);

// Of two operations that met and let their ranks go on: a part of what these sent may still be on
// its way, and meet a later call.
bool MayLeaveData(const Semantics& semantics, const Operation& a, const Operation& b);

// "gloo pairs calls of one kind only, so both wait for ever": a clause for messages; may be empty.
std::string ExplainEffect(const Semantics& semantics, const Operation& a, const Operation& b);

}  // namespace lockstep::verdict
