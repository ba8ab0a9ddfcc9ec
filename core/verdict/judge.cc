// The order of the judgement: mismatches, who is stuck, what ended the ranks, why it came to that.
// The finders (core/verdict/finders) find; here is decided which of their findings comes first, and
// what became of each rank.
#include "core/verdict/judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>

#include "core/verdict/device_position.h"
#include "core/verdict/finders/explanation.h"
#include "core/verdict/finders/find.h"
#include "core/verdict/messages.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/situation.h"
#include "core/verdict/stuck.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict {
namespace {

struct Conclusion {
  Stuck stuck;
  bool standstill = false;  // suspected: who is in an operation of a known group stays there
};

Outcome OutcomeOfRunning(const Situation& situation, const Conclusion& conclusion,
                         const RankView& view, std::size_t index) {
  if (Failed(view)) return Outcome::kFailed;
  if (view.evidence->idle) return Outcome::kFinished;
  const bool waits =
      conclusion.stuck.ranks[index] || (conclusion.standstill && view.waits_in_group());
  // Otherwise it was on its way, and only the interruption ended that.
  return waits || situation.overdue(view) ? Outcome::kHung : Outcome::kFinished;
}

Outcome OutcomeOf(const Situation& situation, const Conclusion& conclusion, const RankView& view,
                  std::size_t index) {
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
  return OutcomeOfRunning(situation, conclusion, view, index);
}

// "waiting for rank 1, which exited with code 9", or "" when nobody is known to keep it.
std::string WaitsFor(const Situation& situation, const Stuck& stuck, std::size_t index) {
  if (stuck.waits_for[index] == Stuck::kNobody) return "";
  const RankView& peer = situation.views[static_cast<std::size_t>(stuck.waits_for[index])];
  if (IsGone(peer)) return fmt::format("waiting for rank {}, which {}", peer.rank(), FateOf(peer));
  return fmt::format("waiting for rank {}, which is in {}", peer.rank(), WhereOf(peer));
}

RankOutcome DescribeOutcome(const Situation& situation, const Conclusion& conclusion,
                            std::size_t index) {
  const RankView& view = situation.views[index];
  const RankEvidence& evidence = *view.evidence;
  RankOutcome outcome{.rank = evidence.rank,
                      .outcome = OutcomeOf(situation, conclusion, view, index)};
  // A wrong result weighs more than an end that looks right.
  if (outcome.outcome == Outcome::kFinished && !evidence.wrong_data.empty()) {
    outcome.outcome = Outcome::kCorrupt;
  }
  if (evidence.state == ProcessState::kExited) outcome.exit_code = evidence.exit_code;
  if (evidence.state == ProcessState::kSignalled || evidence.state == ProcessState::kStopped) {
    outcome.signal = evidence.signal;
  }
  outcome.where = WhereOf(view);
  outcome.seconds_silent = evidence.seconds_silent;
  if (!evidence.error.empty()) outcome.evidence = ShortLine(evidence.error);
  if (outcome.outcome == Outcome::kHung) {
    const std::string waits = WaitsFor(situation, conclusion.stuck, index);
    if (!waits.empty()) outcome.evidence = waits;
  }
  for (const std::string& text :
       {DescribeDevicePosition(evidence.journal, evidence.device), evidence.gpu, evidence.system}) {
    if (!text.empty()) outcome.evidence += (outcome.evidence.empty() ? "" : "; ") + text;
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
  const bool failed = std::ranges::any_of(findings, [](const Finding& f) {
    return f.cause.info().severity != Severity::kInconclusive;
  });
  if (failed) return Verdict::kFail;
  const bool complete = findings.empty() && !situation.views.empty() &&
                        std::ranges::all_of(situation.views, [](const RankView& view) {
                          return FinishedInOrder(view) || (view.running() && view.evidence->idle);
                        });
  return complete ? Verdict::kPass : Verdict::kUnknown;
}

// Mismatches that hold ranks, and those that let them pass.
struct Split {
  std::vector<Mismatch> all = {}, holding = {}, passed = {};
};

Split FindSplit(const Situation& situation) {
  Split split{.all = FindMismatches(situation)};
  for (const Mismatch& mismatch : split.all) {
    (mismatch.holds ? split.holding : split.passed).push_back(mismatch);
  }
  return split;
}

// What ended the ranks.
std::vector<Finding> FindEnds(const Situation& situation, const Split& mismatches,
                              Conclusion& conclusion) {
  std::vector<Finding> ends = finders::DescribeMismatches(situation, mismatches.holding);
  if (ends.empty()) Add(ends, finders::FindSurplus(situation, conclusion.stuck));
  Add(ends, finders::FindDepartures(situation, conclusion.stuck));
  // Peers of a dead rank report errors too, and so do ranks whose calls do not match.
  if (ends.empty()) Add(ends, finders::FindErrors(situation, conclusion.stuck));
  if (ends.empty() && !situation.nonblocking_calls)
    Add(ends, finders::FindInversion(situation, mismatches.all));
  if (!ends.empty()) {
    Add(ends, finders::FindLost(situation));
    return ends;
  }
  ends = finders::FindSilence(situation);
  conclusion.standstill = !ends.empty();
  // A suspicion with a name says more than an agent that does not answer.
  Add(ends, finders::FindLost(situation));
  return ends;
}

void Explain(const Situation& situation, const std::vector<Mismatch>& mismatches,
             std::vector<Finding>& findings) {
  if (findings.empty()) return;
  Finding& general = findings.front();
  std::optional<Finding> specific = finders::Explanation::Of(situation, mismatches, general);
  if (!specific) return;
  specific->evidence.push_back(std::move(general));
  general = std::move(*specific);
}

// What ended the ranks comes first, unless it may follow from a mismatch before.
std::vector<Finding> FindAll(const Situation& situation, const Split& mismatches,
                             Conclusion& conclusion) {
  std::vector<Finding> ends = FindEnds(situation, mismatches, conclusion);
  std::vector<Mismatch> before, after;
  for (const Mismatch& mismatch : mismatches.passed) {
    const bool leads = ends.empty() || finders::MayFollow(situation, mismatch, ends.front());
    (leads ? before : after).push_back(mismatch);
  }
  std::vector<Finding> findings = finders::DescribeMismatches(situation, before);
  Add(findings, std::move(ends));
  Explain(situation, before.empty() ? mismatches.holding : before, findings);
  Add(findings, finders::DescribeMismatches(situation, after));
  // What is told already may be why the numbers of calls differ.
  const bool in_order = findings.empty();
  if (in_order) Add(findings, finders::FindUnequalCalls(situation, true));
  Add(findings, finders::FindWrongData(situation));
  if (in_order) Add(findings, finders::FindUnequalCalls(situation, false));
  return findings;
}

Judgement JudgeAligned(const std::vector<RankEvidence>& evidence, const Setting& setting) {
  const Situation situation = SituationOf(evidence, setting);
  const Split mismatches = FindSplit(situation);
  Conclusion conclusion{.stuck = FindStuck(situation, mismatches.all, situation.one_stream)};
  Judgement judgement;
  judgement.findings = FindAll(situation, mismatches, conclusion);
  judgement.outcomes.reserve(evidence.size());
  for (std::size_t i = 0; i < situation.views.size(); ++i) {
    judgement.outcomes.push_back(DescribeOutcome(situation, conclusion, i));
  }
  judgement.verdict = VerdictOf(situation, judgement.findings);
  return judgement;
}

}  // namespace

Judgement Judge(const std::vector<RankEvidence>& evidence, const Setting& setting) {
  const std::optional<SplitEvidence> split = SplitByPeer(evidence, setting);
  if (!split) return JudgeAligned(evidence, setting);
  Judgement judgement = JudgeAligned(split->evidence, split->setting);
  RestoreOperations(evidence, judgement);
  return judgement;
}

Judgement Judge(const std::vector<RankEvidence>& evidence, double deadline_seconds) {
  Setting setting;
  setting.deadline_seconds = deadline_seconds;
  return Judge(evidence, setting);
}

namespace {

bool Alive(const RankEvidence& evidence) {
  return evidence.state == ProcessState::kRunning || evidence.state == ProcessState::kLost;
}

std::uint64_t NewestIndex(const RankEvidence& evidence) {
  return evidence.journal.events.empty() ? 0 : evidence.journal.events.back().index;
}

}  // namespace

bool NobodyCanGoOn(const std::vector<RankEvidence>& evidence, const Judgement& judgement) {
  // That a rank failed is a fact, whether its cause is known or not.
  const bool proved = std::ranges::any_of(judgement.findings, [](const Finding& finding) {
    return finding.proved || finding.cause == Cause::kRankFailed ||
           finding.cause == Cause::kInitFailure;
  });
  if (!proved || judgement.outcomes.size() != evidence.size()) return false;
  for (std::size_t i = 0; i < evidence.size(); ++i) {
    const bool waits = judgement.outcomes[i].outcome == Outcome::kHung;
    const bool done = evidence[i].state == ProcessState::kRunning && evidence[i].idle &&
                      judgement.outcomes[i].outcome == Outcome::kFinished;
    if (Alive(evidence[i]) && !waits && !done) return false;
  }
  return true;
}

bool AllSilent(const std::vector<RankEvidence>& evidence, double deadline_seconds) {
  const bool all_came = std::ranges::all_of(evidence, [](const RankEvidence& rank) {
    const std::optional<JournalEvent> open = journal::OpenOperation(rank.journal);
    const bool leaves =
        !rank.journal.events.empty() && rank.journal.events.back().kind == EventKind::kExit;
    return rank.state == ProcessState::kRunning &&
           (leaves || (open && open->kind == EventKind::kStart));
  });
  return std::ranges::all_of(evidence, [&](const RankEvidence& rank) {
    const bool owes = rank.state == ProcessState::kStopped ||
                      (rank.state == ProcessState::kRunning && !rank.idle);
    return !owes || rank.seconds_silent - (all_came ? rank.starved_s : 0) >= deadline_seconds;
  });
}

void ForgiveBriefStops(std::vector<RankEvidence>& evidence, double deadline_seconds) {
  for (RankEvidence& rank : evidence) {
    if (rank.state != ProcessState::kStopped || rank.seconds_silent >= deadline_seconds) continue;
    rank.state = ProcessState::kRunning;
    rank.signal = 0;
  }
}

bool SameMoment(const std::vector<RankEvidence>& first, const std::vector<RankEvidence>& second) {
  return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                    [](const RankEvidence& a, const RankEvidence& b) {
                      return a.rank == b.rank && a.state == b.state &&
                             NewestIndex(a) == NewestIndex(b);
                    });
}

Ticks NewestTicks(const std::vector<RankEvidence>& evidence) {
  Ticks newest = 0;
  for (const RankEvidence& rank : evidence) {
    if (!rank.journal.events.empty()) {
      newest = std::max(newest, rank.journal.events.back().ticks);
    }
  }
  return newest;
}

}  // namespace lockstep::verdict
