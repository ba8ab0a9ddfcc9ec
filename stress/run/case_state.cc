// The state of a case and its transitions, which are the table of the header.
#include "stress/run/case_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/check.h"

namespace lockstep::stress::run {

CaseState::CaseState(const cases::StressCase& of, int size)
    : stress_case(&of), ranks(size), faults(of.faults.size()) {
  for (int rank = 0; rank < size; ++rank) generation.members.push_back(rank);
}

void CaseState::Take(Turn turn) {
  if (over()) return;
  if (turn == Turn::kEnded) {
    phase = Phase::kOver;
    return;
  }
  const auto* const found = std::ranges::find_if(
      kTransitions, [&](const Transition& one) { return one.from == phase && one.turn == turn; });
  LOCKSTEP_CHECK(found != std::end(kTransitions), "a turn that the phase allows");
  phase = found->to;
}

void CaseState::CutShort(std::string why) {
  cut_short = std::move(why);
  Take(Turn::kEnded);
}

std::vector<verdict::RankEvidence> Judged(const CaseState& state, double deadline_seconds,
                                          std::vector<verdict::RankEvidence> evidence) {
  std::vector<bool> may_go_on;
  for (const verdict::RankEvidence& rank : evidence) {
    may_go_on.push_back(!state.ranks[rank.rank].stays_stopped &&
                        rank.seconds_silent < deadline_seconds);
  }
  evidence = cases::AsJudged(cases::OfGeneration(std::move(evidence), state.generation),
                             state.ranks.Map([](const RankState& rank) { return rank.report; }),
                             may_go_on, state.stuck);
  // A program that raised and waits to be recovered would have left.
  for (verdict::RankEvidence& rank : evidence) {
    if (!state.Parked(rank.rank) || rank.state != verdict::ProcessState::kRunning) continue;
    rank.state = verdict::ProcessState::kExited;
    rank.exit_code = static_cast<int>(ExitCodeOf(StatusCode::kSystemFailed));
    rank.idle = false;
  }
  return evidence;
}

verdict::Judgement ProvedBy(const CaseState& state, const CaseOptions& options,
                            const std::vector<verdict::RankEvidence>& evidence) {
  return cases::JudgeCase(state.stress_case->scenario, options.backend, evidence, kNoDeadline,
                          state.generation);
}

std::string EncodedOrder(const CaseState& state, const CaseOptions& options,
                         const Membership& membership) {
  const cases::StressCase& of = *state.stress_case;
  CaseOrder order = {of.scenario.origin, of.text, of.scenario.ranks, options.backend, of.seed};
  order.membership = membership;
  return control::Encode(order);
}

}  // namespace lockstep::stress::run
