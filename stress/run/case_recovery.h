// Failure -> abort -> rebuild -> resume, as the coordinator orders it. Workers do nothing on their
// own: a thread of each hears the order while its program is stuck.
#pragma once

#include <optional>
#include <vector>

#include "core/base/deadline.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/standstill_watch.h"
#include "stress/cases/recovery.h"
#include "stress/run/case_state.h"
#include "stress/run/ranks_awaited.h"

namespace lockstep::stress::run {

class CaseRecovery {
 public:
  // What is told outlives it.
  CaseRecovery(coordinator::Coordinator& coordinator, const CaseOptions& options, CaseState& state,
               RanksAwaited::TakeEvents take_events);

  void Reset() { mine_ = {}; }
  void OnMessage(const coordinator::Event& event);
  // All ranks were silent beyond the deadline.
  void OnSilence(verdict::Judgement judgement) { mine_.silence = std::move(judgement); }
  // What the event, or the looks that it leads to, shows to recover from, if anything, is recovered
  // from; or the case is over.
  void OnEvent(const coordinator::Event& event, coordinator::StandstillWatch& watch);
  // Ranks that were recovered are watched for their first collective.
  bool watches() const { return mine_.resume_by.has_value(); }
  void LookForResume(const std::vector<journal::Journal>& journals);
  // Soon, if there is something to look for.
  bool looks() const { return mine_.resume_by || mine_.look || mine_.silence; }
  std::vector<cases::Recovery> TakeRecoveries() { return std::move(mine_.recoveries); }

 private:
  // Something for ranks to recover from, as it was seen.
  struct Failure {
    verdict::Judgement judgement;
    Ticks seen_at = 0;
    double seconds_after = 0;  // the last event that completes the proof
  };
  // Of the case that runs.
  struct Mine {
    std::vector<cases::Recovery> recoveries = {};
    std::optional<verdict::Judgement> silence = {};  // what that of all ranks told
    std::optional<Deadline> resume_by = {};
    std::optional<Deadline> echoes_until = {};  // nobody has said more than that a peer went away
    Ticks rebuilt_at = 0;
    bool look = false;  // a rank was lost while the others rebuilt
  };

  std::optional<Failure> FailureAt(const coordinator::Event& event,
                                   coordinator::StandstillWatch& watch);
  std::optional<Failure> Departed();
  void Recover(const Failure& failure);
  // Who is left of the generation; the lost go into `recovery`.
  std::vector<int> SurvivorsOf(const Failure& failure, cases::Recovery& recovery) const;
  double DetectSeconds(const Failure& failure);
  // Each false: it did not succeed; `recovery` says why.
  bool AbortAll(const std::vector<int>& survivors, cases::Recovery& recovery);
  bool AwaitReady(std::vector<int>& survivors, cases::Recovery& recovery);
  bool Rebuild(const std::vector<int>& survivors, cases::Recovery& recovery);
  bool AwaitConnected(cases::Recovery& recovery, Ticks began);
  // Ends the lost, and starts them anew where the plan wants it.
  Status ReplaceLost(const cases::Recovery& recovery, cases::Generation& next);
  void OrderMembers(const cases::Recovery& recovery);
  // What became of ranks that were lost after the failure was judged, and what is proved of them.
  void RetellOutcomes(const std::vector<int>& ranks, cases::Recovery& recovery);
  std::optional<verdict::Finding> FindWrongPlace() const;
  std::vector<int> NotConnected() const;
  bool AnyMember(bool (RankState::*is)() const) const;
  void EndRank(int rank);
  double SecondsBetween(Ticks from, Ticks to) const;

  coordinator::Coordinator& coordinator_;
  const CaseOptions& options_;
  CaseState& state_;
  RanksAwaited ranks_;
  double ns_per_tick_;
  Mine mine_;
};

}  // namespace lockstep::stress::run
