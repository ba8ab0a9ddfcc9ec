// A rank that could not run its program, or a fault that did not fire, leaves nothing to compare
// with what the scenario expects. A fault may be about just that: then others must have begun.
#include "stress/cases/why_unknown.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace lockstep::stress::cases {
namespace {

bool LacksByFault(const StressCase& stress_case, const CaseFacts& facts, std::size_t rank) {
  for (std::size_t i = 0; i < stress_case.faults.size(); ++i) {
    const faults::PlannedFault& fault = stress_case.faults[i];
    const bool befell = fault.rank == static_cast<int>(rank) && facts.fired[i];
    if (befell && faults::IsByAgent(fault.kind)) return true;
  }
  return false;
}

// Whether a rank that no such fault befell began its program: then the machine has what that takes.
bool OthersBegan(const StressCase& stress_case, const CaseFacts& facts) {
  for (std::size_t rank = 0; rank < facts.evidence.size(); ++rank) {
    if (LacksByFault(stress_case, facts, rank)) continue;
    const auto& report = facts.reports[rank];
    const auto& events = facts.evidence[rank].journal.events;
    if (report ? report->where != workloads::kWherePlatform
               : std::ranges::any_of(events, [](const journal::JournalEvent& event) {
                   return event.phase != journal::Phase::kStart;
                 })) {
      return true;
    }
  }
  return false;
}

// Whether a rank was to lack what its program runs on: a fault changed how it starts, its failure
// is expected, and others began.
bool IsMeantToLack(const StressCase& stress_case, const std::string& backend,
                   const CaseFacts& facts, std::size_t rank) {
  const scenario::Expectation* const expected = ExpectationFor(stress_case.scenario, backend);
  if (expected == nullptr || rank >= expected->ranks.size()) return false;
  return std::ranges::count(expected->ranks[rank], verdict::NameOf(verdict::Outcome::kFailed)) >
             0 &&
         OthersBegan(stress_case, facts);
}

// Which rank the machine kept from running its program, and why, or "".
std::string WhyNotRun(const StressCase& stress_case, const std::string& backend,
                      const CaseFacts& facts) {
  for (std::size_t rank = 0; rank < facts.reports.size(); ++rank) {
    const auto& report = facts.reports[rank];
    if (!report || report->status.ok()) continue;
    const StatusCode code = report->status.code();
    if (code == StatusCode::kSystemFailed || code == StatusCode::kDeadlineExceeded) continue;
    // What the rank was made to lack, or to be told, is no fault of the machine.
    const bool ours = code == StatusCode::kEnvironment || code == StatusCode::kInvalidInput;
    const bool begun = report->where != workloads::kWherePlatform;
    if (ours && LacksByFault(stress_case, facts, rank) &&
        (begun || IsMeantToLack(stress_case, backend, facts, rank))) {
      continue;
    }
    return fmt::format("rank {} could not run it: {}", rank, report->status.message());
  }
  return "";
}

}  // namespace

std::string WhyUnknown(const StressCase& stress_case, const std::string& backend,
                       const CaseFacts& facts) {
  if (!facts.cut_short.empty()) return facts.cut_short;
  for (const verdict::RankEvidence& rank : facts.evidence) {
    if (rank.state != verdict::ProcessState::kLost) continue;
    return fmt::format("the agent of rank {} does not answer", rank.rank);
  }
  if (std::string why = WhyNotRun(stress_case, backend, facts); !why.empty()) return why;
  for (std::size_t i = 0; i < stress_case.faults.size(); ++i) {
    if (facts.fired[i]) continue;
    const std::string why = i < facts.notes.size() ? facts.notes[i] : "";
    return fmt::format("the fault did not fire: {}{}{}", faults::Describe(stress_case.faults[i]),
                       why.empty() ? "" : ": ", why);
  }
  return "";
}

}  // namespace lockstep::stress::cases
