// Rules that need the program: a general finding is renamed where the scenario, or the text of the
// error, says more than the journals.
#include "stress/cases/name_causes.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/journal/journal.h"
#include "core/journal/purpose.h"

namespace lockstep::stress::cases {
namespace {

bool Says(const verdict::Finding& finding, std::string_view part) {
  return finding.message.find(part) != std::string::npos;
}

bool SaysOutOfMemory(const verdict::Finding& finding) {
  return Says(finding, "out of memory") || Says(finding, "bad_alloc") ||
         Says(finding, "Cannot allocate memory");
}

void Rename(verdict::Finding& finding, verdict::Cause cause, std::string_view remedy) {
  verdict::Finding specific = finding;
  specific.cause = cause;
  specific.remedy = remedy;
  specific.evidence = {std::move(finding)};
  finding = std::move(specific);
}

std::string_view RemedyOf(scenario::RacePattern pattern) {
  constexpr std::string_view kRemedies[] = {
      // in the order of RacePattern
      "Let the collective's stream wait for an event that is recorded after the kernel "
      "(comm_stream.wait_stream(compute_stream)).",
      "Let the reader's stream wait for the collective (work.wait(), or an event recorded "
      "after it) before it uses the result.",
      "Let whoever writes the next input wait for the collective, or give each round in "
      "flight a buffer of its own.",
      "Tell the allocator that the collective's stream uses the memory "
      "(tensor.record_stream(comm_stream)), or keep the tensor until the work is done.",
      "Record the event after the kernel was enqueued: an event covers only what is in "
      "front of it."};
  return kRemedies[static_cast<std::size_t>(pattern)];
}

bool EndedInOrder(const verdict::Judgement& judgement, const std::vector<int>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    return judgement.outcomes[static_cast<std::size_t>(rank)].outcome ==
           verdict::Outcome::kFinished;
  });
}

bool ShowsOverlap(const std::vector<verdict::RankEvidence>& evidence) {
  return std::any_of(evidence.begin(), evidence.end(), [](const verdict::RankEvidence& rank) {
    return rank.wrong_data.find(" began before ") != std::string::npos;
  });
}

// Batches that a rank of a loading program had, each of which it meets the others for. A call that
// it left out is not in its journal.
std::int32_t BatchesOf(const verdict::RankEvidence& rank) {
  std::int32_t batches = 0;
  for (const journal::JournalEvent& event : rank.journal.events) {
    const bool calls = event.kind == journal::EventKind::kEnqueue;
    const bool meets =
        event.kind == journal::EventKind::kPhase && event.phase == journal::Phase::kMeasure;
    if (calls) batches = journal::UnpackAnnotation(event.value).iteration + 1;
    if (meets) ++batches;
  }
  return batches;
}

// Another rank had a batch more than each of these. Who had as many left a call out.
bool LackBatches(const std::vector<int>& ranks,
                 const std::vector<verdict::RankEvidence>& evidence) {
  std::int32_t most = 0;
  for (const verdict::RankEvidence& rank : evidence) most = std::max(most, BatchesOf(rank));
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    return BatchesOf(evidence[static_cast<std::size_t>(rank)]) < most;
  });
}

}  // namespace

void NameCauses(const scenario::Scenario& scenario,
                const std::vector<verdict::RankEvidence>& evidence, verdict::Judgement& judgement) {
  const auto* race = std::get_if<scenario::StreamRaceProgram>(&scenario.workload);
  const bool loads = std::holds_alternative<scenario::LoadingProgram>(scenario.workload);
  for (verdict::Finding& finding : judgement.findings) {
    // An error that the program reports; its message says so.
    if ((finding.cause == verdict::Cause::kRankFailed ||
         finding.cause == verdict::Cause::kInitFailure) &&
        SaysOutOfMemory(finding)) {
      finding.cause = verdict::Cause::kOutOfMemory;
    } else if (race != nullptr && finding.cause == verdict::Cause::kDataCorruption &&
               ShowsOverlap(evidence)) {
      Rename(finding, verdict::Cause::kStreamRace, RemedyOf(race->pattern));
    } else if (finding.cause == verdict::Cause::kDataCorruption &&
               Says(finding, "returned without any effect")) {
      Rename(finding, verdict::Cause::kNoEffect, verdict::InfoOf(verdict::Cause::kNoEffect).remedy);
    } else if (loads && finding.cause == verdict::Cause::kRankExited && !finding.culprits.empty() &&
               EndedInOrder(judgement, finding.culprits) &&
               LackBatches(finding.culprits, evidence)) {
      Rename(finding, verdict::Cause::kUnevenInputs,
             "Give every rank as many batches: one length and one DistributedSampler for all, or "
             "drop_last, or end the loop by agreement.");
    }
  }
}

}  // namespace lockstep::stress::cases
