// Which cases the next round visits, with how many iterations, and when a case is measured well
// enough. Pure but for the clock that is passed in.
//
// Why rounds: samples of one case taken in a row are autocorrelated over 10 to 150 iterations and
// ride on the machine's drift. A round visits every case in shuffled order with a small batch; its
// median is the unit of the statistics, and successive rounds are nearly independent.
#ifndef LOCKSTEP_BENCH_MEASURE_ROUNDS_H_
#define LOCKSTEP_BENCH_MEASURE_ROUNDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/protocol.h"
#include "bench/measure/sample_book.h"
#include "bench/plan/plan.h"
#include "core/base/random.h"

namespace lockstep::bench::measure {

class Rounds {
 public:
  Rounds(const plan::Plan& plan, SampleBook& book, std::size_t outbox_records);

  // Forgets what stopped and begins anew (a repetition); lost cases stay lost.
  void BeginRepetition();

  // The time for a sweep: the plan's (five times that until each case has the rounds it needs), or
  // enough for 25 visits of all cases that are not light, at least 6 s. In that time a quiet
  // machine reaches 5 % at all sizes; one that drifts would not in a minute, and is told its
  // wider intervals sooner. Unknown (infinite) until the first round is done.
  double BudgetSeconds() const;

  // Cases that are measured again begin anew: those that rested until they were asked for.
  void Wake(const std::vector<std::size_t>& cases);

  // The next round's batches, `elapsed_seconds` after the begin of the sweep; none when every case
  // has stopped. Cases whose next batch would not fit into the budget are left out, and stop when
  // not even one fits.
  Round Next(double elapsed_seconds);
  // The round is done: decides which cases are precise enough (paired ones: when all of them are).
  void Close();

  // The case was interrupted by a failure: it is visited no more.
  void Lose(std::size_t case_index);
  // All cases that still run stop for this reason.
  void StopAll(const std::string& reason);

  // "" while it runs; "precision", "time_budget", "iterations", "lost", "interrupted", "not_run",
  // "not_needed".
  const std::string& stopped_by(std::size_t case_index) const { return stopped_[case_index]; }
  bool finished() const;
  std::size_t running() const;
  // A guess from the costs and intervals so far, for the progress line.
  double SecondsToGo() const;

 private:
  Batch PlanBatch(std::size_t case_index) const;
  bool Known(std::size_t case_index) const;
  bool IsGiant(std::size_t case_index) const;
  double IterationNs(std::size_t case_index) const;
  std::vector<std::size_t> Running() const;
  std::vector<std::size_t> Visitors(double seconds_left) const;
  double CostSeconds(std::size_t case_index) const;
  double RoundsToGo(std::size_t case_index) const;
  // A whole round of the cases that still run, as the cheapest visits cost.
  double RoundSeconds() const;
  // In the outbox, for an iteration: a sample and what its parts take of another.
  std::size_t RecordsOf(std::size_t case_index) const;
  void StopWhatDoesNotFit(double seconds_left);
  bool Precise(std::size_t case_index) const;

  const plan::Plan& plan_;
  SampleBook& book_;
  Random random_;
  std::size_t outbox_records_;
  std::uint32_t next_number_ = 0;
  std::vector<std::string> stopped_;
};

}  // namespace lockstep::bench::measure

#endif  // LOCKSTEP_BENCH_MEASURE_ROUNDS_H_
