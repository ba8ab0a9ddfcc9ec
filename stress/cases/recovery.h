// What became of a recovery, and how the ranks of a communicator that was made in one are judged:
// pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict/judge.h"
#include "stress/scenario/recovery.h"

namespace lockstep::stress::cases {

// One communicator of all ranks that take part. Generation 0 is the world at the beginning; later
// ones have their number as id in the journals.
struct Generation {
  int number = 0;
  std::vector<int> members;          // ascending; of generation 0 all
  std::vector<std::uint64_t> since;  // by rank: the last index in its journal from before
};

// The evidence of `generation` alone: what ranks did before is left out, and ranks that are no
// members have finished.
std::vector<verdict::RankEvidence> OfGeneration(std::vector<verdict::RankEvidence> evidence,
                                                const Generation& generation);
// What a judge must know of it.
void AddGeneration(const Generation& generation, verdict::Setting& setting);

struct Recovery {
  scenario::RecoveryPlan::Mode mode = scenario::RecoveryPlan::Mode::kShrink;
  scenario::RecoveryOutcome outcome = scenario::RecoveryOutcome::kCutShort;
  int generation = 0;  // that it made, or failed to
  std::vector<int> lost;
  std::vector<int> members;
  std::int64_t first_iteration = 0;
  // One after the other, from the fault on; NaN: it did not get there, or is not known.
  double detect_seconds = std::numeric_limits<double>::quiet_NaN();
  double abort_seconds = std::numeric_limits<double>::quiet_NaN();
  double rebuild_seconds = std::numeric_limits<double>::quiet_NaN();
  double resume_seconds = std::numeric_limits<double>::quiet_NaN();
  verdict::Judgement failure;               // what it recovers from
  std::optional<verdict::Finding> finding;  // why it did not succeed
};

// Who is lost by the judgement of a failure: ended, stopped, or the culprit of a silence. A rank
// that failed is lost when its process is `gone`; otherwise it waits to be recovered, or soon will.
std::vector<int> LostIn(const verdict::Judgement& failure, const std::vector<bool>& gone);

// Its process has not begun to connect: no library holds it, and it hears an order to abort before
// one does.
bool StillStarts(const verdict::RankEvidence& rank);

inline constexpr std::size_t kMostRecoveries = 4;  // of a case

// Why a recovery did not succeed.
verdict::Finding AbortHung(std::vector<int> culprits, double seconds);
verdict::Finding NotConnected(std::vector<int> culprits, double seconds);
struct Place {
  int rank = 0;
  int size = 0;
};
// A rank takes another place than the others were told of: it makes a communicator of its own.
verdict::Finding WrongPlace(int rank, Place taken, Place expected);

// When the fault came that led to the failure: the newest in the journals or of `applied`, else the
// newest death; 0: none is known. Faults before `after` led to something else.
Ticks FaultTicks(const std::vector<verdict::RankEvidence>& evidence,
                 const std::vector<Ticks>& applied, Ticks after);

// When the first collective of the generation was complete on all members, if it is in the
// journals.
std::optional<Ticks> ResumedAt(const std::vector<journal::Journal>& journals,
                               const Generation& generation);

// Of the whole case, from the judgement of its last generation.
verdict::Judgement WithRecoveries(verdict::Judgement last, const std::vector<Recovery>& recoveries);

// What ranks recovered from is over, and so are calls and data that did not match in iterations
// that they repeated for it. All else that spoils data, and what is found of the last generation,
// is not: the first such finding of the failures and of `last`, or none.
std::optional<verdict::Finding> NotMadeGood(const verdict::Judgement& last,
                                            const std::vector<Recovery>& recoveries);

// "none", or the outcome of the last one.
std::string OutcomeOf(const std::vector<Recovery>& recoveries);

}  // namespace lockstep::stress::cases
