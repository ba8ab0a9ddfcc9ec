// The result of a case as bytes and back. What another agent sent is not believed: counts and
// depths are bounded.
#include "stress/harness/case_codec.h"

#include <utility>

#include "core/control/codec.h"
#include "core/control/records.h"

namespace lockstep::stress::harness {

// Reports have a text of their own.
static void Describe(control::Encoder& fields, const ProgramReport& report) {
  fields(EncodeReport(report));
}
static void Describe(control::Decoder& fields, ProgramReport& report) {
  std::string text;
  fields(text);
  Result<ProgramReport> decoded = DecodeReport(text);
  fields.Require(decoded.ok());
  if (decoded.ok()) report = *std::move(decoded);
}
void Describe(auto& fields, control::Is<Recovery> auto& recovery) {
  fields(recovery.mode, recovery.outcome, recovery.generation, recovery.lost, recovery.members);
  fields(recovery.first_iteration, recovery.detect_seconds, recovery.abort_seconds);
  fields(recovery.rebuild_seconds, recovery.resume_seconds, recovery.failure);
}
void Describe(auto& fields, control::Is<CaseFacts> auto& facts) {
  fields(facts.evidence, facts.fired, facts.notes, facts.reports, facts.recoveries);
  fields(facts.detected_after_seconds, facts.seconds, facts.cut_short);
}
void Describe(auto& fields, control::Is<CaseResult> auto& result) {
  fields.UpTo(result.verdict, verdict::Verdict::kUnknown);
  fields(result.why, result.judgement, result.facts);
}
void Describe(auto& fields, control::Is<ReplicatedCase> auto& replicated) {
  fields(replicated.index, replicated.result);
}

namespace {

constexpr std::size_t kMostEvents = 64;

// Declared before the templates that call them.
void Put(control::Encoder& encoder, int value);
void Get(control::Decoder& decoder, int& value);
void Put(control::Encoder& encoder, const std::string& text);
void Get(control::Decoder& decoder, std::string& text);
void Put(control::Encoder& encoder, const verdict::RankOutcome& rank);
void Get(control::Decoder& decoder, verdict::RankOutcome& rank);
void Put(control::Encoder& encoder, const verdict::Finding& finding);
void Get(control::Decoder& decoder, verdict::Finding& finding, int depth);
void Put(control::Encoder& encoder, const Recovery& recovery);
void Get(control::Decoder& decoder, Recovery& recovery);
void Put(control::Encoder& encoder, const std::optional<ProgramReport>& report);
void Get(control::Decoder& decoder, std::optional<ProgramReport>& report);

template <typename T>
void PutAll(control::Encoder& encoder, const std::vector<T>& all) {
  encoder.Put(static_cast<std::uint32_t>(all.size()));
  for (const T& one : all) Put(encoder, one);
}

// The bytes end before more is made than they could hold.
template <typename T, typename... More>
void GetAll(control::Decoder& decoder, std::vector<T>& all, More... more) {
  const auto count = decoder.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && decoder.ok(); ++i) {
    T one{};
    Get(decoder, one, more...);
    all.push_back(std::move(one));
  }
}

void Put(control::Encoder& encoder, int value) { encoder.Put(std::int32_t{value}); }
void Get(control::Decoder& decoder, int& value) { value = decoder.Get<std::int32_t>(); }
void Put(control::Encoder& encoder, const std::string& text) { encoder.Text(text); }
void Get(control::Decoder& decoder, std::string& text) { text = decoder.Text(); }

void Put(control::Encoder& encoder, const verdict::RankOutcome& rank) {
  Put(encoder, rank.rank);
  encoder.Put(static_cast<std::uint8_t>(rank.outcome));
  Put(encoder, rank.exit_code);
  Put(encoder, rank.signal);
  encoder.Text(rank.where).Put(rank.seconds_silent).Text(rank.evidence);
}

void Get(control::Decoder& decoder, verdict::RankOutcome& rank) {
  Get(decoder, rank.rank);
  rank.outcome = static_cast<verdict::Outcome>(decoder.Get<std::uint8_t>());
  Get(decoder, rank.exit_code);
  Get(decoder, rank.signal);
  rank.where = decoder.Text();
  rank.seconds_silent = decoder.Get<double>();
  rank.evidence = decoder.Text();
}

void Put(control::Encoder& encoder, const verdict::Finding& finding) {
  encoder.Text(finding.cause.name());
  PutAll(encoder, finding.culprits);
  encoder.Put(static_cast<std::uint8_t>(finding.proved));
  encoder.Text(finding.message).Text(finding.remedy);
  encoder.Put(static_cast<std::uint8_t>(finding.operation.has_value()));
  if (finding.operation) {
    encoder.Raw(
        {reinterpret_cast<const char*>(&*finding.operation), sizeof(journal::JournalEvent)});
  }
  PutAll(encoder, finding.evidence);
}

void Get(control::Decoder& decoder, verdict::Finding& finding, int depth) {
  finding.cause = verdict::FindingCause::Named(decoder.Text());
  GetAll(decoder, finding.culprits);
  finding.proved = decoder.Get<std::uint8_t>() != 0;
  finding.message = decoder.Text();
  finding.remedy = decoder.Text();
  if (decoder.Get<std::uint8_t>() != 0) {
    const std::string_view bytes = decoder.Raw(sizeof(journal::JournalEvent));
    journal::JournalEvent event{};
    if (decoder.ok()) std::memcpy(&event, bytes.data(), sizeof event);
    finding.operation = event;
  }
  if (depth == 0) decoder.Raw(decoder.rest().size() + 1);  // nothing of ours
  if (decoder.ok()) GetAll(decoder, finding.evidence, depth - 1);
}

void Put(control::Encoder& encoder, const verdict::Judgement& judgement) {
  encoder.Put(static_cast<std::uint8_t>(judgement.verdict));
  PutAll(encoder, judgement.outcomes);
  PutAll(encoder, judgement.findings);
}

void Get(control::Decoder& decoder, verdict::Judgement& judgement) {
  judgement.verdict = static_cast<verdict::Verdict>(decoder.Get<std::uint8_t>());
  GetAll(decoder, judgement.outcomes);
  GetAll(decoder, judgement.findings, kMostDepth);
}

void Put(control::Encoder& encoder, const Recovery& recovery) {
  encoder.Put(static_cast<std::uint8_t>(recovery.mode));
  encoder.Put(static_cast<std::uint8_t>(recovery.outcome));
  Put(encoder, recovery.generation);
  PutAll(encoder, recovery.lost);
  PutAll(encoder, recovery.members);
  encoder.Put(recovery.first_iteration).Put(recovery.detect_seconds).Put(recovery.abort_seconds);
  encoder.Put(recovery.rebuild_seconds).Put(recovery.resume_seconds);
  Put(encoder, recovery.failure);
}

void Get(control::Decoder& decoder, Recovery& recovery) {
  recovery.mode = static_cast<scenario::RecoveryPlan::Mode>(decoder.Get<std::uint8_t>());
  recovery.outcome = static_cast<scenario::RecoveryOutcome>(decoder.Get<std::uint8_t>());
  Get(decoder, recovery.generation);
  GetAll(decoder, recovery.lost);
  GetAll(decoder, recovery.members);
  recovery.first_iteration = decoder.Get<std::int64_t>();
  recovery.detect_seconds = decoder.Get<double>();
  recovery.abort_seconds = decoder.Get<double>();
  recovery.rebuild_seconds = decoder.Get<double>();
  recovery.resume_seconds = decoder.Get<double>();
  Get(decoder, recovery.failure);
}

void Put(control::Encoder& encoder, const std::optional<ProgramReport>& report) {
  encoder.Text(report ? EncodeReport(*report) : "");
}

void Get(control::Decoder& decoder, std::optional<ProgramReport>& report) {
  const Result<ProgramReport> decoded = DecodeReport(decoder.Text());
  if (decoded.ok()) report = *decoded;
}

verdict::RankEvidence Shortened(verdict::RankEvidence evidence) {
  auto& [events, missed] = evidence.journal;
  if (events.size() > kMostEvents) {
    missed += events.size() - kMostEvents;
    events.erase(events.begin(), events.end() - kMostEvents);
  }
  return evidence;
}

}  // namespace

std::string EncodeCase(std::size_t index, const CaseResult& result) {
  ReplicatedCase replicated{index, result};
  for (verdict::RankEvidence& rank : replicated.result.facts.evidence) Shorten(rank.journal);
  return control::Encode(replicated);
}

std::optional<ReplicatedCase> DecodeCase(std::string_view bytes) {
  return control::Decode<ReplicatedCase>(bytes);
}

}  // namespace lockstep::stress::harness
