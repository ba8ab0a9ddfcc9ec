// The faults of a case that come from outside the program: when they are due, who injects them,
// and what was heard of that.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/coordinator/coordinator.h"
#include "stress/links/link_director.h"
#include "stress/run/case_state.h"

namespace lockstep::stress::run {

class CaseFaults {
 public:
  CaseFaults(coordinator::Coordinator& coordinator, CaseState& state, double deadline_seconds)
      : coordinator_(coordinator),
        links_(coordinator),
        state_(state),
        deadline_seconds_(deadline_seconds) {}

  // Before the workers of the case start, and when they were told to begin.
  void Prepare();
  void Start();
  // A worker says that one takes effect, or is to be applied.
  void OnFired(const std::string& text);
  // An agent tells what it did; only then it fired, and the program goes on.
  void OnFault(const coordinator::Event& event);
  void OnPlugin(const coordinator::Event& event);
  void DoDue();
  Deadline NextDue(Deadline wake) const;
  std::vector<std::string> Notes() const;
  links::LinkDirector& links() { return links_; }

 private:
  // A thing to do at a time: a fault of the clock, or the end of a stop.
  struct Due {
    Deadline at;
    std::size_t fault;
    bool heal;
  };
  const faults::PlannedFault& Planned(std::size_t fault) const {
    return state_.stress_case->faults[fault];
  }
  void Apply(std::size_t fault);
  void ApplyToLink(std::size_t fault);
  void Heal(std::size_t fault);
  void HealAfter(std::size_t fault);
  // The rank that waits for it goes on. It and who waits for it are silent from now on, not before.
  void LetGo(std::size_t fault);

  coordinator::Coordinator& coordinator_;
  links::LinkDirector links_;
  CaseState& state_;
  const double deadline_seconds_;
  std::vector<Due> due_;
};

}  // namespace lockstep::stress::run
