// The schema: each record of a run described once, to write and to read it. For people: schema.md.
#pragma once

#include <cstdint>
#include <string>

#include "results/store/fields.h"
#include "results/store/run.h"

namespace lockstep::results::store {

// A row of the tables that span all cases. `case_index` is n of /cases/<n>; kLaunch: of no case.
inline constexpr std::int32_t kLaunch = -1;
template <typename Record>
struct OfCase {
  std::int32_t case_index = kLaunch;
  Record record;
};
struct SummaryRow {
  std::string name, backend, device, operation, type, reduction, model;
  std::int32_t ranks = 0, repetition = 0, bucket = -1;
  double bucket_cap_mb = 0;
  std::int64_t operations = 0, bytes = 0;
  bool in_place = false;
  verdict::Verdict verdict = verdict::Verdict::kUnknown;
  Summary summary;
};
struct SocketRow {
  std::int32_t lifetime = 0, rank = 0;
  std::string local, remote;
  std::uint64_t written = 0, received = 0;
  std::int64_t unread = 0, retransmits = 0;
  bool closed = false;
};

void DescribeRoot(auto& fields, auto& run) {
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

void DescribePlan(auto& fields, auto& run) {
  fields("seed", run.seed);
  fields("hash", run.plan_hash);
}

void DescribeClock(auto& fields, auto& run) {
  fields("ns_per_tick", run.ns_per_tick, "ns");
  fields("origin_ticks", run.origin_ticks, "tick");
}

void DescribeCase(auto& fields, auto& record) {
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

void Describe(auto& fields, Is<LinkPair> auto& row) {
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

void DescribeHistory(auto& fields, auto& history) {
  fields("rank", history.rank);
  fields("lifetime", history.lifetime);
  fields("missed", history.missed);
}

void Describe(auto& fields, Is<Summary> auto& summary) {
  fields("iterations", summary.iterations);
  fields("rounds", summary.rounds);
  fields("median_ns", summary.median_ns, "ns");
  fields("interval_low_ns", summary.interval_low_ns, "ns");
  fields("interval_high_ns", summary.interval_high_ns, "ns");
  fields.Later("rounds_low_ns", summary.rounds_low_ns);
  fields.Later("rounds_high_ns", summary.rounds_high_ns);
  fields("min_ns", summary.min_ns, "ns");
  fields("p99_ns", summary.p99_ns, "ns");
  fields("max_ns", summary.max_ns, "ns");
  fields("max_rank", summary.max_rank);
  fields("rank_average_median_ns", summary.rank_average_median_ns, "ns");
  fields("algorithm_gbps", summary.algorithm_gbps, "GB/s");
  fields("bus_gbps", summary.bus_gbps, "GB/s");
  fields("floor_ns", summary.floor_ns, "ns");
  fields("percent_of_limit", summary.percent_of_limit, "%");
  fields.Later("limit_low", summary.limit_low);
  fields.Later("limit_high", summary.limit_high);
  fields.Later("line_least_ns", summary.line_least_ns);
  fields.Later("line_most_ns", summary.line_most_ns);
  fields("checked_elements", summary.checked_elements);
  fields("wrong_elements", summary.wrong_elements);
  fields("stopped_by", summary.stopped_by);
}

void Describe(auto& fields, Is<SummaryRow> auto& row) {
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
  Describe(fields, row.summary);
}

void Describe(auto& fields, Is<collective::Operation> auto& row) {
  fields("collective", row.collective);
  fields("type", row.type);
  fields("reduction", row.reduction);
  fields("blocking", row.blocking);
  fields("count", row.count, "element");
  fields("root", row.root);
}

void Describe(auto& fields, Is<Part> auto& row) {
  fields("part", row.name);
  fields("part_units", row.units);
  fields("over", row.over);
  fields("median", row.median);
  fields("interval_low", row.interval_low);
  fields("interval_high", row.interval_high);
}

void Describe(auto& fields, Is<OptionEffect> auto& row) {
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

void Describe(auto& fields, Is<WrongResult> auto& row) {
  fields("rank", row.rank);
  fields("iteration", row.iteration);
  fields("operation", row.operation);
  fields("element", row.element);
  fields("expected", row.expected);
  fields("got", row.got);
}

void Describe(auto& fields, Is<verdict::RankOutcome> auto& row) {
  fields("rank", row.rank);
  fields("outcome", row.outcome);
  fields("exit_code", row.exit_code);
  fields("signal", row.signal);
  fields("where", row.where);
  fields("seconds_silent", row.seconds_silent, "s");
  fields("evidence", row.evidence);
}

void Describe(auto& fields, Is<verdict::Finding> auto& row) {
  fields("cause", row.cause);
  fields("culprits", row.culprits);
  fields("proved", row.proved);
  fields.Later("headline", row.headline);
  fields("message", row.message);
  fields("remedy", row.remedy);
}

void Describe(auto& fields, Is<EvidenceRecord> auto& row) {
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

void Describe(auto& fields, Is<SocketRow> auto& row) {
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

void Describe(auto& fields, Is<Trial> auto& row) {
  fields("expected_outcomes", row.expected_outcomes);
  fields("expected_cause", row.expected_cause);
  fields("expected_culprits", row.expected_culprits);
  fields("faults", row.faults);
  fields("faults_fired", row.faults_fired);
  fields("why", row.why);
  fields("detected_after_seconds", row.detected_after_seconds, "s");
  fields("seconds", row.seconds, "s");
  fields("communicator", row.communicator);
  fields("sequence", row.sequence);
}

void Describe(auto& fields, Is<Arrivals> auto& row) {
  fields("skew_ns", row.skew_ns, "ns");
  fields("transfer_ns", row.transfer_ns, "ns");
  fields("clock_error_ns", row.clock_error_ns, "ns");
  fields("last_rank", row.last_rank);
  fields("last_share", row.last_share);
}

void Describe(auto& fields, Is<HostClock> auto& row) {
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

void Describe(auto& fields, Is<ClockAnchorPoint> auto& row) {
  fields("host", row.host);
  fields("ticks", row.ticks, "tick");
  fields("low_ns", row.low_ns, "ns");
  fields("high_ns", row.high_ns, "ns");
}

void Describe(auto& fields, Is<RecoveryRecord> auto& row) {
  fields("mode", row.mode);
  fields("outcome", row.outcome);
  fields("cause", row.cause);
  fields("generation", row.generation);
  fields("lost", row.lost);
  fields("members", row.members);
  fields("first_iteration", row.first_iteration);
  fields("detect_seconds", row.detect_seconds, "s");
  fields("abort_seconds", row.abort_seconds, "s");
  fields("rebuild_seconds", row.rebuild_seconds, "s");
  fields("resume_seconds", row.resume_seconds, "s");
}

void Describe(auto& fields, Is<journal::PlacedGpuSample> auto& row) {
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

void Describe(auto& fields, Is<journal::WorkerLog> auto& row) {
  fields("rank", row.rank);
  fields("lifetime", row.lifetime);
  fields("path", row.path);
  fields("bytes", row.bytes, "B");
  fields("cut_bytes", row.cut_bytes, "B");
  fields("text", row.text);
}

template <typename Record>
void Describe(auto& fields, OfCase<Record>& row) {
  fields("case", row.case_index);
  Describe(fields, row.record);
}
template <typename Record>
void Describe(auto& fields, const OfCase<Record>& row) {
  fields("case", row.case_index);
  Describe(fields, row.record);
}

}  // namespace lockstep::results::store
