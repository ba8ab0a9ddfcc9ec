// The schema: each record of a run described once, to write and to read it. For people: schema.md.
#ifndef LOCKSTEP_RESULTS_STORE_SCHEMA_H_
#define LOCKSTEP_RESULTS_STORE_SCHEMA_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "results/store/run.h"

namespace lockstep::results::store {

// Rows of the tables that span all cases. `case_index` is n of /cases/<n>; kLaunch: of no case.
inline constexpr std::int32_t kLaunch = -1;
struct SummaryRow {
  std::int32_t case_index = kLaunch;
  std::string name, backend, device, operation, type, reduction, model;
  std::int32_t ranks = 0, repetition = 0, bucket = -1;
  double bucket_cap_mb = 0;
  std::int64_t operations = 0, bytes = 0;
  bool in_place = false;
  verdict::Verdict verdict = verdict::Verdict::kUnknown;
  Summary summary;
};
struct OperationRow {
  std::int32_t case_index = kLaunch;
  collective::Operation operation;
};
struct PartRow {
  std::int32_t case_index = kLaunch;
  Part part;  // without its values
};
struct WrongRow {
  std::int32_t case_index = kLaunch;
  WrongResult wrong;
};
struct OutcomeRow {
  std::int32_t case_index = kLaunch;
  verdict::RankOutcome outcome;
};
struct TrialRow {
  std::int32_t case_index = kLaunch;
  Trial trial;
};
struct RecoveryRow {
  std::int32_t case_index = kLaunch;
  RecoveryRecord recovery;
};
struct ArrivalsRow {
  std::int32_t case_index = kLaunch;
  Arrivals arrivals;
};
struct SocketRow {
  std::int32_t lifetime = 0, rank = 0;
  std::string local, remote;
  std::uint64_t written = 0, received = 0;
  std::int64_t unread = 0, retransmits = 0;
  bool closed = false;
};
struct FindingRow {
  std::int32_t case_index = kLaunch;
  verdict::Finding finding;
};

// R, C …: the record, const when it is written.
template <typename Fields, typename R>
void DescribeRoot(Fields& fields, R& run) {
  fields.Later("lockstep_version", run.lockstep.number);
  fields.Later("lockstep_commit", run.lockstep.commit);
  fields.Later("lockstep_modified", run.lockstep.modified);
  fields("id", run.id);
  fields("name", run.name);
  fields("started_at", run.started_at);
  fields("duration_seconds", run.duration_seconds, "s");
  fields("command_line", run.command_line);
  fields("exit_code", run.exit_code);
  fields("verdict", run.verdict);
  fields("summary_line", run.summary_line);
  fields("complete", run.complete);
  if (run.schema_version >= 2) fields("recommendation", run.recommendation);
}

template <typename Fields, typename R>
void DescribePlan(Fields& fields, R& run) {
  fields("seed", run.seed);
  fields("hash", run.plan_hash);
}

template <typename Fields, typename R>
void DescribeClock(Fields& fields, R& run) {
  fields("ns_per_tick", run.ns_per_tick, "ns");
  fields("origin_ticks", run.origin_ticks, "tick");
}

template <typename Fields, typename C>
void DescribeCase(Fields& fields, C& record) {
  fields("name", record.name);
  fields("backend", record.backend);
  fields("device", record.device);
  fields("ranks", record.ranks);
  fields("repetition", record.repetition);
  fields("in_place", record.in_place);
  fields("bytes", record.bytes, "B");
  fields("model", record.model);
  fields("bucket", record.bucket);
  fields("bucket_cap_mb", record.bucket_cap_mb, "MiB");
  fields("verdict", record.judgement.verdict);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, LinkPair>
void Describe(Fields& fields, Row& row) {
  fields("a", row.a);
  fields("b", row.b);
  fields("standing", row.standing);
  fields("rounds", row.rounds);
  fields("latency_ns", row.latency_ns, "ns");
  fields("latency_low_ns", row.latency_low_ns, "ns");
  fields("latency_high_ns", row.latency_high_ns, "ns");
  fields("forward_gbps", row.forward_gbps, "GB/s");
  fields("back_gbps", row.back_gbps, "GB/s");
  fields("retest_latency_ns", row.retest_latency_ns, "ns");
  fields("retest_forward_gbps", row.retest_forward_gbps, "GB/s");
  fields("retest_back_gbps", row.retest_back_gbps, "GB/s");
}

template <typename Fields, typename H>
void DescribeHistory(Fields& fields, H& history) {
  fields("rank", history.rank);
  fields("lifetime", history.lifetime);
  fields("missed", history.missed);
}

template <typename Fields, typename S>
void DescribeFigures(Fields& fields, S& summary) {
  fields("iterations", summary.iterations);
  fields("rounds", summary.rounds);
  fields("median_ns", summary.median_ns, "ns");
  fields("interval_low_ns", summary.interval_low_ns, "ns");
  fields("interval_high_ns", summary.interval_high_ns, "ns");
  fields("min_ns", summary.min_ns, "ns");
  fields("p99_ns", summary.p99_ns, "ns");
  fields("max_ns", summary.max_ns, "ns");
  fields("max_rank", summary.max_rank);
  fields("rank_average_median_ns", summary.rank_average_median_ns, "ns");
  fields("algorithm_gbps", summary.algorithm_gbps, "GB/s");
  fields("bus_gbps", summary.bus_gbps, "GB/s");
  fields("floor_ns", summary.floor_ns, "ns");
  fields("percent_of_limit", summary.percent_of_limit, "%");
  fields("checked_elements", summary.checked_elements);
  fields("wrong_elements", summary.wrong_elements);
  fields("stopped_by", summary.stopped_by);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, SummaryRow>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("name", row.name);
  fields("backend", row.backend);
  fields("device", row.device);
  fields("ranks", row.ranks);
  fields("repetition", row.repetition);
  fields("operation", row.operation);
  fields("type", row.type);
  fields("reduction", row.reduction);
  fields("operations", row.operations);
  fields("in_place", row.in_place);
  fields("bytes", row.bytes, "B");
  fields("model", row.model);
  fields("bucket", row.bucket);
  fields("bucket_cap_mb", row.bucket_cap_mb, "MiB");
  fields("verdict", row.verdict);
  DescribeFigures(fields, row.summary);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, OperationRow>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("collective", row.operation.collective);
  fields("type", row.operation.type);
  fields("reduction", row.operation.reduction);
  fields("blocking", row.operation.blocking);
  fields("count", row.operation.count, "element");
  fields("root", row.operation.root);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, PartRow>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("part", row.part.name);
  fields("part_units", row.part.units);
  fields("over", row.part.over);
  fields("median", row.part.median);
  fields("interval_low", row.part.interval_low);
  fields("interval_high", row.part.interval_high);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, OptionEffect>
void Describe(Fields& fields, Row& row) {
  fields("option", row.option);
  fields("value", row.value);
  fields("baseline_value", row.baseline_value);
  fields("case", row.case_index);
  fields("baseline", row.baseline);
  fields("rounds", row.rounds);
  fields("ratio", row.ratio);
  fields("interval_low", row.interval_low);
  fields("interval_high", row.interval_high);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, WrongRow>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("rank", row.wrong.rank);
  fields("iteration", row.wrong.iteration);
  fields("operation", row.wrong.operation);
  fields("element", row.wrong.element);
  fields("expected", row.wrong.expected);
  fields("got", row.wrong.got);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, OutcomeRow>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("rank", row.outcome.rank);
  fields("outcome", row.outcome.outcome);
  fields("exit_code", row.outcome.exit_code);
  fields("signal", row.outcome.signal);
  fields("where", row.outcome.where);
  fields("seconds_silent", row.outcome.seconds_silent, "s");
  fields("evidence", row.outcome.evidence);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, FindingRow>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("cause", row.finding.cause);
  fields("culprits", row.finding.culprits);
  fields("proved", row.finding.proved);
  fields.Later("headline", row.finding.headline);
  fields("message", row.finding.message);
  fields("remedy", row.finding.remedy);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, EvidenceRecord>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("lifetime", row.lifetime);
  fields("rank", row.known.rank);
  fields("deadline_seconds", row.deadline_seconds, "s");
  fields("state", row.known.state);
  fields("exit_code", row.known.exit_code);
  fields("signal", row.known.signal);
  fields("seconds_silent", row.known.seconds_silent, "s");
  fields("idle", row.known.idle);
  fields("asleep", row.known.asleep);
  fields("error", row.known.error);
  fields("system", row.known.system);
  fields("wrong_data", row.known.wrong_data);
  fields("gpu", row.known.gpu);
  fields("first_event", row.first_event);
  fields("last_event", row.last_event);
  fields("missed", row.known.journal.missed);
  fields("left", row.left);
  fields.Later("host", row.known.host);
  fields.Later("pid", row.known.pid);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, SocketRow>
void Describe(Fields& fields, Row& row) {
  fields("lifetime", row.lifetime);
  fields("rank", row.rank);
  fields("local", row.local);
  fields("remote", row.remote);
  fields("written", row.written, "B");
  fields("received", row.received, "B");
  fields("unread", row.unread, "B");
  fields("retransmits", row.retransmits);
  fields("closed", row.closed);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, TrialRow>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("expected_outcomes", row.trial.expected_outcomes);
  fields("expected_cause", row.trial.expected_cause);
  fields("expected_culprits", row.trial.expected_culprits);
  fields("faults", row.trial.faults);
  fields("faults_fired", row.trial.faults_fired);
  fields("why", row.trial.why);
  fields("detected_after_seconds", row.trial.detected_after_seconds, "s");
  fields("seconds", row.trial.seconds, "s");
  fields("communicator", row.trial.communicator);
  fields("sequence", row.trial.sequence);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, ArrivalsRow>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("skew_ns", row.arrivals.skew_ns, "ns");
  fields("transfer_ns", row.arrivals.transfer_ns, "ns");
  fields("clock_error_ns", row.arrivals.clock_error_ns, "ns");
  fields("last_rank", row.arrivals.last_rank);
  fields("last_share", row.arrivals.last_share);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, HostClock>
void Describe(Fields& fields, Row& row) {
  fields("host", row.host);
  fields("ranks", row.ranks);
  fields("state", row.state);
  fields("drift_ppm", row.drift_ppm, "ppm");
  fields("drift_error_ppm", row.drift_error_ppm, "ppm");
  fields("error_ns", row.error_ns, "ns");
  fields("day_offset_ns", row.day_offset_ns, "ns");
  fields("day_offset_error_ns", row.day_offset_error_ns, "ns");
  fields("shortest_round_trip_ns", row.shortest_round_trip_ns, "ns");
  fields("exchanges", row.exchanges);
  fields("probes", row.probes);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, ClockAnchorPoint>
void Describe(Fields& fields, Row& row) {
  fields("host", row.host);
  fields("ticks", row.ticks, "tick");
  fields("low_ns", row.low_ns, "ns");
  fields("high_ns", row.high_ns, "ns");
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, RecoveryRow>
void Describe(Fields& fields, Row& row) {
  fields("case", row.case_index);
  fields("mode", row.recovery.mode);
  fields("outcome", row.recovery.outcome);
  fields("cause", row.recovery.cause);
  fields("generation", row.recovery.generation);
  fields("lost", row.recovery.lost);
  fields("members", row.recovery.members);
  fields("first_iteration", row.recovery.first_iteration);
  fields("detect_seconds", row.recovery.detect_seconds, "s");
  fields("abort_seconds", row.recovery.abort_seconds, "s");
  fields("rebuild_seconds", row.recovery.rebuild_seconds, "s");
  fields("resume_seconds", row.recovery.resume_seconds, "s");
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, journal::PlacedGpuSample>
void Describe(Fields& fields, Row& row) {
  fields("rank", row.rank);
  fields("bus", row.bus);
  fields("gpu", row.sample.gpu);
  fields("ticks", row.sample.ticks, "tick");
  fields("unix_ns", row.sample.unix_ns, "ns");
  fields("utilization_percent", row.sample.utilization_percent, "%");
  fields("memory_utilization_percent", row.sample.memory_utilization_percent, "%");
  fields("memory_used_bytes", row.sample.memory_used_bytes, "B");
  fields("power_mw", row.sample.power_mw, "mW");
  fields("power_limit_mw", row.sample.power_limit_mw, "mW");
  fields("temperature_celsius", row.sample.temperature_celsius, "degC");
  fields("sm_clock_mhz", row.sample.sm_clock_mhz, "MHz");
  fields("memory_clock_mhz", row.sample.memory_clock_mhz, "MHz");
  fields("throttle_reasons", row.sample.throttle_reasons);
  fields("corrected_ecc_errors", row.sample.corrected_ecc_errors);
  fields("uncorrected_ecc_errors", row.sample.uncorrected_ecc_errors);
  fields("xid", row.sample.xid);
}

template <typename Fields, typename Row>
  requires std::is_same_v<std::remove_const_t<Row>, journal::WorkerLog>
void Describe(Fields& fields, Row& row) {
  fields("rank", row.rank);
  fields("lifetime", row.lifetime);
  fields("path", row.path);
  fields("bytes", row.bytes, "B");
  fields("cut_bytes", row.cut_bytes, "B");
  fields("text", row.text);
}

}  // namespace lockstep::results::store

#endif  // LOCKSTEP_RESULTS_STORE_SCHEMA_H_
