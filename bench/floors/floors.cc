// From a host's figures to the least time of a collective on it. What has to be read, written and
// handed over goes at the best rates that were seen.
#include "bench/floors/floors.h"

#include <algorithm>
#include <cmath>

namespace lockstep::bench::floors {
namespace {

constexpr std::int64_t kInCacheBytes = 64 << 10;

// The best bandwidth that a message of `bytes` can hope for: of the largest measured arrays that
// are at most half of it, or of any larger ones where noise made those look faster.
double BestFor(const HostFloors& floors, std::int64_t bytes, double Bandwidth::*together,
               double Bandwidth::*alone) {
  double best = kUnknownFloor;
  for (std::size_t i = 0; i < floors.bandwidths.size(); ++i) {
    const bool next_fits =
        i + 1 < floors.bandwidths.size() && floors.bandwidths[i + 1].bytes <= bytes / 2;
    if (next_fits) continue;
    best = std::fmax(best, floors.bandwidths[i].*together);
    if (alone != nullptr) best = std::fmax(best, floors.bandwidths[i].*alone);
  }
  return best;
}

// The best rate of handing over that a message of `bytes` can hope for; chosen as BestFor does.
double HandoverFor(const Crossing& crossing, std::int64_t bytes) {
  double best = kUnknownFloor;
  for (std::size_t i = 0; i < kHandoverBytes.size(); ++i) {
    const bool next_fits = i + 1 < kHandoverBytes.size() && kHandoverBytes[i + 1] <= bytes / 2 &&
                           std::isfinite(crossing.handover_gbps[i + 1]);
    if (!next_fits) best = std::fmax(best, crossing.handover_gbps[i]);
  }
  return best;
}

}  // namespace

HostFloors With(const Crossing& crossing, HostFloors floors) {
  if (std::isfinite(crossing.line_round_trip_ns)) {
    floors.line_round_trip_fastest_ns = crossing.line_round_trip_ns;
  }
  floors.crossing = crossing;
  return floors;
}

double FloorNs(const HostFloors& floors, collective::Collective collective, std::int64_t bytes,
               int world_size) {
  if (world_size < 2) return kUnknownFloor;
  const double latency = floors.line_round_trip_fastest_ns / 2;
  const double known_latency = std::isnan(latency) ? 0 : latency;
  const double n = static_cast<double>(bytes);
  const double w = world_size;
  const double others = (w - 1) / w;
  const double copy =
      BestFor(floors, bytes, &Bandwidth::copy_gbps_together, nullptr);  // bytes a ns
  const double reduce = BestFor(floors, bytes, &Bandwidth::reduce_gbps_together, nullptr);
  const double share_ns = n * (w + 1) / (3 * w) / reduce;
  const double cross_ns = n * others / HandoverFor(floors.crossing, bytes);
  // An unknown bandwidth makes the whole unknown, an unknown handover does not.
  const auto at_least = [](double ns, double cross) { return cross > ns ? cross : ns; };
  // Not std::fmin: one unknown bandwidth makes the whole unknown.
  const double reduce_ns = std::min(share_ns + n * others / copy, w * share_ns);
  switch (collective) {
    case collective::Collective::kBarrier:
      return latency;
    case collective::Collective::kBroadcast:
    case collective::Collective::kSend:
    case collective::Collective::kRecv:
      return known_latency + n / BestFor(floors, bytes, &Bandwidth::copy_gbps_together,
                                         &Bandwidth::copy_gbps_alone);
    case collective::Collective::kAllGather:
      return known_latency + at_least(n * others / copy, cross_ns);
    case collective::Collective::kReduceScatter:
      return known_latency + at_least(share_ns, cross_ns);
    case collective::Collective::kAllReduce:
      return known_latency + at_least(reduce_ns, 2 * cross_ns);
    case collective::Collective::kReduce:
      return known_latency + reduce_ns;
  }
  return kUnknownFloor;
}

std::vector<std::pair<std::string, double>> FloorFigures(const HostFloors& floors) {
  std::vector<std::pair<std::string, double>> figures;
  const auto add = [&figures](const Bandwidth& bandwidth, const std::string& suffix) {
    figures.emplace_back("copy_gbps_alone" + suffix, bandwidth.copy_gbps_alone);
    figures.emplace_back("copy_gbps_together" + suffix, bandwidth.copy_gbps_together);
    figures.emplace_back("reduce_gbps_alone" + suffix, bandwidth.reduce_gbps_alone);
    figures.emplace_back("reduce_gbps_together" + suffix, bandwidth.reduce_gbps_together);
  };
  const auto& all = floors.bandwidths;
  add(all.empty() ? Bandwidth{} : all.back(), "");
  const auto in_cache = std::ranges::find(all, kInCacheBytes, &Bandwidth::bytes);
  add(in_cache == all.end() ? Bandwidth{} : *in_cache, "_in_cache");
  figures.emplace_back("handover_gbps_in_cache", floors.crossing.handover_gbps[1]);
  const auto& handover = floors.crossing.handover_gbps;
  const auto largest = std::find_if(handover.rbegin(), handover.rend(),
                                    [](double gbps) { return std::isfinite(gbps); });
  figures.emplace_back("handover_gbps", largest == handover.rend() ? kUnknownFloor : *largest);
  figures.emplace_back("line_round_trip_ns", floors.line_round_trip_ns);
  figures.emplace_back("line_round_trip_fastest_ns", floors.line_round_trip_fastest_ns);
  return figures;
}

}  // namespace lockstep::bench::floors
