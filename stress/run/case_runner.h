// The coordinator's side of a case: starts workers, applies the faults that come from outside,
// watches, and ends the case when it is over, proved to stand still, or silent for too long.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/standstill_watch.h"
#include "stress/cases/assess.h"
#include "stress/cases/catalogue.h"
#include "stress/run/case_faults.h"
#include "stress/run/case_options.h"
#include "stress/run/case_recovery.h"
#include "stress/run/case_silence.h"
#include "stress/run/case_state.h"
#include "stress/run/ranks_awaited.h"

namespace lockstep::stress::run {

class CaseRunner {
 public:
  CaseRunner(coordinator::Coordinator& coordinator, const CaseOptions& options);

  // Called once a worker has all that its program runs on.
  void SetBegun(std::function<void()> begun) { begun_ = std::move(begun); }
  // Called when the launcher is about to end us: there may be a second left until it kills.
  void SetSave(std::function<void()> save) { save_ = std::move(save); }

  // One case in new workers. Errors are of the environment; what happened to ranks is in the
  // result.
  Result<cases::CaseResult> Run(const cases::StressCase& stress_case);
  // Told to end by a signal, or a host is lost: no further case should be run.
  bool terminated() const { return terminated_; }
  // What the first worker that got so far told of the library and the device; else empty.
  const std::string& worker_facts() const { return worker_facts_; }

 private:
  void Watch();
  // After each event, while nothing is proved.
  void LookAt(const coordinator::Event& event, coordinator::StandstillWatch& watch);
  // After a proof: who would still fail by itself was given the time to.
  bool IsSettled();
  // A rank whose program is over is about to leave, and others are left to hear of it.
  bool IsAwaitedByPeers() const;
  void Handle(const coordinator::Event& event);
  void OnMessage(const coordinator::Event& event);
  void OnGone(int rank);
  // Nobody runs any more, but for ranks that finished and linger.
  bool AllOver();
  Deadline NextWake() const;
  // Until it is done, or for so long while all agents are awake: ranks speak and meet through them.
  bool TakeEventsFor(double seconds, const std::function<bool()>& done);
  // Then the case is cut short.
  bool IsBeyondLimit();
  cases::CaseFacts Gather();
  // Takes what ranks told before this moment; whether there was any.
  bool DrainEvents();
  std::vector<verdict::RankEvidence> GatherEvidence();

  coordinator::Coordinator& coordinator_;
  const CaseOptions& options_;
  double ns_per_tick_;
  bool terminated_ = false;
  Deadline limit_ = Deadline::AfterNs(0);  // of the case that runs
  std::string worker_facts_;
  std::function<void()> begun_ = [] {};
  std::function<void()> save_ = [] {};
  CaseState state_;  // of the case that runs
  CaseFaults faults_;
  CaseRecovery recovery_;
  CaseSilence silence_;
  std::optional<SilencesSince> leaving_;  // with state_.closing_at
};

}  // namespace lockstep::stress::run
