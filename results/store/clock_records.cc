#include "results/store/clock_records.h"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace lockstep::results::store {
namespace {

HostClock RecordOf(const coordinator::HostClocks& clocks, std::size_t host, Ticks begin) {
  const coordinator::HostClocks::Estimate estimate = clocks.EstimateOf(host, begin);
  HostClock record;
  record.host = clocks.hosts()[host].name;
  record.ranks = clocks.hosts()[host].ranks;
  record.state = host == 0              ? "reference"
                 : !estimate.known      ? "unknown"
                 : !estimate.consistent ? "inconsistent"
                                        : "estimated";
  record.error_ns = estimate.known ? estimate.error_ns : std::numeric_limits<double>::infinity();
  record.drift_ppm = estimate.drift_ppm;
  record.drift_error_ppm = estimate.drift_error_ppm;
  record.day_offset_ns = estimate.day_offset_ns;
  record.day_offset_error_ns = estimate.day_offset_error_ns;
  record.shortest_round_trip_ns = estimate.shortest_round_trip_ns;
  record.exchanges = static_cast<std::int64_t>(clocks.exchanges(host));
  record.probes = static_cast<std::int64_t>(estimate.probes);
  return record;
}

double SinceBegin(const Run& run, Ticks ticks) {
  return static_cast<double>(static_cast<std::int64_t>(ticks - run.origin_ticks)) * run.ns_per_tick;
}

}  // namespace

void AddClocks(const coordinator::HostClocks& clocks, Run& run) {
  for (std::size_t host = 0; host < clocks.hosts().size(); ++host) {
    run.clocks.push_back(RecordOf(clocks, host, run.origin_ticks));
    for (const coordinator::HostClocks::Anchor& anchor : clocks.AnchorsOf(host)) {
      run.clock_anchors.push_back({static_cast<std::int32_t>(host), anchor.there,
                                   SinceBegin(run, anchor.low), SinceBegin(run, anchor.high)});
    }
  }
}

}  // namespace lockstep::results::store
