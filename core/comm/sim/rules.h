// Whose behaviour the simulation imitates: which calls of ranks meet, who waits for whom, and what
// becomes of calls that differ.
//
//               kNccl                      kMpi                        kGloo
//   calls meet  in order, of any kind      n-th of a kind              n-th call, of the same kind
//   barrier     all_reduce of 1 f32        a kind of its own           a kind of its own
//   small root  goes on (fits the FIFO)    goes on (eager)             waits for its children
//   kinds       for ever silent            never meet                  never meet
//   differ
//   bytes       who has most hears         who has less: truncation    a longer message than what
//   differ      nothing more, unless all   error; who has more goes    waits for it ends the
//   process
//               lie in one 8-byte line     on, or waits: by size       (SIGABRT), or both wait
//   type or     each computes with its own on the bytes that come
//   reduction
//   differ
//   peer gone   waits                      waits                       "Connection closed by peer"
//
// Sources. kNccl: the documents of NCCL promise nothing (nccl#1417: "may hang as soon as sizes
// differ, sometimes works with wrong data"); the 8-byte line is the unit of its LL protocol
// (src/include/device.h, ncclLLFifoLine: two words of data, each with a flag): the missing word of
// a line is not waited for, a missing line is. PyTorch's NCCL barrier is an all-reduce of one
// float32 (ProcessGroupNCCL.cpp, barrier). kMpi: observed with Open MPI 4.1.4, 2 to 4 ranks; its
// collectives have a tag per kind and messages match in order (coll_tags.h); up to 4 KiB are sent
// eagerly by its shared-memory transport; small all-reduces are recursive doubling
// (coll_base_allreduce.c). No error of a peer's death reaches anyone. kGloo: observed with Debian's
// gloo, 2 to 4 ranks; slots are kind and tag, and PyTorch's tag is the number of the call;
// all-reduce is the pipelined ring (gloo/allreduce.cc); a send waits for the receive.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>

#include "core/base/random.h"
#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/communicator.h"

namespace lockstep::comm::sim {

enum class SimRules : std::uint8_t { kNccl, kMpi, kGloo };
std::string_view NameOf(SimRules rules);  // "nccl"
// The error names `option`, the text and the valid names.
Result<SimRules> ParseSimRules(std::string_view option, std::string_view text);

// backend: "sim_nccl", "sim_mpi", "sim_gloo". As the real gloo, kGloo has neither reduce_scatter
// nor non-blocking calls. Only kGloo can abort in the sense of Capabilities (it closes this rank's
// connections); under the others Abort frees nobody but this rank's own calls.
const Capabilities& SimCapabilities(SimRules rules);

// The largest message that its sender need not wait for: bytes.
std::int64_t EagerBytes(SimRules rules);

// Where calls meet on a communicator: those with the same meeting place. `sequence` counts this
// rank's calls, `nth` those of this collective, both from 0. For send and recv `nth` counts the
// calls of this direction between the two ranks, `from` and `to`.
struct SimPlace {
  std::uint64_t kind = 0;
  std::uint64_t number = 0;
  auto operator<=>(const SimPlace&) const = default;
};
SimPlace PlaceOf(SimRules rules, Collective collective, std::uint64_t sequence, std::uint64_t nth);
SimPlace PlaceOfMessage(int from, int to, std::uint64_t nth);

// The call as the library runs it: kNccl's barrier is an all-reduce.
Operation AsRun(SimRules rules, const Operation& operation);

// 0 has none: 0.
inline int HighestBit(int value) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(value)));
}

// The tree along which a broadcast goes (a reduce the other way): a chain for kNccl, binomial for
// the others. A rank's parent lacks its lowest bit, with kGloo its highest (gloo/broadcast.cc).
// Ranks of `size` around `root`.
int ParentOf(SimRules rules, int rank, int root, int size);  // -1: the root
// Calls visit(child) for each.
template <typename Visit>
void ForEachChild(SimRules rules, int rank, int root, int size, Visit visit) {
  const int relative = (rank - root + size) % size;
  if (rules == SimRules::kNccl) {
    if (relative + 1 < size) visit((rank + 1) % size);
    return;
  }
  if (rules == SimRules::kGloo) {
    // Binomial: the children of v are v + 2^k below size, for 2^k above v's highest one.
    for (int bit = std::max(1, 2 * HighestBit(relative)); relative + bit < size; bit <<= 1) {
      visit((relative + bit + root) % size);
    }
    return;
  }
  // Binomial: the children of v are v + 2^k below size, for 2^k below v's lowest one.
  for (int bit = 1; relative + bit < size && (relative & bit) == 0; bit <<= 1) {
    visit((relative + bit + root) % size);
  }
}

// How long collectives take on a network of equal links.
// A message of n bytes takes alpha + n beta (Hockney 1994, "The communication challenge for MPP").
struct SimNetwork {
  double alpha_ns = 1000;
  double beta_ns_per_byte = 0.1;  // 10 GB/s
  double jitter = 0.05;           // each completion is late by up to this part of it, at random
};

// From the last arrival to completion, without jitter, for W ranks; n is the bytes of the
// operation's count. Formulas: Thakur, Rabenseifner, Gropp 2005, "Optimization of collective
// communication operations in MPICH", section 3 (without the time of arithmetic):
//   all_reduce      ring 2(W-1)(alpha + n/W beta), or recursive doubling ceil(log2 W)(alpha + n
//                   beta), whichever is faster
//   all_gather, reduce_scatter   ring (W-1)(alpha + n beta)
//   broadcast, reduce            binomial tree ceil(log2 W)(alpha + n beta)
//   barrier                      dissemination ceil(log2 W) alpha
//   send, recv                   alpha + n beta
double CollectiveNs(const SimNetwork& network, const collective::Operation& operation,
                    int world_size);

// With jitter.
std::int64_t DrawNs(const SimNetwork& network, double ns, Random& random);

}  // namespace lockstep::comm::sim
