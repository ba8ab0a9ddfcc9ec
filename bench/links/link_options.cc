#include "bench/harness/link_options.h"

#include <fmt/core.h>

#include <cstdlib>

#include "core/base/units.h"

namespace lockstep::bench::harness {

void AddLinkOptions(ArgumentParser& parser, LinkWords& words) {
  parser.Add("--bytes", words.bytes, "Size of the messages that tell the bandwidth").ShowDefault();
  parser.Add("--per", words.per, "rank: all ranks; host: one rank of each host").ShowDefault();
  parser.Flag("--one-at-a-time", words.one_at_a_time,
              "One pair after the other, instead of disjoint pairs at the same time");
  parser.Add("--all-at-once", words.all_at_once,
             "1 (default where the backend can): also every rank with all others; 0: not");
  parser
      .Add("--slow-factor", words.slow_factor,
           "A link is slow only if it is slower than usual by this factor")
      .ShowDefault();
}

Status ReadLinkWords(const LinkWords& words, plan::BenchSpec& spec) {
  plan::LinkAxes& axes = spec.links;
  LOCKSTEP_ASSIGN_OR_RETURN(axes.bytes, ParseBytes("--bytes", words.bytes));
  if (words.per != "rank" && words.per != "host") {
    return InvalidInput(fmt::format("--per: '{}' is none of rank, host", words.per));
  }
  axes.one_per_host = words.per == "host";
  axes.one_at_a_time = words.one_at_a_time;
  if (!words.all_at_once.empty() && words.all_at_once != "0" && words.all_at_once != "1") {
    return InvalidInput(fmt::format("--all-at-once: '{}' is none of 0, 1", words.all_at_once));
  }
  if (!words.all_at_once.empty()) axes.all_at_once = words.all_at_once == "1";
  char* end = nullptr;
  axes.slow_factor = std::strtod(words.slow_factor.c_str(), &end);
  if (words.slow_factor.empty() || *end != '\0' || !(axes.slow_factor >= 1.1) ||
      !(axes.slow_factor <= 1e6)) {
    return InvalidInput(
        fmt::format("--slow-factor: '{}' is not a number from 1.1 to 1e6", words.slow_factor));
  }
  return OkStatus();
}

}  // namespace lockstep::bench::harness
