// Probes are sent while the workers sleep, and cost little. Each host gets a few in its turn, which
// are an anchor for the fit (host_clocks.h). An answer is awaited without sleep at first, because
// waking up would take as long as the way.
#include "core/coordinator/clock_prober.h"

#include <algorithm>

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

void ClockProber::Begin() {
  for (const AgentInfo& agent : members_.agents()) {
    clocks_.Add(agent.rank, agent.host, agent.boot_id);
  }
  Measure(/*thoroughly=*/true);
}

void ClockProber::Translate(int rank, journal::Journal& journal) const {
  if (clocks_.shared(rank)) return;
  for (journal::JournalEvent& event : journal.events)
    event.ticks = clocks_.ToOurs(rank, event.ticks);
}

void ClockProber::Translate(int rank, journal::GpuSamples& gpus) const {
  if (clocks_.shared(rank)) return;
  for (journal::GpuSample& sample : gpus.samples) sample.ticks = clocks_.ToOurs(rank, sample.ticks);
}

bool ClockProber::OnReport(int rank, FrameType type, const std::string& payload) {
  if (type != FrameType::kClockTold) return false;
  const Ticks received = NowTicks();
  const auto report = control::Decode<control::ClockReport>(payload);
  if (!report || report->request != members_.newest_request()) return true;  // too late
  answers_[static_cast<std::size_t>(rank)] = {{0, received, report->there}, report->reading};
  members_.NoteAnswer(rank, report->request);
  return true;
}

bool ClockProber::Probe(int rank, bool read, ClockRoundTrip& trip) {
  const std::uint64_t request = members_.NewRequest();
  const Deadline deadline = Deadline::AfterSeconds(kProbeSeconds);
  const Deadline awake = Deadline::AfterSeconds(kAwakeSeconds);
  const std::string probe = control::Encode(control::ClockProbe{request, read});
  const Ticks sent = NowTicks();
  members_.Order(rank, FrameType::kClockProbe, probe);
  while (!members_.Answered(rank, request)) {
    if (members_.lost(rank) || members_.terminating() || deadline.Passed()) return false;
    members_.PollOnce(awake.Passed() ? deadline : Deadline::AfterNs(0));
  }
  trip = answers_[static_cast<std::size_t>(rank)].trip;
  trip.sent = sent;
  return true;
}

void ClockProber::Exchange(std::size_t host, int probes) {
  const std::vector<int>& ranks = clocks_.hosts()[host].ranks;
  const auto speaker = std::ranges::find_if(ranks, [&](int rank) { return !members_.lost(rank); });
  if (speaker == ranks.end()) return;
  const Deadline enough = Deadline::AfterSeconds(kHostSeconds);
  std::vector<ClockRoundTrip> trips;
  std::optional<ClockReading> reading;
  for (int i = 0; i < probes && !enough.Passed(); ++i) {
    ClockRoundTrip trip;
    if (!Probe(*speaker, /*read=*/i == 0, trip)) break;
    trips.push_back(trip);
    if (i == 0) reading = answers_[static_cast<std::size_t>(*speaker)].reading;
  }
  if (reading) clocks_.AddExchange(host, trips, *reading);
}

void ClockProber::Measure(bool thoroughly) {
  const std::size_t hosts = clocks_.hosts().size();
  if (members_.terminating() || (!thoroughly && (hosts < 2 || !due_.Passed()))) return;
  clocks_.SetOurs(control::ReadClock(members_.scale().ns_per_tick));
  const Deadline enough = Deadline::AfterSeconds(kExchangeSeconds);
  for (std::size_t i = 1; i < hosts; ++i) {
    Exchange(next_host_, thoroughly ? kThoroughProbes : kProbes);
    next_host_ = next_host_ + 1 < hosts ? next_host_ + 1 : 1;
    if (!thoroughly && enough.Passed()) break;
  }
  const double seconds = SecondsSince(since_ns_);
  due_ = Deadline::AfterSeconds(std::max(kLeastPauseSeconds, seconds * kPausePart));
}

}  // namespace lockstep::coordinator
