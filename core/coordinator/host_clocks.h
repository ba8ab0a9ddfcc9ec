// The clocks of a launch's hosts, and what each of them shows when the coordinator's shows
// something. Ranks of one kernel share a counter: nothing is estimated between them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/control/facts.h"
#include "core/stats/clock_fit.h"

namespace lockstep::coordinator {

using control::ClockReading;

// The coordinator asks "what time is it?" and is told: one round trip.
struct ClockRoundTrip {
  Ticks sent = 0;      // our counter
  Ticks received = 0;  // likewise
  Ticks there = 0;     // theirs, in between
};

class HostClocks {
 public:
  struct Host {
    std::string name;
    std::string boot_id;
    std::vector<int> ranks;
  };
  // What is known of a host's clock, beside the coordinator's. The coordinator's own: all zero.
  struct Estimate {
    bool known = false;      // false: it never answered
    bool consistent = true;  // false: no constant drift explains the answers
    double drift_ppm = 0;    // how much more it counts than the coordinator's
    double drift_error_ppm = 0;
    double error_ns = 0;       // the largest bound from `begin` to the last exchange
    double day_offset_ns = 0;  // its time of day minus the coordinator's, at the start
    double day_offset_error_ns = 0;
    double shortest_round_trip_ns = 0;
    std::size_t probes = 0;
  };
  // At some moment between two of our ticks its counter showed `there`.
  struct Anchor {
    Ticks there = 0;
    Ticks low = 0;
    Ticks high = 0;
  };

  // In order of ranks; the first is the coordinator's.
  void Add(int rank, const std::string& host, const std::string& boot_id);
  // The coordinator's clock, at the start and at the newest exchange.
  void SetOurs(const ClockReading& reading);
  // One host's answers within some milliseconds, at least one.
  void AddExchange(std::size_t host, const std::vector<ClockRoundTrip>& trips,
                   const ClockReading& reading);

  const std::vector<Host>& hosts() const { return hosts_; }
  bool shared(int rank) const { return HostOf(rank) == 0; }  // the coordinator's counter
  std::size_t HostOf(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }

  // A stamp of that rank on the coordinator's counter. Of a clock that is not known the first
  // stamp there is, is ours of that moment.
  Ticks ToOurs(int rank, Ticks theirs) const;
  // How far that can be off; infinite when the clock is not known.
  double ErrorNs(int rank, Ticks theirs) const;
  double NsPerTick(int rank) const;

  // `begin`: on our counter, of what is to be measured.
  Estimate EstimateOf(std::size_t host, Ticks begin) const;
  std::vector<Anchor> AnchorsOf(std::size_t host) const;
  // Exchanges that are made of that host.
  std::size_t exchanges(std::size_t host) const { return states_[host].exchanges.size(); }

 private:
  struct State {
    std::vector<stats::ClockExchange> exchanges;
    std::optional<ClockReading> first;
    ClockReading last;
    mutable std::optional<stats::ClockFit> fit;  // of the exchanges so far
  };
  const stats::ClockFit& FitOf(std::size_t host) const;
  // Nanoseconds since the host's first reading.
  double ThereNs(const State& state, Ticks ticks) const;
  double OursNs(Ticks ticks) const { return ThereNs(states_.front(), ticks); }
  Ticks OurTicks(double ns) const;

  std::vector<Host> hosts_;
  std::vector<State> states_;         // a host
  std::vector<std::size_t> host_of_;  // a rank
};

}  // namespace lockstep::coordinator
