// Notices, some milliseconds after it came to that, when it is proved that nobody can go on.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/coordinator/coordinator.h"
#include "core/verdict/judge.h"

namespace lockstep::coordinator {

struct Standstill {
  verdict::Judgement judgement;  // without what the operating system says
  double seconds_after = 0;      // from the last event that completed the proof to the proof
};

// Works with what agents report as quiet (CoordinatorOptions::quiet_seconds > 0). The ranks share a
// tick counter, or seconds_after means nothing.
class StandstillWatch {
 public:
  // May amend the evidence by what else is known of the ranks (that their program is over).
  using JudgeFunction = std::function<verdict::Judgement(std::vector<RankEvidence>&)>;
  // `judge` must need no deadline: all that it says is proved.
  StandstillWatch(Coordinator& coordinator, JudgeFunction judge);

  // Told of every event of the coordinator. When it can be the one that completes a proof, all
  // ranks are looked at, twice: proved is only what did not change in between.
  std::optional<Standstill> OnEvent(const Event& event);

 private:
  Coordinator& coordinator_;
  JudgeFunction judge_;
  double ns_per_tick_;
};

}  // namespace lockstep::coordinator
