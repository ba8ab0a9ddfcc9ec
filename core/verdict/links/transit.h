// How long bytes were on the way between two sockets at least, as late and unsynchronised looks at
// both ends bound it. Pure.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/verdict/evidence.h"
#include "core/verdict/tcp_socket.h"

namespace lockstep::verdict::links {

// The bytes that one look found to have come. All times are of the last of them, which was under
// way for the shortest time; they need clocks of both ends that agree.
struct Passage {
  double after_s = 0;  // it was written after this, on the clock that both ends share …
  double by_s = 0;     // … and had come by this
  double least_s = 0;  // it was on the way for so long at least, 0 or more
  double most_s = 0;   // and at most so long; below 0 the clocks or the looks contradict each other
  double middle_s = 0;  // in between, may be below 0: an estimate
  // For so long a relay on the way was told to hold it back; none: there is no relay. What it was
  // not told to do it may have done because it waited for a processor: `least_s` is no more.
  std::optional<double> told_s = std::nullopt;
};

// In order of time. Bytes that the writer was not seen to have written before they came are left
// out; so is the time in which the receiver's window was closed: neither is the link's.
std::vector<Passage> PassagesOf(const TcpSocket& writer, const TcpSocket& reader);

// How long a rank's process, and the relay in its agent, waited for a processor.
class WaitRecord {
 public:
  explicit WaitRecord(const RankEvidence& rank);
  // No less than what was waited between the two times; none: that is not known.
  std::optional<double> Between(double from_s, double to_s) const;

 private:
  std::vector<std::pair<double, double>> totals_;  // at a time, ascending
  double last_s_ = 0;
};

}  // namespace lockstep::verdict::links
