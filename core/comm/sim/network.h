// How long collectives take on a network of equal links.
#pragma once

#include <cstdint>

#include "core/base/random.h"
#include "core/collective/collective.h"

namespace lockstep::comm::sim {

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
