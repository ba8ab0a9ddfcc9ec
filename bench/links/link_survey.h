// From the samples of links to a matrix of pairs, to what is to be measured again, and to who is
// slow. Pure.
#ifndef LOCKSTEP_BENCH_HARNESS_LINK_SURVEY_H_
#define LOCKSTEP_BENCH_HARNESS_LINK_SURVEY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "bench/harness/link_teams.h"
#include "bench/harness/sample_book.h"
#include "bench/plan/plan.h"
#include "results/store/run.h"

namespace lockstep::bench::harness {

// The plan outlives it.
class LinkSurvey {
 public:
  LinkSurvey(const plan::Plan& plan, LinkSetting setting);
  const std::vector<std::string>& hosts() const { return setting_.hosts; }

  // Cases of the plan that the second pass measures.
  std::vector<std::size_t> Retests(const SampleBook& book, int repetition) const;

  // What both passes tell: the matrix; findings of a launch (slow_link, slow_host, slow_rank),
  // which become the first ones and fail it.
  void AddTo(const SampleBook& book, int repetition, results::store::Run& run) const;

 private:
  const plan::Plan& plan_;
  LinkSetting setting_;
};

// "6 pairs of 4 hosts: …", for a person: how fast, and that none is slow.
std::string DescribeLinks(const results::store::Run& run);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_LINK_SURVEY_H_
