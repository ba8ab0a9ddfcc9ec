// Whether all ranks of a case are silent for too long, which ends it: a hang is suspected.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/silent_look.h"
#include "core/verdict/judge.h"
#include "stress/links/link_director.h"
#include "stress/run/case_options.h"
#include "stress/run/case_state.h"

namespace lockstep::stress::run {

class CaseSilence {
 public:
  using Look = coordinator::SilentLook::Look;

  // `recover` is called instead where ranks recover. What is told outlives it.
  CaseSilence(coordinator::Coordinator& coordinator, const CaseOptions& options, CaseState& state,
              double ns_per_tick, links::LinkDirector& links,
              std::function<void(verdict::Judgement)> recover)
      : coordinator_(coordinator),
        options_(options),
        state_(state),
        ns_per_tick_(ns_per_tick),
        links_(links),
        recover_(std::move(recover)) {}

  void Reset() { mine_ = {}; }
  // Told of every event before it is handled.
  void OnEvent(coordinator::EventKind kind);
  // Ranks are looked at again, if it is time to.
  void DoDue();
  // When OnEvent, with a timeout, or DoDue has something to do.
  std::optional<Deadline> wake() const;
  // That which ended the case, with stacks.
  std::optional<Look> TakeLastLook() { return std::exchange(mine_.last_look, std::nullopt); }

 private:
  void OnOverdue();
  void OnStill(Look look);

  // Of the case that runs.
  struct Mine {
    std::optional<Deadline> again_at = {};  // ranks are held or stopped, agents late …
    coordinator::SilentLook look = {};
    std::optional<Look> last_look = {};
  };

  coordinator::Coordinator& coordinator_;
  const CaseOptions& options_;
  CaseState& state_;
  const double ns_per_tick_;
  links::LinkDirector& links_;
  const std::function<void(verdict::Judgement)> recover_;
  Mine mine_;
};

}  // namespace lockstep::stress::run
