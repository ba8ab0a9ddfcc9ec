#include "stress/links/link_rule.h"

#include <fmt/core.h>

#include <cinttypes>
#include <cstdio>

namespace lockstep::stress::links {

std::string Encode(const LinkRule& rule) {
  return fmt::format("{} {} {:d} {:d} {:d} {:d} {} {} {} {} {}", rule.id, rule.peer, rule.outgoing,
                     rule.incoming, rule.down, rule.reset, rule.delay_s, rule.jitter_s, rule.loss,
                     rule.rate_bytes_per_s, rule.seed);
}

std::optional<LinkRule> DecodeLinkRule(std::string_view text) {
  LinkRule rule;
  int flags[4] = {};
  const int fields =
      std::sscanf(std::string(text).c_str(), "%d %d %d %d %d %d %lf %lf %lf %lf %" SCNu64, &rule.id,
                  &rule.peer, &flags[0], &flags[1], &flags[2], &flags[3], &rule.delay_s,
                  &rule.jitter_s, &rule.loss, &rule.rate_bytes_per_s, &rule.seed);
  if (fields != 11) return std::nullopt;
  rule.outgoing = flags[0] != 0;
  rule.incoming = flags[1] != 0;
  rule.down = flags[2] != 0;
  rule.reset = flags[3] != 0;
  return rule;
}

}  // namespace lockstep::stress::links
