// The coordinator asks one agent of every other host what time it is there.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/coordinator/coordinator_impl.h"

namespace lockstep::coordinator {
namespace {

// The shortest round trip counts: a few at a time, because every time is an anchor.
constexpr int kProbes = 8;
constexpr int kThoroughProbes = 24;
constexpr double kProbeSeconds = 0.25;  // for one answer; who takes longer is asked another time
constexpr double kHostSeconds = 1;      // for all probes of a host, however loaded it is
constexpr double kExchangeSeconds = 0.005;  // for all hosts, between two rounds
constexpr double kLeastPauseSeconds = 0.25;
// The longer a run, the longer the pauses: their number grows with the logarithm of its time.
constexpr double kPausePart = 1.0 / 256;
// So long an answer is awaited without sleep, whose end would take as long as the way.
constexpr double kAwakeSeconds = 0.0005;

}  // namespace

void CoordinatorImpl::Translate(const Member& member, journal::Journal& journal) const {
  const auto rank = static_cast<int>(&member - members_.data());
  if (clocks_.shared(rank)) return;
  for (journal::JournalEvent& event : journal.events)
    event.ticks = clocks_.ToOurs(rank, event.ticks);
}

void CoordinatorImpl::Translate(const Member& member, journal::GpuSamples& gpus) const {
  const auto rank = static_cast<int>(&member - members_.data());
  if (clocks_.shared(rank)) return;
  for (auto& sample : gpus.samples) sample.ticks = clocks_.ToOurs(rank, sample.ticks);
}

void CoordinatorImpl::OnClockTold(Member& member, const std::string& payload) {
  const Ticks received = NowTicks();
  const auto report = control::Decode<control::ClockReport>(payload);
  if (!report || report->request != request_) return;  // too late
  member.clock = {0, received, report->there};
  member.clock_reading = report->reading;
  member.answered = report->request;
}

bool CoordinatorImpl::ProbeClock(int rank, bool read, ClockRoundTrip& trip) {
  const std::uint64_t request = ++request_;
  const Member& member = members_[static_cast<std::size_t>(rank)];
  const Deadline deadline = Deadline::AfterSeconds(kProbeSeconds);
  const Deadline awake = Deadline::AfterSeconds(kAwakeSeconds);
  const std::string probe = control::Encode(control::ClockProbe{request, read});
  const Ticks sent = NowTicks();
  Order(rank, control::FrameType::kClockProbe, probe);
  while (member.answered < request) {
    if (member.lost || terminating_ || deadline.Passed()) return false;
    PollOnce(awake.Passed() ? deadline : Deadline::AfterNs(0));
  }
  trip = member.clock;
  trip.sent = sent;
  return true;
}

void CoordinatorImpl::ExchangeClocks(std::size_t host, int probes) {
  const std::vector<int>& ranks = clocks_.hosts()[host].ranks;
  const auto speaker = std::ranges::find_if(
      ranks, [&](int rank) { return !members_[static_cast<std::size_t>(rank)].lost; });
  if (speaker == ranks.end()) return;
  const Deadline enough = Deadline::AfterSeconds(kHostSeconds);
  std::vector<ClockRoundTrip> trips;
  std::optional<control::ClockReading> reading;
  for (int i = 0; i < probes && !enough.Passed(); ++i) {
    ClockRoundTrip trip;
    if (!ProbeClock(*speaker, /*read=*/i == 0, trip)) break;
    trips.push_back(trip);
    if (i == 0) reading = members_[static_cast<std::size_t>(*speaker)].clock_reading;
  }
  if (reading) clocks_.AddExchange(host, trips, *reading);
}

void CoordinatorImpl::MeasureClocks(bool thoroughly) {
  const std::size_t hosts = clocks_.hosts().size();
  if (terminating_ || (!thoroughly && (hosts < 2 || !clocks_due_.Passed()))) return;
  clocks_.SetOurs(control::ReadClock(agent_.scale().ns_per_tick));
  const Deadline enough = Deadline::AfterSeconds(kExchangeSeconds);
  for (std::size_t i = 1; i < hosts; ++i) {
    ExchangeClocks(next_host_, thoroughly ? kThoroughProbes : kProbes);
    next_host_ = next_host_ + 1 < hosts ? next_host_ + 1 : 1;
    if (!thoroughly && enough.Passed()) break;
  }
  const double seconds = static_cast<double>(MonotonicNs() - clocks_since_ns_) * 1e-9;
  clocks_due_ = Deadline::AfterSeconds(std::max(kLeastPauseSeconds, seconds * kPausePart));
}

}  // namespace lockstep::coordinator
