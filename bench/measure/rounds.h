// Which cases the next round visits, with how many iterations, and when a case is measured well
// enough. Pure but for the clock that is passed in.
//
// Why rounds: samples of one case taken in a row are autocorrelated over 10 to 150 iterations and
// ride on the machine's drift. A round visits every case in shuffled order with a small batch; its
// median is the unit of the statistics, and successive rounds are nearly independent. A round that
// takes long is ordered in pieces, so that a budget ends it in time and a person sees it move.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/protocol.h"
#include "bench/measure/sample_book.h"
#include "bench/plan/plan.h"
#include "core/base/random.h"

namespace lockstep::bench::measure {

// The most that a sweep takes, with a second pass where there is one; infinite: -n says how much is
// measured.
double MostSeconds(const plan::Plan& plan);

class Rounds {
 public:
  Rounds(const plan::Plan& plan, SampleBook& book, std::size_t outbox_records);

  // Forgets what stopped and begins anew (a repetition); lost cases stay lost.
  void BeginRepetition();

  // The time for a sweep: the plan's (five times that until each case has the rounds it needs), or
  // enough for 60 visits of what models exchange or what is compared, and for 14 of all sizes that
  // are not light (fewer, down to 8, where these take over 4.5 s), at least 1.8 s and at most 50 s:
  // a person waits no longer unasked, and is told which budget is precise. Until each case was
  // visited once it is the most. Infinite for fixed iterations without a budget.
  double BudgetSeconds() const;

  // Cases that are measured again begin anew: those that rested until they were asked for.
  void Wake(const std::vector<std::size_t>& cases);

  // The next batches, `elapsed_seconds` after the begin of the sweep: a round, or what of it can
  // be done at once; none when every case has stopped. The first round begins with the smallest
  // cases, the others are shuffled. Cases whose next batch would not fit into
  // the budget are left out, and stop when not even one fits. Where a round does not fit, the cases
  // with the fewest rounds are visited first.
  Round Next(double elapsed_seconds);
  // They are done: decides which cases are precise enough (paired ones: when all of them are).
  void Close();

  // The case was interrupted by a failure: it is visited no more.
  void Lose(std::size_t case_index) { stopped_[case_index] = "lost"; }
  // All cases that still run stop for this reason.
  void StopAll(const std::string& reason);
  // … because the budget is spent.
  void StopForTime();

  // "" while it runs; "precision" (also of a case that is so when the budget is spent),
  // "time_budget", "iterations", "cut_short" (fewer iterations than -n, by the budget), "lost",
  // "interrupted", "not_run", "not_needed".
  const std::string& stopped_by(std::size_t case_index) const { return stopped_[case_index]; }
  bool finished() const { return running() == 0; }
  std::size_t running() const { return Running().size(); }
  // Over all repetitions.
  std::uint32_t begun() const { return begun_; }
  // Cases with a sample.
  std::size_t visited() const;
  // A guess from the costs and intervals so far, for the progress line; what the budget leaves as
  // long as intervals tell nothing. Infinite: unknown.
  double SecondsToGo(double elapsed_seconds) const;

 private:
  Batch PlanBatch(std::size_t case_index) const;
  Batch PlanFixedBatch(std::size_t case_index) const;
  bool Known(std::size_t case_index) const;
  bool AllKnown() const;
  bool IsGiant(std::size_t case_index) const;
  double IterationNs(std::size_t case_index) const { return book_.Current(case_index).so_far_ns(); }
  std::uint32_t WarmupOf(std::size_t case_index) const;
  std::vector<std::size_t> Running() const;
  std::vector<std::size_t> Visitors(double seconds_left) const;
  void BeginRound(double seconds_left);
  double BatchSeconds(std::size_t case_index) const;
  double CostSeconds(std::size_t case_index) const;
  double UsualSeconds(std::size_t case_index) const;  // of a visit that nothing disturbs
  double ShareOfGiants() const;                       // of the time
  double RoundsToGo(std::size_t case_index) const;
  // A whole round of the cases that still run.
  double RoundSeconds() const;
  // In the outbox, for an iteration: a sample and what its parts take of another.
  std::size_t RecordsOf(std::size_t case_index) const;
  void StopWhatDoesNotFit(double seconds_left);
  void StopForTime(std::size_t case_index);
  bool Precise(std::size_t case_index) const;

  const plan::Plan& plan_;
  SampleBook& book_;
  Random random_;
  std::size_t outbox_records_;
  std::uint32_t begun_ = 0;
  std::deque<std::size_t> waiting_;  // for their visit in this round
  std::optional<double> known_at_;   // when each case had been visited, in seconds
  std::vector<std::string> stopped_;
};

}  // namespace lockstep::bench::measure
