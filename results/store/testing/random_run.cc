// Runs in which every field of the schema has a random value, special numbers and empty lists
// included. A field that the store forgets to write or to read makes the round trip differ.
#include "results/store/testing/random_run.h"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <map>

#include "core/base/random.h"

namespace lockstep::results::store {
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

  verdict::Judgement MakeJudgement(int ranks) {
    verdict::Judgement judgement;
    judgement.verdict = Enumerator(verdict::Verdict::kUnknown);
    for (int rank = 0; rank < ranks && Flip(); ++rank) {
      judgement.outcomes.push_back({rank, Enumerator(verdict::Outcome::kCorrupt), Below(256) - 1,
                                    Below(32), Text(), Number(), Text()});
    }
    for (int i = Below(3); i > 0; --i) {
      verdict::Finding finding{verdict::FindingCause::Named(Word()), {}, Flip(), Text(), Text()};
      finding.headline = verdict::Headline(Word() + " " + Word());
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

  OptionEffect MakeEffect(int cases) {
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
    HostClock clock{Text(),   {},       Word(),   Number(),  Number(),  Number(),
                    Number(), Number(), Number(), Below(99), Below(999)};
    for (int k = Below(4); k > 0; --k) clock.ranks.push_back(Below(1000));
    return clock;
  }

  journal::PlacedGpuSample MakeGpuSample() {
    journal::PlacedGpuSample placed{Below(9), Word(), {}};
    journal::GpuSample& sample = placed.sample;
    sample.ticks = Any();
    for (std::int64_t* value :
         {&sample.unix_ns, &sample.gpu, &sample.utilization_percent,
          &sample.memory_utilization_percent, &sample.memory_used_bytes, &sample.power_mw,
          &sample.power_limit_mw, &sample.temperature_celsius, &sample.sm_clock_mhz,
          &sample.memory_clock_mhz, &sample.throttle_reasons, &sample.corrected_ecc_errors,
          &sample.uncorrected_ecc_errors, &sample.xid}) {
      *value = static_cast<std::int64_t>(Any());
    }
    return placed;
  }

  EvidenceRecord MakeEvidence(int rank, int cases) {
    EvidenceRecord record{Below(cases + 1) - 1, Below(9), Number(), {}, Any(), Any(), Flip()};
    verdict::RankEvidence& known = record.known;
    known.rank = rank;
    known.state = Enumerator(verdict::ProcessState::kLost);
    known.exit_code = Below(256);
    known.signal = Below(32);
    known.journal.missed = Any();
    known.seconds_silent = Number();
    known.starved_s = Number();
    known.idle = Flip();
    known.asleep = Flip();
    for (std::string* text : {&known.error, &known.system, &known.wrong_data, &known.gpu}) {
      *text = Text();
    }
    for (int i = Below(4); i > 0; --i) {
      known.sockets.push_back({.local = Text(),
                               .remote = Text(),
                               .written = Any(),
                               .received = Any(),
                               .unread = static_cast<std::uint32_t>(Any()),
                               .retransmits = static_cast<std::uint32_t>(Any()),
                               .closed = Flip()});
    }
    return record;
  }

  journal::WorkerLog MakeLog() {
    return {Below(9), Below(9), Text(), Below(1000), Below(1000), Text()};
  }

  Summary MakeSummary() {
    Summary s;
    s.iterations = Below(1000);
    s.rounds = Below(100);
    for (double* figure :
         {&s.median_ns, &s.interval_low_ns, &s.interval_high_ns, &s.min_ns, &s.p99_ns, &s.max_ns,
          &s.rank_average_median_ns, &s.algorithm_gbps, &s.bus_gbps, &s.floor_ns,
          &s.percent_of_limit, &s.rounds_low_ns, &s.rounds_high_ns, &s.limit_low, &s.limit_high,
          &s.line_least_ns, &s.line_most_ns}) {
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
      record.operations.push_back(
          {Enumerator(collective::Collective::kRecv), Enumerator(collective::kLastDataType),
           Enumerator(collective::Reduction::kMax), Enumerator(collective::Blocking::kNonblocking),
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
      history.events.push_back(
          {Any(), Any(), Any(), static_cast<std::int64_t>(Any()), static_cast<std::uint32_t>(Any()),
           static_cast<std::uint32_t>(Any()), static_cast<std::int64_t>(Any()),
           static_cast<std::uint32_t>(Any()), Below(8) - 1, Enumerator(journal::kLastEventKind),
           static_cast<std::uint16_t>(Any()), Enumerator(collective::Collective::kRecv),
           Enumerator(collective::kLastDataType), Enumerator(collective::Reduction::kMax),
           Enumerator(journal::Phase::kBarrier)});
    }
    return history;
  }

  Watched MakeWatched() {
    Watched watched;
    for (int i = Below(4); i > 0; --i) {
      watched.ranks.push_back({Below(9), Below(9999), Number(), Number(),
                               static_cast<std::int64_t>(Any()), Below(9), Flip()});
    }
    const int places = Below(4);
    for (int i = 0; i < places; ++i) {
      watched.places.push_back({Below(9), Word(), Text(), Text(), static_cast<std::int64_t>(Any()),
                                Below(99), Number(), Number()});
    }
    for (int i = Below(4); i > 0 && places > 0; --i) {
      watched.blamed.push_back({Below(places), Below(9), Below(99), Number()});
      watched.calls.push_back({Below(places), Below(9), Below(9) - 1, Below(9) - 1, Number(),
                               Number(), Number(), Below(9) - 1});
    }
    return watched;
  }

 private:
  Random random_;
};

}  // namespace

Run RandomRun(std::uint64_t seed) {
  Maker make(seed);
  Run run;
  run.id = fmt::format("{:08x}", make.Any() & 0xffffffff);
  run.name = make.Word();
  run.lockstep = {make.Word(), make.Word(), make.Flip()};
  run.started_at = "2026-11-21T10:44:25Z";
  run.duration_seconds = make.Number();
  run.command_line = make.Text();
  run.exit_code = make.Below(12);
  run.verdict = make.Enumerator(verdict::Verdict::kUnknown);
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
  if (make.Flip()) run.watched = make.MakeWatched();
  for (int i = make.Below(4); i > 0; --i) run.clocks.push_back(make.MakeClock());
  for (int i = make.Below(9); i > 0 && !run.clocks.empty(); --i) {
    run.clock_anchors.push_back({make.Below(static_cast<int>(run.clocks.size())), make.Any(),
                                 make.Number(), make.Number()});
  }
  for (int i = make.Below(4); i > 0; --i) run.gpu_samples.push_back(make.MakeGpuSample());
  for (int i = make.Below(4); i > 0; --i) run.logs.push_back(make.MakeLog());
  for (int i = make.Below(4); i > 0; --i) {
    run.evidence.push_back(make.MakeEvidence(i, static_cast<int>(run.cases.size())));
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

}  // namespace lockstep::results::store
