// How records of the rooms below travel: each described once (core/control/codec.h).
#pragma once

#include "core/base/status.h"
#include "core/control/codec.h"
#include "core/journal/device_marks.h"
#include "core/journal/gpu_sample.h"
#include "core/journal/journal.h"
#include "core/journal/worker_log.h"
#include "core/verdict/judge.h"
#include "core/verdict/tcp_socket.h"

namespace lockstep::control {

template <>
inline constexpr bool kTravelsAsBytes<journal::JournalEvent> =
    std::has_unique_object_representations_v<journal::JournalEvent>;
template <>
inline constexpr bool kTravelsAsBytes<journal::GpuSample> =
    std::has_unique_object_representations_v<journal::GpuSample>;

inline void Describe(Encoder& fields, const Status& status) {
  fields(status.code(), status.message());
}
inline void Describe(Decoder& fields, Status& status) {
  StatusCode code{};
  fields.UpTo(code, StatusCode::kTerminated);
  status = Status(code, fields.Text());
}
void Describe(auto& fields, Is<journal::Journal> auto& journal) {
  fields(journal.missed, journal.events);
}
void Describe(auto& fields, Is<journal::DeviceMark> auto& mark) {
  fields(mark.communicator, mark.started, mark.ended);
}
void Describe(auto& fields, Is<journal::GpuSamples> auto& samples) {
  fields(samples.rank, samples.missed, samples.buses, samples.samples);
}
void Describe(auto& fields, Is<journal::WorkerLog> auto& log) {
  fields(log.rank, log.lifetime, log.path, log.bytes, log.cut_bytes, log.text);
}

void Describe(auto& fields, Is<verdict::ByteMark> auto& mark) { fields(mark.bytes, mark.byte_s); }
void Describe(auto& fields, Is<verdict::ByteStep> auto& step) {
  fields(step.bytes, step.after_s, step.by_s, step.waited_s, step.limited_s, step.round_trip_s);
}
void Describe(auto& fields, Is<verdict::RelayLedger> auto& ledger) {
  fields(ledger.lost, ledger.told);
}
void Describe(auto& fields, Is<verdict::TcpSocket> auto& socket) {
  fields(socket.local, socket.remote, socket.written, socket.received, socket.unread);
  fields(socket.retransmits, socket.round_trip_us, socket.least_round_trip_us);
  fields(socket.last_received_ms, socket.closed, socket.arrivals);
  fields(socket.limited_s, socket.waited_s, socket.written_steps, socket.received_steps);
  fields(socket.relayed, socket.out, socket.in);
}
void Describe(auto& fields, Is<verdict::RankEvidence> auto& evidence) {
  fields(evidence.rank);
  fields.UpTo(evidence.state, verdict::ProcessState::kLost);
  fields(evidence.exit_code, evidence.signal, evidence.seconds_silent, evidence.starved_s);
  fields(evidence.idle);
  fields(evidence.asleep, evidence.error, evidence.system, evidence.sockets, evidence.echo_s);
  fields(evidence.host, evidence.pid);
  fields(evidence.gpu_bus, evidence.device.method, evidence.device.marks, evidence.journal);
}

void Describe(auto& fields, Is<verdict::RankOutcome> auto& rank) {
  fields(rank.rank);
  fields.UpTo(rank.outcome, verdict::Outcome::kCorrupt);
  fields(rank.exit_code, rank.signal, rank.where, rank.seconds_silent, rank.evidence);
}
inline void Describe(Encoder& fields, const verdict::FindingCause& cause) {
  fields.Text(cause.name());
}
inline void Describe(Decoder& fields, verdict::FindingCause& cause) {
  cause = verdict::FindingCause::Named(fields.Text());
}
inline void Describe(Encoder& fields, const verdict::Headline& headline) {
  fields.Text(headline.text());
}
inline void Describe(Decoder& fields, verdict::Headline& headline) {
  headline = verdict::Headline(fields.Text());
}
void Describe(auto& fields, Is<verdict::Finding> auto& finding) {
  fields(finding.cause, finding.culprits, finding.proved, finding.message, finding.remedy);
  fields(finding.operation, finding.evidence, finding.headline);
}
void Describe(auto& fields, Is<verdict::Judgement> auto& judgement) {
  fields.UpTo(judgement.verdict, verdict::Verdict::kUnknown);
  fields(judgement.outcomes, judgement.findings);
}

}  // namespace lockstep::control
