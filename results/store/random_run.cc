#include "results/store/random_run.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>

#include "core/base/random.h"

namespace lockstep {
namespace {

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  int Below(int bound) {
    return static_cast<int>(random_.Below(static_cast<std::uint64_t>(bound)));
  }
  bool Flip() { return Below(2) == 1; }
  std::uint64_t Any() { return random_.Next(); }

  double Number() {
    static constexpr std::array<double, 6> kSpecial = {0.0,
                                                       -0.0,
                                                       std::numeric_limits<double>::quiet_NaN(),
                                                       std::numeric_limits<double>::infinity(),
                                                       -std::numeric_limits<double>::infinity(),
                                                       std::numeric_limits<double>::denorm_min()};
    if (Below(4) == 0) return kSpecial[static_cast<std::size_t>(Below(6))];
    return (random_.Uniform() - 0.5) * 1e12;
  }
  std::string Word() { return fmt::format("w{:x}", random_.Below(1u << 20)); }
  std::string Text() {
    static const std::array<std::string, 6> kTexts = {"",
                                                      "plain",
                                                      "Grüße, 世界 \xf0\x9f\x9a\x80",
                                                      "two\nlines\tand a tab",
                                                      "quote \" and \\",
                                                      "ends in a space "};
    if (Below(8) == 0) return std::string(static_cast<std::size_t>(Below(5000)), 'x');
    return kTexts[static_cast<std::size_t>(Below(6))];
  }
  template <typename E>
  E Enumerator(E last) {
    return static_cast<E>(Below(static_cast<int>(last) + 1));
  }

  Judgement MakeJudgement(int ranks) {
    Judgement judgement;
    judgement.verdict = Enumerator(Verdict::kUnknown);
    for (int rank = 0; rank < ranks && Flip(); ++rank) {
      judgement.outcomes.push_back({rank, Enumerator(Outcome::kCorrupt), Below(256) - 1, Below(32),
                                    Text(), Number(), Text()});
    }
    for (int i = Below(3); i > 0; --i) {
      Finding finding{Word(), {}, Flip(), Text(), Text()};
      for (int k = Below(4); k > 0; --k) finding.culprits.push_back(Below(1000));
      judgement.findings.push_back(finding);
    }
    return judgement;
  }

  Samples MakeSamples(int ranks) {
    Samples samples;
    samples.ranks = ranks;
    for (int i = Below(3) * Below(100); i > 0; --i) {
      samples.round.push_back(Below(10));
      for (int rank = 0; rank < ranks; ++rank) {
        samples.entry_ns.push_back(static_cast<std::int64_t>(Any()));
        samples.exit_ns.push_back(Flip() ? Samples::kNoTime : static_cast<std::int64_t>(Any()));
      }
    }
    return samples;
  }

  Part MakePart(int index, const Samples& samples) {
    Part part{fmt::format("part{}_{}", index, Word()), Flip() ? "ns" : "", Word(), {}};
    for (std::size_t i = 0; i < samples.entry_ns.size(); ++i) part.values.push_back(Number());
    part.median = Number();
    part.interval_low = Number();
    part.interval_high = Number();
    return part;
  }

  Effect MakeEffect(int cases) {
    return {Word(),      Text(),   Text(),   Below(cases), Below(cases),
            Below(1000), Number(), Number(), Number()};
  }

  Trial MakeTrial() {
    Trial trial;
    trial.expected_outcomes = Text();
    trial.expected_cause = Word();
    for (int k = Below(4); k > 0; --k) trial.expected_culprits.push_back(Below(1000));
    trial.faults = Below(9);
    trial.faults_fired = Below(9);
    trial.why = Text();
    trial.detected_after_seconds = Number();
    trial.seconds = Number();
    trial.communicator = Below(9) - 1;
    trial.sequence = static_cast<std::int64_t>(Any() >> 1);
    return trial;
  }

  RecoveryRecord MakeRecovery() {
    RecoveryRecord recovery;
    recovery.mode = Word();
    recovery.outcome = Word();
    recovery.cause = Text();
    recovery.generation = Below(9);
    for (int k = Below(4); k > 0; --k) recovery.lost.push_back(Below(1000));
    for (int k = Below(4); k > 0; --k) recovery.members.push_back(Below(1000));
    recovery.first_iteration = static_cast<std::int64_t>(Any() >> 1);
    for (double* seconds : {&recovery.detect_seconds, &recovery.abort_seconds,
                            &recovery.rebuild_seconds, &recovery.resume_seconds}) {
      *seconds = Number();
    }
    return recovery;
  }

