// The options of links on the command line.
#ifndef LOCKSTEP_BENCH_HARNESS_LINK_OPTIONS_H_
#define LOCKSTEP_BENCH_HARNESS_LINK_OPTIONS_H_

#include <string>

#include "bench/plan/spec.h"
#include "core/base/argument_parser.h"
#include "core/base/status.h"

namespace lockstep::bench::harness {

// As typed.
struct LinkWords {
  std::string bytes = "1M", per = "rank", all_at_once, slow_factor = "1.5";
  bool one_at_a_time = false;
};

void AddLinkOptions(ArgumentParser& parser, LinkWords& words);

// Into spec.links. Errors name the option, the word and what is accepted.
Status ReadLinkWords(const LinkWords& words, plan::BenchSpec& spec);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_LINK_OPTIONS_H_
