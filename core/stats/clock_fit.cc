// Intersects what each probe proves of the other host's clock. Between probes the bound widens by
// the drift that is possible. Clocks that contradict the assumption leave an empty intersection,
// and then nothing is claimed.
#include "core/stats/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/base/check.h"

namespace lockstep::stats {
namespace {

constexpr double kPpm = 1e-6;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Times of hours in nanoseconds, as doubles, are exact to less than this.
constexpr double kRoundingNs = 0.01;

ClockAnchor AnchorOf(const ClockProbe& probe) {
  return {probe.there_ns, probe.sent_ns - probe.there_ns, probe.received_ns - probe.there_ns};
}

const ClockProbe& BestOf(const ClockExchange& exchange) {
  LOCKSTEP_CHECK(!exchange.empty(), "an exchange has a probe");
  return *std::ranges::min_element(
      exchange, {}, [](const ClockProbe& probe) { return probe.received_ns - probe.sent_ns; });
}

void Meet(const ClockAnchor& other, ClockAnchor& anchor) {
  anchor.low_ns = std::max(anchor.low_ns, other.low_ns);
  anchor.high_ns = std::min(anchor.high_ns, other.high_ns);
}

}  // namespace

ClockFit::ClockFit(std::span<const ClockExchange> exchanges) {
  FitDrift(exchanges);
  for (const ClockExchange& exchange : exchanges) {
    ClockAnchor anchor{exchange.back().there_ns, -kInfinity, kInfinity};
    for (const ClockProbe& probe : exchange) {
      Meet(Carry(AnchorOf(probe), anchor.there_ns), anchor);
    }
    anchors_.push_back(anchor);
  }
  Intersect();
}

// Two exchanges bound the mean rate between them, by the slopes of the steepest and the flattest
// line through both intervals. That of the first and the last is the mean that kWanderPpm is about;
// between others it can differ by so much.
void ClockFit::FitDrift(std::span<const ClockExchange> exchanges) {
  double least = -kMostDriftPpm * kPpm;
  double most = kMostDriftPpm * kPpm;
  std::vector<ClockAnchor> best;
  for (const ClockExchange& exchange : exchanges) best.push_back(AnchorOf(BestOf(exchange)));
  for (std::size_t i = 0; i < best.size(); ++i) {
    for (std::size_t j = i + 1; j < best.size(); ++j) {
      const double span_ns = best[j].there_ns - best[i].there_ns;
      if (span_ns <= 0) continue;
      const double wander = i == 0 && j + 1 == best.size() ? 0 : kWanderPpm * kPpm;
      least = std::max(least, (best[j].low_ns - best[i].high_ns) / span_ns - wander);
      most = std::min(most, (best[j].high_ns - best[i].low_ns) / span_ns + wander);
    }
  }
  consistent_ = least <= most;
  drift_ = (least + most) / 2;
  drift_error_ = std::abs(most - least) / 2;
  wander_ = drift_error_ + kWanderPpm * kPpm;
}

ClockAnchor ClockFit::Carry(const ClockAnchor& anchor, double there_ns) const {
  const double way_ns = there_ns - anchor.there_ns;
  const double moved = drift_ * way_ns;
  const double doubt = wander_ * std::abs(way_ns);
  return {there_ns, anchor.low_ns + moved - doubt, anchor.high_ns + moved + doubt};
}

// Once forwards and once backwards: then every anchor knows what all the others do.
void ClockFit::Intersect() {
  for (std::size_t i = 1; i < anchors_.size(); ++i) {
    Meet(Carry(anchors_[i - 1], anchors_[i].there_ns), anchors_[i]);
  }
  for (std::size_t i = anchors_.size(); i-- > 1;) {
    Meet(Carry(anchors_[i], anchors_[i - 1].there_ns), anchors_[i - 1]);
  }
  for (const ClockAnchor& anchor : anchors_) {
    consistent_ = consistent_ && anchor.low_ns <= anchor.high_ns + kRoundingNs;
  }
}

ClockFit::Offset ClockFit::At(double there_ns) const {
  if (anchors_.empty()) return {0, kInfinity};
  const auto after = std::ranges::lower_bound(anchors_, there_ns, {}, &ClockAnchor::there_ns);
  ClockAnchor here = Carry(after == anchors_.end() ? anchors_.back() : *after, there_ns);
  if (after != anchors_.begin() && after != anchors_.end()) {
    Meet(Carry(*std::prev(after), there_ns), here);
  }
  const double error_ns = consistent_ ? std::max(here.high_ns - here.low_ns, 0.0) / 2 : kInfinity;
  return {(here.low_ns + here.high_ns) / 2, error_ns};
}

// Between two anchors the error is concave, with corners where both say the same of an edge.
double ClockFit::LargestErrorNs(double from_there_ns) const {
  double largest_ns = At(from_there_ns).error_ns;
  const auto look = [&](double there_ns) {
    if (there_ns >= from_there_ns) largest_ns = std::max(largest_ns, At(there_ns).error_ns);
  };
  for (std::size_t i = 0; i < anchors_.size(); ++i) {
    look(anchors_[i].there_ns);
    if (i == 0) continue;
    const double way_ns = anchors_[i].there_ns - anchors_[i - 1].there_ns;
    const double moved = drift_ * way_ns;
    const double high_ns = anchors_[i].high_ns - moved - anchors_[i - 1].high_ns;
    const double low_ns = anchors_[i].low_ns - moved - anchors_[i - 1].low_ns;
    look(anchors_[i - 1].there_ns + (way_ns + high_ns / wander_) / 2);
    look(anchors_[i - 1].there_ns + (way_ns - low_ns / wander_) / 2);
  }
  return largest_ns;
}

}  // namespace lockstep::stats
