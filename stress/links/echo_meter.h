// How long a word takes from this agent to the coordinator and back, over the agents' own
// connection: where that is long, what this host sees late says nothing of a link.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace lockstep::stress::links {

// May be used by several threads. Times are of CLOCK_MONOTONIC, passed in.
class EchoMeter {
 public:
  static constexpr std::int64_t kEveryNs = 20'000'000;
  static constexpr std::size_t kFewest = 8;  // fewer say nothing

  // Forgets everything.
  void Begin();
  // Whether a word is to be sent now: none is under way, and the last was sent a while ago. It
  // counts from now on, and Unsent() gives it out.
  bool Start(std::int64_t now_ns);
  // The one that was started and not given out yet.
  std::optional<std::int64_t> Unsent();
  // That one came back.
  void Finish(std::int64_t begun_ns, std::int64_t now_ns);
  // Within which nine of ten of the newest came back, with the one under way; 0: too few.
  double Seconds(std::int64_t now_ns) const;

 private:
  mutable std::mutex mutex_;
  std::int64_t begun_ns_ = 0;  // the newest
  bool under_way_ = false;
  bool unsent_ = false;
  std::vector<double> seconds_;
};

}  // namespace lockstep::stress::links
