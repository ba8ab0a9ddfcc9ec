#include "stress/harness/case_codec.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/control/codec.h"
#include "core/control/protocol.h"

namespace lockstep::stress::harness {
namespace {

constexpr std::size_t kMostEvents = 64;
// Of a finding that explains findings that explain findings …
constexpr int kMostDepth = 4;

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
  encoder.Text(finding.cause);
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
  finding.cause = decoder.Text();
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
  recovery.mode = static_cast<plan::RecoveryPlan::Mode>(decoder.Get<std::uint8_t>());
  recovery.outcome = static_cast<plan::RecoveryOutcome>(decoder.Get<std::uint8_t>());
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
  control::Encoder encoder;
  encoder.Put(static_cast<std::uint64_t>(index)).Put(static_cast<std::uint8_t>(result.verdict));
  encoder.Text(result.why);
  Put(encoder, result.judgement);
  const CaseFacts& facts = result.facts;
  encoder.Put(static_cast<std::uint32_t>(facts.evidence.size()));
  for (const verdict::RankEvidence& rank : facts.evidence) control::Put(encoder, Shortened(rank));
  PutAll(encoder, std::vector<int>(facts.fired.begin(), facts.fired.end()));
  PutAll(encoder, facts.notes);
  PutAll(encoder, facts.reports);
  PutAll(encoder, facts.recoveries);
  encoder.Put(static_cast<std::uint8_t>(facts.detected_after_seconds.has_value()));
  encoder.Put(facts.detected_after_seconds.value_or(0)).Put(facts.seconds).Text(facts.cut_short);
  return encoder.Take();
}

std::optional<ReplicatedCase> DecodeCase(std::string_view bytes) {
  control::Decoder decoder(bytes);
  ReplicatedCase replicated;
  CaseResult& result = replicated.result;
  replicated.index = decoder.Get<std::uint64_t>();
  result.verdict = static_cast<verdict::Verdict>(decoder.Get<std::uint8_t>());
  result.why = decoder.Text();
  Get(decoder, result.judgement);
  CaseFacts& facts = result.facts;
  const auto ranks = decoder.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < ranks && decoder.ok(); ++i) {
    control::Get(decoder, facts.evidence.emplace_back());
  }
  std::vector<int> fired;
  GetAll(decoder, fired);
  facts.fired.assign(fired.begin(), fired.end());
  GetAll(decoder, facts.notes);
  GetAll(decoder, facts.reports);
  GetAll(decoder, facts.recoveries);
  const bool detected = decoder.Get<std::uint8_t>() != 0;
  const auto after_seconds = decoder.Get<double>();
  if (detected) facts.detected_after_seconds = after_seconds;
  facts.seconds = decoder.Get<double>();
  facts.cut_short = decoder.Text();
  if (!decoder.complete()) return std::nullopt;
  return replicated;
}

}  // namespace lockstep::stress::harness
