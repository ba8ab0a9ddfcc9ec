// A glance shows that all may be silent, and a look that they are. What ends a round is what it is
// judged by.
#include "bench/harness/round_silence.h"

#include "core/verdict/judge.h"

namespace lockstep::bench::harness {

void RoundSilence::Reset() {
  overdue_ = false;
  look_ = {};
}

bool RoundSilence::OnEvent(coordinator::EventKind kind) {
  if (look_.OnEvent(kind)) return true;
  const bool overdue = kind == coordinator::EventKind::kOverdue;
  overdue_ = overdue_ || overdue;
  const bool asks = overdue || kind == coordinator::EventKind::kTimeout;
  if (overdue_ && asks && !look_.pending()) LookAtRanks();
  return false;
}

// They meet through agents: silence counts while those are awake.
void RoundSilence::LookAtRanks() {
  if (!verdict::AllSilent(coordinator_.Glance(), deadline_seconds_) ||
      coordinator_.SecondsAwake() < deadline_seconds_)
    return;
  coordinator::SilentLook::Look look = coordinator_.Collect();
  if (verdict::AllSilent(look, deadline_seconds_)) look_.Set(std::move(look));
}

}  // namespace lockstep::bench::harness
