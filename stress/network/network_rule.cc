// Rules as JSON for orders and back, and in words for reports.
#include "stress/network/network_rule.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep::stress::network {

using Json = nlohmann::json;

std::string Encode(const NetworkRule& rule) {
  return Json{{"id", rule.id},          {"to", rule.to},
              {"spared", rule.spared},  {"down", rule.down},
              {"reset", rule.reset},    {"block", rule.block},
              {"port", rule.port},      {"refuse", rule.refuse},
              {"delay", rule.delay_s},  {"jitter", rule.jitter_s},
              {"loss", rule.loss},      {"reorder", rule.reorder},
              {"late", rule.reorder_s}, {"rate", rule.rate_bytes_per_s},
              {"seed", rule.seed}}
      .dump();
}

std::optional<NetworkRule> DecodeNetworkRule(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.size() != 15) return std::nullopt;
  NetworkRule rule;
  try {
    json.at("id").get_to(rule.id);
    json.at("to").get_to(rule.to);
    json.at("spared").get_to(rule.spared);
    json.at("down").get_to(rule.down);
    json.at("reset").get_to(rule.reset);
    json.at("block").get_to(rule.block);
    json.at("port").get_to(rule.port);
    json.at("refuse").get_to(rule.refuse);
    json.at("delay").get_to(rule.delay_s);
    json.at("jitter").get_to(rule.jitter_s);
    json.at("loss").get_to(rule.loss);
    json.at("reorder").get_to(rule.reorder);
    json.at("late").get_to(rule.reorder_s);
    json.at("rate").get_to(rule.rate_bytes_per_s);
    json.at("seed").get_to(rule.seed);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return rule;
}

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
