// A host's clock is fitted to the coordinator's (core/stats/clock_fit.h) by what came back between
// sending and receiving. Hosts with one boot id share one counter, and need no fit.
#include "core/coordinator/host_clocks.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"

namespace lockstep::coordinator {
namespace {

// How fast a host's counter runs by its own quartz, and how far that can be off, relative to it.
struct Quartz {
  double ns_per_tick = 1;
  double error = 0;
};

// From the first to the last reading of a run, if they are far enough apart to say more than the
// calibration of some milliseconds at the start.
Quartz QuartzOf(const ClockReading& first, const ClockReading& last) {
  const auto span_ns = static_cast<double>(last.raw_ns - first.raw_ns);
  if (span_ns < 1e8 || last.ticks <= first.ticks) return {first.ns_per_tick, 1e-5};
  return {span_ns / static_cast<double>(last.ticks - first.ticks),
          static_cast<double>(first.window_ns + last.window_ns) / 2 / span_ns};
}

}  // namespace

void HostClocks::Add(int rank, const std::string& host, const std::string& boot_id) {
  LOCKSTEP_CHECK(static_cast<std::size_t>(rank) == host_of_.size(), "ranks come in order");
  const auto known = std::ranges::find(hosts_, boot_id, &Host::boot_id);
  host_of_.push_back(static_cast<std::size_t>(known - hosts_.begin()));
  if (known != hosts_.end()) {
    known->ranks.push_back(rank);
    return;
  }
  hosts_.push_back({host, boot_id, {rank}});
  states_.emplace_back();
}

void HostClocks::SetOurs(const ClockReading& reading) {
  State& ours = states_.front();
  if (!ours.first) ours.first = reading;
  ours.last = reading;
}

void HostClocks::AddExchange(std::size_t host, const std::vector<ClockRoundTrip>& trips,
                             const ClockReading& reading) {
  LOCKSTEP_CHECK(states_.front().first.has_value(), "our own clock comes first");
  State& state = states_[host];
  if (!state.first) state.first = reading;
  state.last = reading;
  stats::ClockExchange exchange;
  for (const ClockRoundTrip& trip : trips) {
    exchange.push_back({OursNs(trip.sent), OursNs(trip.received), ThereNs(state, trip.there)});
  }
  state.exchanges.push_back(std::move(exchange));
  state.fit.reset();
}

const stats::ClockFit& HostClocks::FitOf(std::size_t host) const {
  const State& state = states_[host];
  if (!state.fit) state.fit.emplace(state.exchanges);
  return *state.fit;
}

double HostClocks::ThereNs(const State& state, Ticks ticks) const {
  const auto since = static_cast<std::int64_t>(ticks - state.first->ticks);
  return static_cast<double>(since) * state.first->ns_per_tick;
}

Ticks HostClocks::OurTicks(double ns) const {
  const ClockReading& ours = *states_.front().first;
  return ours.ticks + static_cast<Ticks>(std::llround(ns / ours.ns_per_tick));
}

Ticks HostClocks::ToOurs(int rank, Ticks theirs) const {
  const std::size_t host = HostOf(rank);
  if (host == 0 || !states_[host].first) return theirs;
  const double there_ns = ThereNs(states_[host], theirs);
  return OurTicks(there_ns + FitOf(host).At(there_ns).ns);
}

double HostClocks::ErrorNs(int rank, Ticks theirs) const {
  const std::size_t host = HostOf(rank);
  if (host == 0) return 0;
  if (!states_[host].first) return std::numeric_limits<double>::infinity();
  return FitOf(host).At(ThereNs(states_[host], theirs)).error_ns;
}

double HostClocks::NsPerTick(int rank) const {
  const State& state = states_[HostOf(rank)];
  const State& known = state.first ? state : states_.front();
  return known.first ? known.first->ns_per_tick : 1.0;
}

HostClocks::Estimate HostClocks::EstimateOf(std::size_t host, Ticks begin) const {
  Estimate estimate;
  const State& state = states_[host];
  const State& ours = states_.front();
  estimate.known = host == 0 || state.first.has_value();
  if (host == 0 || !estimate.known) return estimate;
  const stats::ClockFit& fit = FitOf(host);
  estimate.consistent = fit.consistent();
  // The fit compares nanoseconds of two calibrations, each a ppm or more off. What drifts is the
  // quartzes.
  const Quartz our_quartz = QuartzOf(*ours.first, ours.last);
  const Quartz their_quartz = QuartzOf(*state.first, state.last);
  const double rate = (1 + fit.drift()) * our_quartz.ns_per_tick / ours.first->ns_per_tick *
                      state.first->ns_per_tick / their_quartz.ns_per_tick;
  estimate.drift_ppm = (1 / rate - 1) * 1e6;
  estimate.drift_error_ppm = (fit.drift_error() + our_quartz.error + their_quartz.error) * 1e6;
  estimate.error_ns = fit.LargestErrorNs(OursNs(begin) - fit.At(0).ns);
  // Ours when theirs was read, by the time of day that ours showed when it was read itself.
  const stats::ClockFit::Offset offset = fit.At(0);
  estimate.day_offset_ns =
      static_cast<double>(state.first->day_ns - ours.first->day_ns) - offset.ns;
  estimate.day_offset_error_ns =
      offset.error_ns + static_cast<double>(state.first->window_ns + ours.first->window_ns);
  estimate.shortest_round_trip_ns = std::numeric_limits<double>::infinity();
  for (const stats::ClockExchange& exchange : state.exchanges) {
    estimate.probes += exchange.size();
    for (const stats::ClockProbe& probe : exchange) {
      estimate.shortest_round_trip_ns =
          std::min(estimate.shortest_round_trip_ns, probe.received_ns - probe.sent_ns);
    }
  }
  return estimate;
}

std::vector<HostClocks::Anchor> HostClocks::AnchorsOf(std::size_t host) const {
  std::vector<Anchor> anchors;
  if (host == 0 || !states_[host].first) return anchors;
  const ClockReading& first = *states_[host].first;
  for (const stats::ClockAnchor& anchor : FitOf(host).anchors()) {
    const auto there = static_cast<Ticks>(std::llround(anchor.there_ns / first.ns_per_tick));
    anchors.push_back({first.ticks + there, OurTicks(anchor.there_ns + anchor.low_ns),
                       OurTicks(anchor.there_ns + anchor.high_ns)});
  }
  return anchors;
}

}  // namespace lockstep::coordinator
