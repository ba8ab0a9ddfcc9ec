// What became of a case, as bytes that a successor reads back: each record is described once, in
// the notation of core/control/codec.h.
#include "stress/cases/case_codec.h"

#include "core/control/codec.h"
#include "core/control/records.h"

namespace lockstep::stress::cases {

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

}  // namespace

std::string EncodeCase(std::size_t index, const CaseResult& result) {
  ReplicatedCase replicated{index, result};
  for (verdict::RankEvidence& rank : replicated.result.facts.evidence) {
    journal::Shorten(rank.journal, kMostEvents);
  }
  return control::Encode(replicated);
}

std::optional<ReplicatedCase> DecodeCase(std::string_view bytes) {
  return control::Decode<ReplicatedCase>(bytes);
}

}  // namespace lockstep::stress::cases
