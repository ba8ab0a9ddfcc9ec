// The coordinator's side of a case: starts workers, applies the faults that come from outside,
// watches, and ends the case when it is over, proved to stand still, or silent for too long.
#ifndef LOCKSTEP_STRESS_HARNESS_CONDUCTOR_H_
#define LOCKSTEP_STRESS_HARNESS_CONDUCTOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/standstill_watch.h"
#include "stress/harness/assess.h"
#include "stress/harness/catalogue.h"
#include "stress/harness/options.h"
#include "stress/harness/sighting.h"
#include "stress/links/link_director.h"

namespace lockstep::stress::harness {

class StressConductor {
 public:
  StressConductor(coordinator::Coordinator& coordinator, const StressOptions& options);

  // Called when the launcher is about to end us: there may be a second left until it kills.
  void SetSave(std::function<void()> save) { save_ = std::move(save); }

  // One case in new workers. Errors are of the environment; what happened to ranks is in the
  // result.
  Result<CaseResult> Run(const StressCase& stress_case);
  // Told to end by a signal, or a host is lost: no further case should be run.
  bool terminated() const { return terminated_; }
  // What the first worker that got so far told of the library and the device; else empty.
  const std::string& worker_facts() const { return worker_facts_; }

 private:
  // A thing to do at a time: a fault of the clock, or the end of a stop.
  struct Due {
    Deadline at;
    std::size_t fault;
    bool heal;
  };

  // Something for ranks to recover from, as it was seen.
  struct Failure {
    verdict::Judgement judgement;
    Ticks seen_at = 0;
    double seconds_after = 0;  // the last event that completes the proof
  };

  void Reset(const StressCase& stress_case);
  void Watch();
  void Handle(const coordinator::Event& event);
  void OnMessage(const coordinator::Event& event);
  void OnOverdue();
  void OnFault(const coordinator::Event& event);
  void Apply(std::size_t fault);
  void ApplyToLink(std::size_t fault);
  void DoDue();
  // Nobody runs any more, but for ranks that finished and linger.
  bool AllOver();
  Deadline NextWake() const;
  std::string EncodedOrder(const Membership& membership) const;

  // Of recoveries: conductor_recovery.cc.
  bool Recovers() const { return case_->scenario.recovery.has_value(); }
  bool Parked(int rank) const;  // it reported an error and waits to be recovered
  void OnRecoveryMessage(const coordinator::Event& event);
  std::optional<Failure> FailureAt(const coordinator::Event& event,
                                   coordinator::StandstillWatch& watch);
  std::optional<Failure> Departed();
  void Recover(const Failure& failure);
  // Each false: it did not succeed; `recovery` says why.
  bool AbortAll(std::vector<int>& survivors, Recovery& recovery);
  // What became of ranks that were lost after the failure was judged, as it is now.
  void RetellOutcomes(const std::vector<int>& ranks, Recovery& recovery);
  bool AwaitReady(std::vector<int>& survivors, Recovery& recovery);
  bool Rebuild(const std::vector<int>& survivors, Recovery& recovery);
  bool AwaitConnected(Recovery& recovery, Ticks began);
  std::optional<verdict::Finding> FindWrongPlace() const;
  void EndRank(int rank);
  // The case ends before its time: told to, or an agent is lost. Who was not given the time that
  // is allowed is not to blame.
  bool CutShort() const { return over_ || !cut_short_.empty(); }
  // Takes events until `done`, the deadline, or the case is cut short; whether it was done.
  bool TakeEventsUntil(const std::function<bool()>& done, Deadline deadline);
  void LookForResume(const std::vector<journal::Journal>& journals);
  double SecondsBetween(Ticks from, Ticks to) const;
  CaseFacts Gather();
  // Whether an agent, or the launcher on its host, is gone.
  bool HostsAreLost() const;
  // Told to end: the launcher does that when a host is lost, and it may know first.
  void AwaitLosses();
  std::vector<verdict::RankEvidence> Judged(std::vector<verdict::RankEvidence> evidence) const;

  coordinator::Coordinator& coordinator_;
  const StressOptions& options_;
  links::LinkDirector links_;
  double ns_per_tick_;
  bool terminated_ = false;
  std::string worker_facts_;
  std::function<void()> save_ = [] {};

  // Of the case that runs.
  const StressCase* case_ = nullptr;
  std::vector<std::optional<ProgramReport>> reports_;
  std::vector<bool> gone_;   // the worker left or died
  std::vector<bool> heals_;  // by rank: stopped, and will be continued
  std::vector<bool> fired_;  // by fault
  std::vector<std::string> notes_;
  std::vector<Due> due_;
  std::optional<Deadline> settle_;      // proved: what is still to happen has until then to happen
  std::optional<Deadline> closing_;     // all finished: who did not leave by then lingers
  std::optional<Deadline> look_again_;  // all are silent, but bytes moved
  std::optional<double> detected_;
  std::optional<Sighting> sighting_;  // of a mismatch, by the first look that showed it
  // Of recoveries.
  Generation generation_;
  std::vector<Recovery> recoveries_;
  std::optional<verdict::Judgement> overdue_;  // what the silence of all ranks told
  std::vector<Ticks> applied_at_;              // by fault of the clock
  std::vector<int> aborted_;         // by rank: the newest generation that it gave up; -1: none
  std::vector<Ticks> connected_at_;  // by rank, to this generation; 0: not
  std::vector<std::optional<Membership>> places_;  // by rank: that it took
  std::optional<Deadline> resume_by_;              // it is watched for the first collective
  Ticks rebuilt_at_ = 0;
  std::optional<Deadline> echoes_until_;  // nobody has said more than that a peer went away
  bool look_ = false;                     // a rank was lost while the others rebuilt
  bool stuck_ = false;                    // all programs finished, but not every process leaves
  bool over_ = false;
  std::string cut_short_;
};

}  // namespace lockstep::stress::harness

#endif  // LOCKSTEP_STRESS_HARNESS_CONDUCTOR_H_
