#include "core/verdict/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/verdict/findings.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep {
namespace {

struct Conclusion {
  std::optional<Blocker> blocker;
  bool standstill = false;  // proved or suspected: who is in an operation of the world stays there
};

Outcome OutcomeOfRunning(const Situation& situation, const Conclusion& conclusion,
                         const RankView& view) {
  if (Failed(view)) return Outcome::kFailed;
  if (view.evidence->idle) return Outcome::kFinished;
  const bool waits = view.in_world_operation() &&
                     (conclusion.standstill ||
                      (conclusion.blocker && Waits(view, *conclusion.blocker)));
  // Otherwise it was on its way, and only the interruption ended that.
  return waits || situation.overdue(view) ? Outcome::kHung : Outcome::kFinished;
}

Outcome OutcomeOf(const Situation& situation, const Conclusion& conclusion,
                  const RankView& view) {
  switch (view.evidence->state) {
    case ProcessState::kExited:
      return FinishedInOrder(view) ? Outcome::kFinished : Outcome::kFailed;
    case ProcessState::kSignalled:
      return EndedBySelf(view.evidence->signal) ? Outcome::kCrashed : Outcome::kKilled;
    case ProcessState::kStopped:
      return Outcome::kStopped;
    case ProcessState::kLost:
      return Outcome::kHung;
    case ProcessState::kRunning:
      break;
  }
  return OutcomeOfRunning(situation, conclusion, view);
}

RankOutcome DescribeOutcome(const Situation& situation, const Conclusion& conclusion,
                            const RankView& view) {
  const RankEvidence& evidence = *view.evidence;
  RankOutcome outcome;
  outcome.rank = evidence.rank;
  outcome.outcome = OutcomeOf(situation, conclusion, view);
  if (evidence.state == ProcessState::kExited) outcome.exit_code = evidence.exit_code;
  if (evidence.state == ProcessState::kSignalled || evidence.state == ProcessState::kStopped) {
    outcome.signal = evidence.signal;
  }
  outcome.where = WhereOf(view);
  outcome.seconds_silent = evidence.seconds_silent;
  if (!evidence.error.empty()) outcome.evidence = OneLine(evidence.error);
  if (outcome.outcome == Outcome::kHung && conclusion.blocker &&
      Waits(view, *conclusion.blocker)) {
    outcome.evidence = fmt::format("waiting for rank {}, {}", conclusion.blocker->rank,
                                   conclusion.blocker->fate);
  }
  if (!evidence.system.empty()) {
    outcome.evidence += (outcome.evidence.empty() ? "" : "; ") + evidence.system;
  }
  return outcome;
}

void Add(std::vector<Finding>& findings, std::vector<Finding> more) {
  findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

// All that was found is `unknown`, or a rank was under way and nothing speaks for or against it:
// nobody can say. Nothing is missing only when every rank finished or waits for an order.
Verdict VerdictOf(const Situation& situation, const std::vector<Finding>& findings) {
  const bool failed = std::any_of(findings.begin(), findings.end(),
                                  [](const Finding& f) { return f.cause != "unknown"; });
  if (failed) return Verdict::kFail;
  const bool complete =
      findings.empty() && !situation.views.empty() &&
      std::all_of(situation.views.begin(), situation.views.end(), [](const RankView& view) {
        return FinishedInOrder(view) || (view.running() && view.evidence->idle);
      });
  return complete ? Verdict::kPass : Verdict::kUnknown;
}

}  // namespace

std::vector<Finding> FindLost(const Situation& situation) {
  Finding finding;
  for (const RankView& view : situation.views) {
    if (view.evidence->state == ProcessState::kLost) finding.culprits.push_back(view.rank());
  }
  if (finding.culprits.empty()) return {};
  finding.cause = "unknown";
  const bool one = finding.culprits.size() == 1;
  finding.message = fmt::format("the {} of {} {} not answer: what became of {} is not known",
                                one ? "agent" : "agents", FormatRanks(finding.culprits),
                                one ? "does" : "do", one ? "it" : "them");
  finding.remedy = fmt::format("See whether rank {}'s host is up, reachable and not out of memory.",
                               finding.culprits.front());
  return {finding};
}

Judgement Judge(const std::vector<RankEvidence>& evidence, double deadline_seconds) {
  Situation situation;
  situation.deadline_seconds = deadline_seconds;
  situation.views.reserve(evidence.size());
  for (const RankEvidence& rank : evidence) situation.views.push_back(ViewOf(rank));

  Judgement judgement;
  Conclusion conclusion;
  conclusion.blocker = FindBlocker(situation);
  judgement.findings = FindMismatch(situation);
  const bool mismatch = !judgement.findings.empty();
  Add(judgement.findings, FindDepartures(situation, conclusion.blocker));
  // Peers of a dead rank report errors too, and so do ranks whose calls do not match.
  if (judgement.findings.empty()) {
    Add(judgement.findings, FindErrors(situation, conclusion.blocker));
  }
  const bool proved = !judgement.findings.empty();
  Add(judgement.findings, FindLost(situation));
  if (!proved) {
    std::vector<Finding> suspicions = FindSilence(situation);
    conclusion.standstill = !suspicions.empty();
    // A suspicion with a name says more than an agent that does not answer.
    Add(suspicions, std::move(judgement.findings));
    judgement.findings = std::move(suspicions);
  }
  conclusion.standstill = conclusion.standstill || mismatch;

  judgement.outcomes.reserve(evidence.size());
  for (const RankView& view : situation.views) {
    judgement.outcomes.push_back(DescribeOutcome(situation, conclusion, view));
  }
  judgement.verdict = VerdictOf(situation, judgement.findings);
  return judgement;
}

}  // namespace lockstep
