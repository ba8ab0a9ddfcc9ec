// What this host could do at best: bandwidths and cache-line latency between the ranks' processors,
// and the lower bound of a collective's time that follows from them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/collective/collective.h"

namespace lockstep::bench::floors {

inline constexpr double kUnknownFloor = std::numeric_limits<double>::quiet_NaN();

// Bandwidth of loops over arrays of `bytes` each, in 1e9 result bytes a second: the best of several
// passes per rank, then the minimum over ranks. NaN: not measured.
struct Bandwidth {
  std::int64_t bytes = 0;
  double copy_gbps_alone = kUnknownFloor;     // b = a, the other ranks asleep
  double copy_gbps_together = kUnknownFloor;  // all ranks at once, each with arrays of its own
  double reduce_gbps_alone = kUnknownFloor;   // c[i] = a[i] + b[i], f32
  double reduce_gbps_together = kUnknownFloor;
};

// How data crosses between processors, at one moment.
inline constexpr std::array<std::int64_t, 6> kHandoverBytes = {8 << 10, 64 << 10, 512 << 10,
                                                               4 << 20, 8 << 20,  16 << 20};
struct Crossing {
  // A cache line there and back between the processors of two ranks: the fastest pair.
  double line_round_trip_ns = kUnknownFloor;
  // Copies of what another rank's processor has just written, all ranks at once, of arrays of
  // kHandoverBytes: the best pass of the slowest rank, in 1e9 bytes a second.
  std::array<double, kHandoverBytes.size()> handover_gbps = [] {
    std::array<double, kHandoverBytes.size()> unknown;
    unknown.fill(kUnknownFloor);
    return unknown;
  }();
};

struct HostFloors {
  // Arrays from "fits the first cache" to "larger than a core's caches", ascending.
  std::vector<Bandwidth> bandwidths;
  // A cache line there and back between the processors of ranks i and i+1: the best pass of the
  // slowest pair, and of the fastest. NaN: fewer than two processors, or two ranks share one.
  double line_round_trip_ns = kUnknownFloor;
  double line_round_trip_fastest_ns = kUnknownFloor;
  Crossing crossing;
};

// The floors as they are while data crosses so; what of it is unknown stays as it is.
HostFloors With(const Crossing& crossing, HostFloors floors);

// Measures with one thread a local rank, bound to that rank's processors, in at most about
// `budget_seconds` (0.3 is enough for a few ranks); what did not fit in is NaN. The ranks must be
// asleep. An empty or unusable set of processors leaves everything NaN.
HostFloors MeasureFloors(const std::vector<std::vector<int>>& cpus_of_local_ranks,
                         double budget_seconds);

// A lower bound, in ns, of the time from the last rank's entry to the last rank's exit of a
// collective of `bytes` (MessageBytes) among `world_size` ranks of such a host. n = bytes, W ranks:
//   latency  half a line's round trip (fastest pair): no rank can use another's data before it
//            knows that the other entered. One such step is enough for any W, as every rank can
//            read the flags of all others at once.
//   barrier                latency
//   broadcast, send, recv  latency + n / copy
//   all_gather             latency + n (W-1)/W / copy
//   reduce_scatter         latency + n (W+1)/(3W) / reduce
//   all_reduce, reduce     latency + the smaller of
//                            n (W+1)/(3W) / reduce + n (W-1)/W / copy   (each rank its share)
//                            n (W+1)/3 / reduce                         (each rank everything)
// all_gather, reduce_scatter and all_reduce also need latency + what must cross to a rank on
// average / handover: n (W-1)/W, of all_reduce twice that. An unknown handover bounds nothing. A
// reduction of W inputs in one pass moves W+1 streams where the measured loop moves 3. `copy` and
// `reduce` are those of all ranks at work (broadcast, send and recv: the better of alone and
// together) with arrays of at most n/2, because a rank touches n bytes at least: data that fits a
// cache is granted that cache's bandwidth. Unknown bandwidth: NaN; unknown latency counts as 0,
// and as NaN for the barrier. NaN for fewer than two ranks.
double FloorNs(const HostFloors& floors, collective::Collective collective, std::int64_t bytes,
               int world_size);

// For the result file: {"copy_gbps_alone", 9.8} … of the largest arrays, the same with
// "_in_cache" of arrays of 64 KiB, what crossed (largest arrays that did), and the round trips.
std::vector<std::pair<std::string, double>> FloorFigures(const HostFloors& floors);

}  // namespace lockstep::bench::floors
