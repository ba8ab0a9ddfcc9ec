// A glance shows that all may be silent, and a look that they are. What ends a case is what it is
// judged by.
#include "stress/run/case_silence.h"

#include <algorithm>
#include <cstdint>

#include "core/base/clock.h"
#include "core/base/now.h"
#include "stress/cases/assess.h"

namespace lockstep::stress::run {
namespace {

constexpr double kStillSeconds = 1;  // of a link on which nothing moves

}  // namespace

void CaseSilence::OnEvent(coordinator::EventKind kind) {
  if (state_.over()) return;
  const bool was_pending = mine_.look.pending();
  if (mine_.look.OnEvent(kind)) {
    OnStill(*mine_.look.Take());
  } else if (was_pending && !mine_.look.pending()) {
    mine_.again_at = Deadline::AfterNs(0);
  }
  if (kind == coordinator::EventKind::kOverdue && !was_pending) OnOverdue();
}

void CaseSilence::DoDue() {
  if (!mine_.again_at || !mine_.again_at->Passed()) return;
  mine_.again_at.reset();
  OnOverdue();
}

std::optional<Deadline> CaseSilence::wake() const {
  return mine_.look.pending() ? Deadline::AfterNs(0) : mine_.again_at;
}

// A rank is silent beyond the deadline. Whoever waits for a fault, or for a rank that does, is
// silent because of us.
void CaseSilence::OnOverdue() {
  if (state_.held_until && !state_.held_until->Passed()) {
    mine_.again_at = Deadline::AfterSeconds(options_.deadline_seconds);
    return;
  }
  Look glance = coordinator_.Glance();
  // Nobody tells again when ranks that are kept from their processors, or stopped for a moment,
  // were silent for so long.
  const bool ask_again = std::ranges::any_of(glance, [](const verdict::RankEvidence& rank) {
    return rank.starved_s > 0 || rank.state == verdict::ProcessState::kStopped;
  });
  glance = Judged(state_, options_.deadline_seconds, std::move(glance));
  if (!verdict::AllSilent(glance, options_.deadline_seconds)) {
    if (ask_again) mine_.again_at = Deadline::AfterSeconds(kStillSeconds / 2);
    return;
  }
  // They meet through agents, whose relays are links: silence counts while those are awake.
  const double awake = coordinator_.SecondsAwake();
  if (awake < options_.deadline_seconds) {
    mine_.again_at = Deadline::AfterSeconds(options_.deadline_seconds - awake);
    return;
  }
  // Nor is anyone silent whose bytes still move. A glance tells of them only if links are watched.
  const bool told = std::ranges::any_of(
      glance, [](const verdict::RankEvidence& rank) { return !rank.sockets.empty(); });
  Look look = told ? glance : coordinator_.Collect();
  links_.Look(look);
  if (links_.Moved(kStillSeconds)) {
    mine_.again_at = Deadline::AfterSeconds(kStillSeconds / 2);
    return;
  }
  mine_.look.Set(told ? coordinator_.Collect() : std::move(look));
}

void CaseSilence::OnStill(Look look) {
  const Look evidence = Judged(state_, options_.deadline_seconds, look);
  if (!verdict::AllSilent(evidence, options_.deadline_seconds)) {
    mine_.again_at = Deadline::AfterSeconds(kStillSeconds / 2);
    return;
  }
  verdict::Judgement judgement =
      cases::JudgeCase(state_.stress_case->scenario, options_.backend, evidence,
                       options_.deadline_seconds, state_.generation);
  if (judgement.findings.empty()) return;
  if (state_.recovers()) return recover_(std::move(judgement));
  if (!state_.detected_seconds) {
    const auto since = static_cast<std::int64_t>(NowTicks() - verdict::NewestTicks(evidence));
    state_.detected_seconds = static_cast<double>(since) * ns_per_tick_ * 1e-9;
  }
  mine_.last_look = std::move(look);
  state_.Take(Turn::kEnded);
}

}  // namespace lockstep::stress::run
