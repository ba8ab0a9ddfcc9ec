// Measures the clocks of all hosts over the agents' connections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/control/facts.h"
#include "core/coordinator/host_clocks.h"
#include "core/coordinator/membership.h"

namespace lockstep::coordinator {

class ClockProber {
 public:
  explicit ClockProber(Membership& members)
      : members_(members), answers_(static_cast<std::size_t>(members.size())) {}

  // Of agents that have met.
  void Begin();
  // As Coordinator::MeasureClocks.
  void Measure(bool thoroughly);
  const HostClocks& clocks() const { return clocks_; }
  // From a rank's counter to ours.
  void Translate(int rank, journal::Journal& journal) const;
  void Translate(int rank, journal::GpuSamples& gpus) const;

  // False: it is about something else.
  bool OnReport(int rank, FrameType type, const std::string& payload);

 private:
  struct Answer {
    ClockRoundTrip trip;  // but for `sent`
    std::optional<ClockReading> reading;
  };
  // One round trip to a rank's agent, which also reads its clocks for us; false: no answer.
  bool Probe(int rank, bool read, ClockRoundTrip& trip);
  void Exchange(std::size_t host, int probes);

  Membership& members_;
  std::vector<Answer> answers_;  // the newest, one a rank
  HostClocks clocks_;
  Deadline due_ = Deadline::AfterNs(0);
  std::int64_t since_ns_ = MonotonicNs();
  std::size_t next_host_ = 1;
};

}  // namespace lockstep::coordinator
