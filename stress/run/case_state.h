// What the coordinator knows of the case that runs: its phase, a struct a rank, a struct a fault.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/verdict/judge.h"
#include "stress/cases/assess.h"
#include "stress/cases/catalogue.h"
#include "stress/run/case_options.h"
#include "stress/run/per_rank.h"
#include "stress/run/protocol.h"
#include "stress/run/sighting.h"
#include "stress/workloads/program_report.h"

namespace lockstep::stress::run {

enum class Phase : std::uint8_t {
  kWatching,       // the programs run
  kSettling,       // proved: what is still to happen has a moment to happen
  kAborting,       // of a recovery: ranks were told to give their communicator up
  kAwaitingRanks,  // of a recovery: they come back from what they were in
  kConnecting,     // of a recovery: they make another communicator
  kOver,           // nothing more is waited for
};

enum class Turn : std::uint8_t {
  kProved,       // nobody can go on
  kFailureSeen,  // something to recover from
  kAborted,      // all survivors gave their communicator up
  kRanksReady,   // all survivors came back
  kResumed,      // they made another communicator
  kLostAgain,    // a rank was lost while they did
  kEnded,        // found out, told to end, or an agent is lost
};

// Where a turn leads to. kEnded does from everywhere, and nothing leads on from kOver.
struct Transition {
  Phase from;
  Turn turn;
  Phase to;
};
inline constexpr Transition kTransitions[] = {
    {Phase::kWatching, Turn::kProved, Phase::kSettling},
    {Phase::kWatching, Turn::kFailureSeen, Phase::kAborting},
    {Phase::kAborting, Turn::kAborted, Phase::kAwaitingRanks},
    {Phase::kAwaitingRanks, Turn::kRanksReady, Phase::kConnecting},
    {Phase::kConnecting, Turn::kResumed, Phase::kWatching},
    {Phase::kConnecting, Turn::kLostAgain, Phase::kWatching},
};

struct RankState {
  std::optional<workloads::ProgramReport> report = {};
  workloads::WrongDataKept wrong_data = {};  // of generations before
  bool gone = false;                         // the worker left or died
  bool stays_stopped = false;                // by a fault that nothing ends
  int aborted = -1;                          // the newest generation that it gave up; -1: none
  Ticks connected_at = 0;                    // to this generation; 0: not
  std::optional<Membership> place = {};      // that it took

  bool finished() const { return report && report->status.ok(); }
  // It reported an error and waits to be recovered.
  bool raised() const { return !gone && report && !report->status.ok(); }
  bool lost() const { return gone && !finished(); }
  bool connected() const { return connected_at > 0; }
  bool unconnected() const { return !connected(); }
  bool left_unconnected() const { return gone && !connected(); }
};

struct FaultState {
  bool fired = false;
  bool awaited = false;  // a rank waits until it was applied
  std::string note = {};
  Ticks applied_at = 0;  // of a fault of the clock
};

// A moment for what is still to come after a proof.
struct Settling {
  double seconds = 0;  // how long that is
  Deadline until;
  Deadline at_most;
  // Of each rank, for so long its call was kept from a processor when that was last made up for.
  std::vector<double> starved_s = {};
};

struct CaseState {
  CaseState() = default;
  CaseState(const cases::StressCase& of, int size);

  const cases::StressCase* stress_case = nullptr;
  Phase phase = Phase::kWatching;
  std::string cut_short = {};  // why it ends before its time; empty: it does not
  PerRank<RankState> ranks;
  std::vector<FaultState> faults;
  cases::Generation generation;
  std::optional<Settling> settling = {};    // kSettling
  std::optional<Deadline> closing_at = {};  // all finished: who did not leave by then lingers
  std::optional<Deadline> held_until = {};  // by faults that are applied: no silence is theirs
  std::optional<double> detected_seconds = {};
  std::optional<Sighting> sighting = {};  // of a mismatch, by the first look that showed it
  bool stuck = false;                     // all programs finished, but not every process leaves

  void Take(Turn turn);
  // Told to end, or an agent is lost, it is cut short: who was not given the time that is allowed
  // is not to blame.
  bool over() const { return phase == Phase::kOver; }
  void CutShort(std::string why);
  bool recovers() const { return stress_case->scenario.recovery.has_value(); }
  bool Parked(int rank) const { return recovers() && ranks[rank].raised(); }
};

// Of proofs: no silence counts.
inline constexpr double kNoDeadline = std::numeric_limits<double>::infinity();

// The evidence of its generation, with what else is known of the ranks. Whoever stopped a rank may
// continue it. So it counts as stopped by a fault that nothing ends, or when silent for so long.
std::vector<verdict::RankEvidence> Judged(const CaseState& state, double deadline_seconds,
                                          std::vector<verdict::RankEvidence> evidence);
// What that proves; no deadline is needed for it.
verdict::Judgement ProvedBy(const CaseState& state, const CaseOptions& options,
                            const std::vector<verdict::RankEvidence>& evidence);
// What a worker is told to run, as a member of `membership`.
std::string EncodedOrder(const CaseState& state, const CaseOptions& options,
                         const Membership& membership);

}  // namespace lockstep::stress::run