  LinkMatrix MakeLinks() {
    LinkMatrix links;
    links.bytes = Below(1 << 20);
    links.slow_factor = Number();
    links.usual_latency_ns = Number();
    links.usual_gbps = Number();
    for (int i = Below(7); i > 0; --i) {
      LinkPair& pair = links.pairs.emplace_back();
      pair.a = Below(9);
      pair.b = Below(9);
      pair.rounds = Below(100);
      for (double* figure : {&pair.latency_ns, &pair.latency_low_ns, &pair.latency_high_ns,
                             &pair.forward_gbps, &pair.back_gbps, &pair.retest_latency_ns,
                             &pair.retest_forward_gbps, &pair.retest_back_gbps}) {
        *figure = Number();
      }
      pair.standing = Word();
    }
    for (int i = Below(5); i > 0; --i) links.all_at_once_gbps.push_back(Number());
    return links;
  }

  HostClock MakeClock() {
    HostClock clock{Text(),   {},       Word(),   Number(), Number(), Number(),
                    Number(), Number(), Number(), Below(99), Below(999)};
    for (int k = Below(4); k > 0; --k) clock.ranks.push_back(Below(1000));
    return clock;
  }

  Summary MakeSummary() {
    Summary s;
    s.iterations = Below(1000);
    s.rounds = Below(100);
    for (double* figure : {&s.median_ns, &s.interval_low_ns, &s.interval_high_ns, &s.min_ns,
                           &s.p99_ns, &s.max_ns, &s.rank_average_median_ns, &s.algorithm_gbps,
                           &s.bus_gbps, &s.floor_ns, &s.percent_of_limit}) {
      *figure = Number();
    }
    s.max_rank = Below(9) - 1;
    s.checked_elements = static_cast<std::int64_t>(Any() >> 1);
    s.wrong_elements = Below(3);
    s.stopped_by = Word();
    return s;
  }

  CaseRecord MakeCase(int index) {
    CaseRecord record;
    record.name = fmt::format("case {} {}", index, Text());
    record.backend = Word();
    record.device = Word();
    record.ranks = 1 + Below(4);
    record.repetition = Below(3);
    for (int i = Below(4); i > 0; --i) {
      record.operations.push_back({Enumerator(Collective::kRecv), Enumerator(DataType::kU8),
                                   Enumerator(Reduction::kMax), Enumerator(Blocking::kNonblocking),
                                   static_cast<std::int64_t>(Any()), Below(8)});
    }
    record.in_place = Flip();
    record.bytes = static_cast<std::int64_t>(Any());
    record.model = Flip() ? "" : Word();
    record.bucket = Below(5) - 1;
    record.bucket_cap_mb = Number();
    std::map<std::string, std::string> settings;
    for (int i = Below(4); i > 0; --i) settings[Word()] = Text();
    record.settings.assign(settings.begin(), settings.end());
    record.samples = MakeSamples(Below(5));
    for (int i = Below(4); i > 0; --i) record.parts.push_back(MakePart(i, record.samples));
    record.summary = MakeSummary();
    for (int i = Below(3); i > 0; --i) {
      record.wrong.push_back({Below(4), Below(100) - 1, Below(9), Below(1000), Text(), Text()});
    }
    record.judgement = MakeJudgement(record.ranks);
    if (Flip()) record.trial = MakeTrial();
    if (Flip()) record.arrivals = {Number(), Number(), Number(), Below(9) - 1, Number()};
    for (int i = Below(3); i > 0; --i) record.recoveries.push_back(MakeRecovery());
    return record;
  }

  RankHistory MakeHistory() {
    RankHistory history{Below(8), Below(9), Any(), {}};
    for (int i = Below(3) * Below(200); i > 0; --i) {
      history.events.push_back({Any(), Any(), Any(), static_cast<std::int64_t>(Any()), Any(),
                                static_cast<std::int64_t>(Any()), static_cast<std::uint32_t>(Any()),
                                Below(8) - 1, Enumerator(kLastEventKind),
                                static_cast<std::uint16_t>(Any()), Enumerator(Collective::kRecv),
                                Enumerator(DataType::kU8), Enumerator(Reduction::kMax),
                                Enumerator(Phase::kBarrier)});
    }
    return history;
  }

