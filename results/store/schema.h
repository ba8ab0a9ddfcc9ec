// The schema: each record of a run described once, to write and to read it. For people: schema.md.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/named_members.h"
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
  std::string name, backend, device, operation = {}, type = {}, reduction = {}, model;
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

void DescribeRoot(auto&& fields, auto& run) {
  fields.Later("lockstep_version", run.lockstep.number);
  fields.Later("lockstep_commit", run.lockstep.commit);
  fields.Later("lockstep_modified", run.lockstep.modified);
  LOCKSTEP_FIELDS(fields, run, id, name, started_at, duration_seconds, command_line, exit_code,
                  verdict, summary_line, complete);
  if (run.schema_version >= 2) fields("recommendation", run.recommendation);
}

void DescribePlan(auto&& fields, auto& run) {
  fields("seed", run.seed);
  fields("hash", run.plan_hash);
}

void DescribeClock(auto&& fields, auto& run) {
  LOCKSTEP_FIELDS(fields, run, ns_per_tick, origin_ticks);
}

void DescribeCase(auto&& fields, auto& record) {
  LOCKSTEP_FIELDS(fields, record, name, backend, device, ranks, repetition, in_place, bytes, model,
                  bucket, bucket_cap_mb);
  fields("verdict", record.judgement.verdict);
}

void Describe(auto& fields, Is<LinkPair> auto& row) {
  LOCKSTEP_FIELDS(fields, row, a, b, standing, rounds, latency_ns, latency_low_ns, latency_high_ns,
                  forward_gbps, back_gbps, retest_latency_ns, retest_forward_gbps,
                  retest_back_gbps);
}

void DescribeHistory(auto&& fields, auto& history) {
  LOCKSTEP_FIELDS(fields, history, rank, lifetime, missed);
}

void Describe(auto& fields, Is<Summary> auto& summary) {
  LOCKSTEP_FIELDS(fields, summary, iterations, rounds, median_ns, interval_low_ns,
                  interval_high_ns);
  LOCKSTEP_FIELDS(fields.Later, summary, rounds_low_ns, rounds_high_ns);
  LOCKSTEP_FIELDS(fields, summary, min_ns, p99_ns, max_ns, max_rank, rank_average_median_ns,
                  algorithm_gbps, bus_gbps, floor_ns, percent_of_limit);
  LOCKSTEP_FIELDS(fields.Later, summary, limit_low, limit_high, line_least_ns, line_most_ns);
  LOCKSTEP_FIELDS(fields, summary, checked_elements, wrong_elements, stopped_by);
}

void Describe(auto& fields, Is<SummaryRow> auto& row) {
  LOCKSTEP_FIELDS(fields, row, name, backend, device, ranks, repetition, operation, type, reduction,
                  operations, in_place, bytes, model, bucket, bucket_cap_mb, verdict);
  Describe(fields, row.summary);
}

void Describe(auto& fields, Is<collective::Operation> auto& row) {
  LOCKSTEP_FIELDS(fields, row, collective, type, reduction, blocking);
  fields("count", row.count, "element");
  fields("root", row.root);
}

void Describe(auto& fields, Is<Part> auto& row) {
  fields("part", row.name);
  fields("part_units", row.units);
  LOCKSTEP_FIELDS(fields, row, over, median, interval_low, interval_high);
}

void Describe(auto& fields, Is<OptionEffect> auto& row) {
  LOCKSTEP_FIELDS(fields, row, option, value, baseline_value);
  fields("case", row.case_index);
  LOCKSTEP_FIELDS(fields, row, baseline, rounds, ratio, interval_low, interval_high);
}

void Describe(auto& fields, Is<WrongResult> auto& row) {
  LOCKSTEP_FIELDS(fields, row, rank, iteration, operation, element, expected, got);
}

void Describe(auto& fields, Is<verdict::RankOutcome> auto& row) {
  LOCKSTEP_FIELDS(fields, row, rank, outcome, exit_code, signal, where, seconds_silent, evidence);
}

void Describe(auto& fields, Is<verdict::Finding> auto& row) {
  LOCKSTEP_FIELDS(fields, row, cause, culprits, proved);
  fields.Later("headline", row.headline);
  LOCKSTEP_FIELDS(fields, row, message, remedy);
}

void Describe(auto& fields, Is<EvidenceRecord> auto& row) {
  fields("case", row.case_index);
  fields("lifetime", row.lifetime);
  fields("rank", row.known.rank);
  fields("deadline_seconds", row.deadline_seconds);
  LOCKSTEP_FIELDS(fields, row.known, state, exit_code, signal, seconds_silent, idle, asleep, error,
                  system, wrong_data, gpu);
  LOCKSTEP_FIELDS(fields, row, first_event, last_event);
  fields("missed", row.known.journal.missed);
  fields("left", row.left);
  LOCKSTEP_FIELDS(fields.Later, row.known, host, pid, starved_s);
}

void Describe(auto& fields, Is<SocketRow> auto& row) {
  LOCKSTEP_FIELDS(fields, row, lifetime, rank, local, remote);
  fields("written", row.written, "B");
  fields("received", row.received, "B");
  fields("unread", row.unread, "B");
  LOCKSTEP_FIELDS(fields, row, retransmits, closed);
}

void Describe(auto& fields, Is<Trial> auto& row) {
  LOCKSTEP_FIELDS(fields, row, expected_outcomes, expected_cause, expected_culprits, faults,
                  faults_fired, why, detected_after_seconds, seconds, communicator, sequence);
}

void Describe(auto& fields, Is<Arrivals> auto& row) {
  LOCKSTEP_FIELDS(fields, row, skew_ns, transfer_ns, clock_error_ns, last_rank, last_share);
}

void Describe(auto& fields, Is<HostClock> auto& row) {
  LOCKSTEP_FIELDS(fields, row, host, ranks, state, drift_ppm, drift_error_ppm, error_ns,
                  day_offset_ns, day_offset_error_ns, shortest_round_trip_ns, exchanges, probes);
}

void Describe(auto& fields, Is<ClockAnchorPoint> auto& row) {
  LOCKSTEP_FIELDS(fields, row, host, ticks, low_ns, high_ns);
}

void Describe(auto& fields, Is<RecoveryRecord> auto& row) {
  LOCKSTEP_FIELDS(fields, row, mode, outcome, cause, generation, lost, members, first_iteration,
                  detect_seconds, abort_seconds, rebuild_seconds, resume_seconds);
}

void Describe(auto& fields, Is<journal::PlacedGpuSample> auto& row) {
  LOCKSTEP_FIELDS(fields, row, rank, bus);
  LOCKSTEP_FIELDS(fields, row.sample, gpu, ticks, unix_ns, utilization_percent,
                  memory_utilization_percent, memory_used_bytes, power_mw, power_limit_mw,
                  temperature_celsius, sm_clock_mhz, memory_clock_mhz, throttle_reasons,
                  corrected_ecc_errors, uncorrected_ecc_errors, xid);
}

void Describe(auto& fields, Is<journal::WorkerLog> auto& row) {
  LOCKSTEP_FIELDS(fields, row, rank, lifetime, path, bytes, cut_bytes, text);
}

template <typename Row>
concept IsOfCase = requires(Row row) {
  row.case_index;
  row.record;
};
void Describe(auto& fields, IsOfCase auto& row) {
  fields("case", row.case_index);
  Describe(fields, row.record);
}

}  // namespace lockstep::results::store
