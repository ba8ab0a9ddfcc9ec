// From the samples of links to a matrix of pairs, to what is to be measured again, and to who is
// slow. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/links/link_groups.h"
#include "bench/links/link_verdicts.h"
#include "bench/measure/sample_book.h"
#include "bench/plan/plan.h"
#include "core/verdict/outcome.h"
#include "results/store/run.h"

namespace lockstep::bench::links {

// The plan outlives it.
class LinkSurvey {
 public:
  LinkSurvey(const plan::Plan& plan, LinkSetting setting);

  // Cases of the plan that the second pass measures.
  std::vector<std::size_t> Retests(const measure::SampleBook& book, int repetition) const;

  // What both passes tell: the matrix of the last repetition, and findings of all of them
  // (slow_link, slow_host, slow_rank), which fail the launch behind what it has. A launch that
  // measured no pair does not pass.
  void AddTo(const measure::SampleBook& book, int last, results::store::Run& run) const;

 private:
  // What one repetition tells.
  struct Repetition {
    results::store::LinkMatrix matrix;
    std::vector<verdict::Finding> findings;
    bool undecided = false;
  };
  Repetition JudgeRepetition(const measure::SampleBook& book, int repetition) const;

  const plan::Plan& plan_;
  LinkSetting setting_;
  double slow_factor_;
};

// "6 pairs of 4 hosts: …", for a person: how fast, and that none is slow.
std::string DescribeLinks(const results::store::Run& run);

// Of a link that is to blame (link_findings.cc). `bytes` of the messages that tell the bandwidth.
verdict::Finding SlowLink(const LinkGroup& group, const LinkVerdicts& verdicts,
                          const stats::NodePair& pair, double bytes);
// A node that is to blame: slow_host, or slow_rank within a host.
verdict::Finding SlowNode(const LinkGroup& group, const LinkVerdicts& verdicts, int node,
                          double bytes);

// Adds to the findings of an interruption which links had a message under way: the journals of the
// lifetime that it ended say so.
void NameOpenLinks(const std::vector<results::store::RankHistory>& history, int lifetime,
                   const std::vector<std::string>& hosts, verdict::Judgement& judgement);

}  // namespace lockstep::bench::links
