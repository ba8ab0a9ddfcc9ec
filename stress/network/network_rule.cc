// Rules in words, for reports.
#include "stress/network/network_rule.h"

#include <fmt/format.h>

namespace lockstep::stress::network {

std::string DescribeRule(const NetworkRule& rule) {
  std::vector<std::string> parts;
  if (rule.down) parts.emplace_back("nothing passes");
  if (rule.reset) parts.emplace_back("connections are reset");
  if (rule.block) {
    parts.push_back(fmt::format("no new connection to {}, {}",
                                rule.port == 0 ? "any port" : fmt::format("port {}", rule.port),
                                rule.refuse ? "refused" : "unanswered"));
  }
  if (rule.delay_s > 0) parts.push_back(fmt::format("delay {:g} ms", rule.delay_s * 1e3));
  if (rule.jitter_s > 0) parts.push_back(fmt::format("jitter {:g} ms", rule.jitter_s * 1e3));
  if (rule.loss > 0) parts.push_back(fmt::format("loss {:g} %", rule.loss * 100));
  if (rule.reorder > 0) {
    parts.push_back(
        fmt::format("{:g} % come {:g} ms later", rule.reorder * 100, rule.reorder_s * 1e3));
  }
  if (rule.rate_bytes_per_s > 0) {
    parts.push_back(fmt::format("{:g} KiB/s", rule.rate_bytes_per_s / 1024));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace lockstep::stress::network
