// Stacks take their time, so events that came meanwhile are handled before the look counts. What
// ends a round is what it is judged by.
#include "bench/harness/round_silence.h"

#include "core/verdict/judge.h"

namespace lockstep::bench::harness {

void RoundSilence::Reset() {
  overdue_ = false;
  look_.reset();
}

bool RoundSilence::OnEvent(coordinator::EventKind kind) {
  const bool timeout = kind == coordinator::EventKind::kTimeout;
  const bool overdue = kind == coordinator::EventKind::kOverdue;
  if (timeout && look_) return true;
  if (!overdue) look_.reset();  // another rank that is overdue is silent as well
  overdue_ = overdue_ || overdue;
  if (overdue_ && !look_ && (timeout || overdue)) LookAtRanks();
  return false;
}

// They meet through agents: silence counts while those are awake.
void RoundSilence::LookAtRanks() {
  if (!verdict::AllSilent(coordinator_.Glance(), deadline_seconds_) ||
      coordinator_.SecondsAwake() < deadline_seconds_)
    return;
  Look look = coordinator_.Collect();
  if (verdict::AllSilent(look, deadline_seconds_)) look_ = std::move(look);
}

}  // namespace lockstep::bench::harness
