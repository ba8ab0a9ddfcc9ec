// Runs the batches of one case on a rank: the timed loop, whatever its iterations are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure/protocol.h"
#include "bench/measure/step.h"

namespace lockstep::bench::measure {

// An iteration has the shape of OSU's loop, so that numbers can be compared:
//   rewrite a window of the inputs, barrier | entry, collective(s) or step, exit | compare
// where only what is between the bars is timed.
class CaseRunner {
 public:
  CaseRunner(const Bench& bench, std::uint32_t case_index, std::unique_ptr<Step> step);

  // Samples, their parts, comparisons and the cost of the batch go to the outbox.
  Status RunBatch(const Batch& batch, std::uint32_t round);

 private:
  Status Meet(bool first);
  void ReportSample(std::uint32_t round, const comm::Interval& interval);
  void Compare(bool warmup);
  void Report(const std::string& record);

  Bench bench_;
  std::uint32_t case_index_;
  std::unique_ptr<Step> step_;
  bool has_parts_;
  std::string bytes_;          // of the record in the making
  std::vector<double> parts_;  // likewise
  Comparison comparison_;      // of this batch
  int wrong_records_ = 0;      // located, of this case
};

}  // namespace lockstep::bench::measure
