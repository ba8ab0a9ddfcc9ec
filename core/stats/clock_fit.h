// Another host's clock as ours says it, from round trips between the two. Pure.
//
// Probe: our clock shows `sent_ns`, then theirs `there_ns`, then ours `received_ns`. Whatever the
// message took in each direction, ours showed something between `sent_ns` and `received_ns` at that
// moment: the offset is known to half a round trip, best from the shortest one (Cristian,
// "Probabilistic clock synchronization", Distributed Computing 3, 1989). What holds of each probe
// holds of all, so the intervals are intersected (Marzullo and Owicki, "Maintaining the time in a
// distributed system", PODC 1983). Exchanges before, during and after a run are anchors, between
// which the clocks drift linearly, as in HCA3 (Hunold and Carpen-Amarie, "Hierarchical clock
// synchronization in MPI", CLUSTER 2018); how far the drift can be off widens the intervals on the
// way.
//
// The bound is proved, not estimated, but for one assumption: at no time does the rate of one clock
// in the other differ by more than kWanderPpm from its mean over all exchanges.
#pragma once

#include <span>
#include <vector>

namespace lockstep::stats {

struct ClockProbe {
  double sent_ns = 0;
  double received_ns = 0;
  double there_ns = 0;
};

// Probes within some milliseconds, at least one, in order of time.
using ClockExchange = std::vector<ClockProbe>;

// All that is known of the offset at one moment: to be added to `there_ns`, it gives our time.
struct ClockAnchor {
  double there_ns = 0;
  double low_ns = 0;
  double high_ns = 0;
};

class ClockFit {
 public:
  // A quartz without compensation moves by some tenths of a ppm per kelvin: a machine that warms up
  // by ten in the course of a run.
  static constexpr double kWanderPpm = 5;
  // No clock that a computer can work with drifts more; what is assumed before there is a second
  // exchange. Source: RFC 5905, 11.3: the frequency tolerance of NTP.
  static constexpr double kMostDriftPpm = 500;

  // `exchanges`: in order of time; without any, nothing is known.
  explicit ClockFit(std::span<const ClockExchange> exchanges);

  struct Offset {
    double ns = 0;        // added to theirs it gives ours
    double error_ns = 0;  // a bound; infinite when nothing is known
  };
  Offset At(double there_ns) const;
  // The largest error_ns from there on to the last anchor.
  double LargestErrorNs(double from_there_ns) const;

  // How much more our clock counts than theirs, and the bound of its error.
  double drift() const { return drift_; }
  double drift_error() const { return drift_error_; }
  // False: no constant drift explains the probes. A clock was set, or its host stood still.
  bool consistent() const { return consistent_; }
  // One an exchange, at its last probe, after the intersection with all the others.
  const std::vector<ClockAnchor>& anchors() const { return anchors_; }

 private:
  void FitDrift(std::span<const ClockExchange> exchanges);
  void Intersect();
  // What an anchor says of another moment.
  ClockAnchor Carry(const ClockAnchor& anchor, double there_ns) const;

  double drift_ = 0;
  double drift_error_ = 0;
  double wander_ = 0;  // the rate differs from drift_ by at most so much
  bool consistent_ = true;
  std::vector<ClockAnchor> anchors_;
};

}  // namespace lockstep::stats
