// All samples that arrived at the scheduler, by case, repetition and rank.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/floors/floors.h"
#include "bench/measure/protocol.h"
#include "bench/plan/plan.h"
#include "core/base/clock.h"
#include "core/coordinator/host_clocks.h"
#include "core/stats/stats.h"
#include "results/store/run.h"

namespace lockstep::bench::measure {

// What is known of one case in one repetition. Row k of every rank is the same collective: all
// ranks run the same batches in the same order, and a case that was interrupted gets no more.
struct CaseBook {
  struct RankRows {
    std::vector<Ticks> entry;
    std::vector<Ticks> exit;
    std::vector<std::int32_t> round;
    std::vector<double> parts;  // rows x parts of the case
  };
  std::vector<RankRows> ranks;
  double first_visit_ns = 0;             // FigureOfVisit of the first round, which only calibrates
  std::vector<double> round_medians_ns;  // likewise of the later rounds: of the maximum over ranks
  std::vector<floors::Crossing> round_crossings;  // how the machine was in each of these
  std::vector<results::store::WrongResult> wrong;
  std::int64_t checked = 0;
  std::int64_t wrong_elements = 0;
  double last_wall_ns = 0;       // the cost of the newest batch, comparisons included
  double least_wall_ns = 0;      // … of the cheapest
  double iteration_wall_ns = 0;  // of the newest batch: an iteration with all that surrounds it
  std::int64_t closed_rows = 0;  // rows that CloseRound has seen
  double clock_error_ns = 0;  // bound of how far stamps of two ranks are off, after PutOnOneClock

  std::int64_t complete_rows() const;  // taken by every rank
  double so_far_ns() const;            // the median as it is known now; 0: not at all
  // The maximum over ranks, whose counters run at rates of their own.
  double DurationNs(std::int64_t row, const std::vector<double>& ns_per_tick) const;
};

class SampleBook {
 public:
  SampleBook(int ranks, std::size_t cases, TickScale scale);

  // Records of a rank's outbox; they belong to the repetition begun last.
  void Add(int rank, std::string_view bytes);
  void BeginRepetition();
  // How data crosses between the ranks' processors now, until the next time.
  void NoteCrossing(const floors::Crossing& crossing) { crossing_ = crossing; }
  int repetitions() const { return static_cast<int>(books_.size()); }
  bool empty() const;  // no sample was taken

  // Until PutOnOneClock stamps are those of every rank's own counter: how fast it runs.
  void SetRates(std::vector<double> ns_per_tick) { ns_per_tick_ = std::move(ns_per_tick); }
  // All stamps become the coordinator's. Once, after the last sample.
  void PutOnOneClock(const coordinator::HostClocks& clocks);

  // The round is complete on every rank: takes the figure of each case's new rows.
  void CloseRound(const plan::Plan& plan);

  const CaseBook& Book(int repetition, std::size_t case_index) const;
  CaseBook& Current(std::size_t case_index) { return books_.back()[case_index]; }
  const TickScale& scale() const { return scale_; }

 private:
  void AddSample(int rank, const SampleRecord& record);

  int ranks_;
  std::size_t cases_;
  TickScale scale_;
  floors::Crossing crossing_;
  std::vector<double> ns_per_tick_;           // of each rank
  std::vector<std::vector<CaseBook>> books_;  // repetition x case
};

// The parts of a case with their values; NaN for what a rank did not leave. No summary yet.
std::vector<results::store::Part> PartsOf(const CaseBook& book, const plan::PlannedCase& planned);

// Rows of a book on the run's clock; ranks that did not get to a row have Samples::kNoTime.
results::store::Samples SamplesOf(const CaseBook& book, const TickScale& scale);

}  // namespace lockstep::bench::measure
