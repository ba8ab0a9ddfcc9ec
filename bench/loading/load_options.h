// The options of sharded loading on the command line.
#ifndef LOCKSTEP_BENCH_HARNESS_LOAD_OPTIONS_H_
#define LOCKSTEP_BENCH_HARNESS_LOAD_OPTIONS_H_

#include <string>
#include <vector>

#include "bench/plan/spec.h"
#include "core/base/argument_parser.h"
#include "core/base/status.h"

namespace lockstep::bench::harness {

// As typed.
struct LoadWords {
  std::string dataset, samples = "512", batch = "16", workers = "2", passes = "4", slow_rank = "0";
  std::vector<std::string> set_epoch, drop_last, weighted, slow_downs;
};

void AddLoadOptions(ArgumentParser& parser, LoadWords& words);

// Into spec.load. Errors name the option, the word and what is accepted.
Status ReadLoadWords(const LoadWords& words, plan::BenchSpec& spec);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_LOAD_OPTIONS_H_
