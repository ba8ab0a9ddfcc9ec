// All that a run holds as one string, so that two runs are compared bit by bit: NaN equals itself,
// and -0 is not 0. It names each field by hand, independently of the store's schema.
#include <fmt/core.h>

#include <string>
#include <type_traits>
#include <vector>

#include "results/store/testing/random_run.h"

namespace lockstep::results::store {
namespace {

void Add(std::string& out, const std::string& text) {
  out += fmt::format("{}:{};", text.size(), text);
}
template <typename T>
requires std::is_trivially_copyable_v<T>
void Add(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
template <typename T>
void Add(std::string& out, const std::vector<T>& values) {
  Add(out, values.size());
  for (const T& value : values) Add(out, value);
}

void Add(std::string& out, const verdict::Judgement& judgement) {
  Add(out, judgement.verdict);
  for (const verdict::RankOutcome& o : judgement.outcomes) {
    Add(out, o.rank), Add(out, o.outcome), Add(out, o.exit_code), Add(out, o.signal);
    Add(out, o.where), Add(out, o.seconds_silent), Add(out, o.evidence);
  }
  for (const verdict::Finding& f : judgement.findings) {
    Add(out, std::string(f.cause.name())), Add(out, f.culprits), Add(out, f.proved),
        Add(out, f.message);
    Add(out, f.remedy), Add(out, f.headline.text());
  }
}

void Add(std::string& out, const Summary& s) {
  Add(out, s.iterations), Add(out, s.rounds), Add(out, s.median_ns), Add(out, s.interval_low_ns);
  Add(out, s.interval_high_ns), Add(out, s.min_ns), Add(out, s.p99_ns), Add(out, s.max_ns);
  Add(out, s.max_rank), Add(out, s.rank_average_median_ns), Add(out, s.algorithm_gbps);
  Add(out, s.bus_gbps), Add(out, s.floor_ns), Add(out, s.percent_of_limit);
  Add(out, s.rounds_low_ns), Add(out, s.rounds_high_ns), Add(out, s.limit_low);
  Add(out, s.limit_high), Add(out, s.line_least_ns), Add(out, s.line_most_ns);
  Add(out, s.checked_elements), Add(out, s.wrong_elements), Add(out, s.stopped_by);
}

void Add(std::string& out, const Trial& t) {
  Add(out, t.expected_outcomes), Add(out, t.expected_cause), Add(out, t.expected_culprits);
  Add(out, t.faults), Add(out, t.faults_fired), Add(out, t.why);
  Add(out, t.detected_after_seconds), Add(out, t.seconds), Add(out, t.communicator);
  Add(out, t.sequence);
}

void Add(std::string& out, const LinkMatrix& links) {
  Add(out, links.bytes), Add(out, links.slow_factor), Add(out, links.usual_latency_ns);
  Add(out, links.usual_gbps), Add(out, links.all_at_once_gbps);
  for (const LinkPair& p : links.pairs) {
    Add(out, p.a), Add(out, p.b), Add(out, p.rounds), Add(out, p.latency_ns);
    Add(out, p.latency_low_ns), Add(out, p.latency_high_ns), Add(out, p.forward_gbps);
    Add(out, p.back_gbps), Add(out, p.retest_latency_ns), Add(out, p.retest_forward_gbps);
    Add(out, p.retest_back_gbps), Add(out, p.standing);
  }
}

void Add(std::string& out, const Watched& watched) {
  for (const WatchedRank& r : watched.ranks) {
    Add(out, r.rank), Add(out, r.pid), Add(out, r.begun_ns), Add(out, r.ended_ns);
    Add(out, r.calls), Add(out, r.uncounted), Add(out, r.complete);
  }
  for (const WaitPlace& p : watched.places) {
    Add(out, p.rank), Add(out, p.call), Add(out, p.site), Add(out, p.communicator);
    Add(out, p.calls), Add(out, p.came_last), Add(out, p.waited_ns), Add(out, p.longest_ns);
  }
  for (const WaitedFor& b : watched.blamed) {
    Add(out, b.place), Add(out, b.rank), Add(out, b.times), Add(out, b.waited_ns);
  }
  for (const WatchedCall& c : watched.calls) {
    Add(out, c.place), Add(out, c.thread), Add(out, c.peer), Add(out, c.tag);
    Add(out, c.entered_ns), Add(out, c.left_ns), Add(out, c.waited_ns), Add(out, c.waited_for);
  }
}

void Add(std::string& out, const CaseRecord& c) {
  Add(out, c.name), Add(out, c.backend), Add(out, c.device), Add(out, c.ranks);
  Add(out, c.repetition), Add(out, c.in_place), Add(out, c.bytes), Add(out, c.model);
  Add(out, c.bucket), Add(out, c.bucket_cap_mb);
  for (const collective::Operation& o : c.operations) {
    Add(out, o.collective), Add(out, o.type), Add(out, o.reduction), Add(out, o.blocking);
    Add(out, o.count), Add(out, o.root);
  }
  Add(out, c.samples.ranks), Add(out, c.samples.entry_ns), Add(out, c.samples.exit_ns);
  Add(out, c.samples.round), Add(out, c.summary);
  for (const auto& [name, value] : c.settings) Add(out, name), Add(out, value);
  for (const Part& p : c.parts) {
    Add(out, p.name), Add(out, p.units), Add(out, p.over), Add(out, p.values);
    Add(out, p.median), Add(out, p.interval_low), Add(out, p.interval_high);
  }
  for (const WrongResult& w : c.wrong) {
    Add(out, w.rank), Add(out, w.iteration), Add(out, w.operation), Add(out, w.element);
    Add(out, w.expected), Add(out, w.got);
  }
  Add(out, c.judgement), Add(out, c.trial.has_value());
  if (c.trial) Add(out, *c.trial);
  Add(out, c.arrivals.has_value());
  if (c.arrivals) {
    Add(out, c.arrivals->skew_ns), Add(out, c.arrivals->transfer_ns);
    Add(out, c.arrivals->clock_error_ns), Add(out, c.arrivals->last_rank);
    Add(out, c.arrivals->last_share);
  }
  for (const RecoveryRecord& r : c.recoveries) {
    Add(out, r.mode), Add(out, r.outcome), Add(out, r.cause), Add(out, r.generation);
    for (const int rank : r.lost) Add(out, rank);
    for (const int rank : r.members) Add(out, rank);
    Add(out, r.first_iteration), Add(out, r.detect_seconds), Add(out, r.abort_seconds);
    Add(out, r.rebuild_seconds), Add(out, r.resume_seconds);
  }
}

}  // namespace

std::string BytesOf(const Run& run) {
  std::string out;
  Add(out, run.schema_version), Add(out, run.id), Add(out, run.name), Add(out, run.started_at);
  Add(out, run.duration_seconds), Add(out, run.command_line), Add(out, run.exit_code);
  Add(out, run.verdict), Add(out, run.summary_line);
  Add(out, run.lockstep.number), Add(out, run.lockstep.commit), Add(out, run.lockstep.modified);
  for (const auto& [name, value] : run.environment) Add(out, name), Add(out, value);
  for (const auto& [name, value] : run.floors) Add(out, name), Add(out, value);
  Add(out, run.plan_text), Add(out, run.seed), Add(out, run.plan_hash);
  for (const CaseRecord& record : run.cases) Add(out, record);
  for (const OptionEffect& e : run.effects) {
    Add(out, e.option), Add(out, e.value), Add(out, e.baseline_value), Add(out, e.case_index);
    Add(out, e.baseline), Add(out, e.rounds), Add(out, e.ratio), Add(out, e.interval_low);
    Add(out, e.interval_high);
  }
  Add(out, run.recommendation), Add(out, run.links.has_value());
  if (run.links) Add(out, *run.links);
  for (const RankHistory& h : run.history) {
    Add(out, h.rank), Add(out, h.lifetime), Add(out, h.missed), Add(out, h.events);
  }
  for (const HostClock& c : run.clocks) {
    Add(out, c.host), Add(out, c.ranks), Add(out, c.state), Add(out, c.drift_ppm);
    Add(out, c.drift_error_ppm), Add(out, c.error_ns), Add(out, c.day_offset_ns);
    Add(out, c.day_offset_error_ns), Add(out, c.shortest_round_trip_ns);
    Add(out, c.exchanges), Add(out, c.probes);
  }
  for (const ClockAnchorPoint& a : run.clock_anchors) {
    Add(out, a.host), Add(out, a.ticks), Add(out, a.low_ns), Add(out, a.high_ns);
  }
  for (const journal::PlacedGpuSample& g : run.gpu_samples) {
    Add(out, g.rank), Add(out, g.bus);
    out.append(reinterpret_cast<const char*>(&g.sample), sizeof g.sample);
  }
  for (const EvidenceRecord& e : run.evidence) {
    const verdict::RankEvidence& k = e.known;
    Add(out, e.case_index), Add(out, e.lifetime), Add(out, e.deadline_seconds), Add(out, k.rank);
    Add(out, k.state), Add(out, k.exit_code), Add(out, k.signal), Add(out, k.seconds_silent);
    Add(out, k.starved_s);
    Add(out, k.idle), Add(out, k.asleep), Add(out, k.error), Add(out, k.system);
    Add(out, k.wrong_data), Add(out, k.gpu), Add(out, e.first_event), Add(out, e.last_event);
    Add(out, k.journal.missed), Add(out, e.left);
    for (const verdict::TcpSocket& s : k.sockets) {
      Add(out, s.local), Add(out, s.remote), Add(out, s.written), Add(out, s.received);
      Add(out, s.unread), Add(out, s.retransmits), Add(out, s.closed);
    }
  }
  for (const journal::WorkerLog& l : run.logs) {
    Add(out, l.rank), Add(out, l.lifetime), Add(out, l.path), Add(out, l.bytes);
    Add(out, l.cut_bytes), Add(out, l.text);
  }
  Add(out, run.watched.has_value());
  if (run.watched) Add(out, *run.watched);
  Add(out, run.judgement), Add(out, run.ns_per_tick), Add(out, run.origin_ticks);
  Add(out, run.complete);
  return out;
}

}  // namespace lockstep::results::store