 private:
  Random random_;
};

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

void Add(std::string& out, const Judgement& judgement) {
  Add(out, judgement.verdict);
  for (const RankOutcome& o : judgement.outcomes) {
    Add(out, o.rank), Add(out, o.outcome), Add(out, o.exit_code), Add(out, o.signal);
    Add(out, o.where), Add(out, o.seconds_silent), Add(out, o.evidence);
  }
  for (const Finding& f : judgement.findings) {
    Add(out, f.cause), Add(out, f.culprits), Add(out, f.proved), Add(out, f.message);
    Add(out, f.remedy);
  }
}

void Add(std::string& out, const Summary& s) {
  Add(out, s.iterations), Add(out, s.rounds), Add(out, s.median_ns), Add(out, s.interval_low_ns);
  Add(out, s.interval_high_ns), Add(out, s.min_ns), Add(out, s.p99_ns), Add(out, s.max_ns);
  Add(out, s.max_rank), Add(out, s.rank_average_median_ns), Add(out, s.algorithm_gbps);
  Add(out, s.bus_gbps), Add(out, s.floor_ns), Add(out, s.percent_of_limit);
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

void Add(std::string& out, const CaseRecord& c) {
  Add(out, c.name), Add(out, c.backend), Add(out, c.device), Add(out, c.ranks);
  Add(out, c.repetition), Add(out, c.in_place), Add(out, c.bytes), Add(out, c.model);
  Add(out, c.bucket), Add(out, c.bucket_cap_mb);
  for (const Operation& o : c.operations) {
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

Run RandomRun(std::uint64_t seed) {
  Maker make(seed);
  Run run;
  run.id = fmt::format("{:08x}", make.Any() & 0xffffffff);
  run.name = make.Word();
  run.started_at = "2026-11-21T10:44:25Z";
  run.duration_seconds = make.Number();
  run.command_line = make.Text();
  run.exit_code = make.Below(12);
  run.verdict = make.Enumerator(Verdict::kUnknown);
  run.summary_line = make.Text();
  std::map<std::string, std::string> facts = {{"top", make.Text()}};
  for (int i = make.Below(30); i > 0; --i) {
    facts[fmt::format("host/{}/{}", make.Below(3), make.Word())] = make.Text();
  }
  run.environment.assign(facts.begin(), facts.end());
  std::map<std::string, double> floors;
  for (int i = make.Below(9); i > 0; --i) floors[make.Word()] = make.Number();
  run.floors.assign(floors.begin(), floors.end());
  run.plan_text = make.Text();
  run.seed = make.Any();
  run.plan_hash = make.Word();
  for (int i = make.Below(6); i > 0; --i) run.cases.push_back(make.MakeCase(i));
  for (int i = make.Below(3); i > 0 && !run.cases.empty(); --i) {
    run.effects.push_back(make.MakeEffect(static_cast<int>(run.cases.size())));
  }
  run.recommendation = make.Text();
  for (int i = make.Below(4); i > 0; --i) run.history.push_back(make.MakeHistory());
  if (make.Flip()) run.links = make.MakeLinks();
  for (int i = make.Below(4); i > 0; --i) run.clocks.push_back(make.MakeClock());
  for (int i = make.Below(9); i > 0 && !run.clocks.empty(); --i) {
    run.clock_anchors.push_back({make.Below(static_cast<int>(run.clocks.size())), make.Any(),
                                 make.Number(), make.Number()});
  }
  run.judgement = make.MakeJudgement(3);
  run.ns_per_tick = make.Number();
  run.origin_ticks = make.Any();
  run.complete = make.Flip();
  return run;
}

Run RunWithSamples(std::int64_t iterations, int ranks) {
  Run run;
  run.id = "1a2b3c4d";
  run.name = "bench_allreduce";
  run.started_at = "2026-11-21T10:44:25Z";
  CaseRecord& record = run.cases.emplace_back();
  record.name = "all_reduce";
  record.ranks = ranks;
  record.samples.ranks = ranks;
  record.samples.round.resize(static_cast<std::size_t>(iterations));
  const std::int64_t times = iterations * ranks;
  for (std::int64_t i = 0; i < times; ++i) {
    record.samples.entry_ns.push_back(i * 1000);
    record.samples.exit_ns.push_back(i * 1000 + 700);
  }
  return run;
}

std::string BytesOf(const Run& run) {
  std::string out;
  Add(out, run.schema_version), Add(out, run.id), Add(out, run.name), Add(out, run.started_at);
  Add(out, run.duration_seconds), Add(out, run.command_line), Add(out, run.exit_code);
  Add(out, run.verdict), Add(out, run.summary_line);
  for (const auto& [name, value] : run.environment) Add(out, name), Add(out, value);
  for (const auto& [name, value] : run.floors) Add(out, name), Add(out, value);
  Add(out, run.plan_text), Add(out, run.seed), Add(out, run.plan_hash);
  for (const CaseRecord& record : run.cases) Add(out, record);
  for (const Effect& e : run.effects) {
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
  Add(out, run.judgement), Add(out, run.ns_per_tick), Add(out, run.origin_ticks);
  Add(out, run.complete);
  return out;
}

}  // namespace lockstep
