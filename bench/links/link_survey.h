// From the samples of links to a matrix of pairs, to what is to be measured again, and to who is
// slow. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/links/link_groups.h"
#include "bench/measure/sample_book.h"
#include "bench/plan/plan.h"
#include "results/store/run.h"

namespace lockstep::bench::links {

// The plan outlives it.
class LinkSurvey {
 public:
  LinkSurvey(const plan::Plan& plan, LinkSetting setting);

  // Cases of the plan that the second pass measures.
  std::vector<std::size_t> Retests(const measure::SampleBook& book, int repetition) const;

  // What both passes tell: the matrix; findings of a launch (slow_link, slow_host, slow_rank),
  // which become the first ones and fail it.
  void AddTo(const measure::SampleBook& book, int repetition, results::store::Run& run) const;

 private:
  const plan::Plan& plan_;
  LinkSetting setting_;
  double slow_factor_;
};

// "6 pairs of 4 hosts: …", for a person: how fast, and that none is slow.
std::string DescribeLinks(const results::store::Run& run);

}  // namespace lockstep::bench::links
