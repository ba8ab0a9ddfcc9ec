#include "stress/harness/stored_scenarios.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace lockstep::stress::harness {
namespace {

using Json = nlohmann::json;

struct Planned {
  std::string name;
  std::string text;
  int ranks = 0;
};

std::optional<Planned> PlannedOf(const Json& json) {
  const auto is_text = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  if (!json.is_object() || !is_text("name") || !is_text("text")) return std::nullopt;
  if (!json.contains("ranks") || !json["ranks"].is_number_integer()) return std::nullopt;
  const auto ranks = json["ranks"].get<std::int64_t>();
  if (ranks < 1 || ranks > scenario::kMaxScenarioRanks) return std::nullopt;
  return Planned{json["name"].get<std::string>(), json["text"].get<std::string>(),
                 static_cast<int>(ranks)};
}

std::string NameOf(const results::store::CaseRecord& record) {
  for (const auto& [key, value] : record.settings) {
    if (key == "scenario") return value;
  }
  return "";
}

}  // namespace

std::vector<std::optional<scenario::Scenario>> ScenariosOf(const results::store::Run& run) {
  const Json plan = Json::parse(run.plan_text, nullptr, false);
  std::map<std::pair<std::string, int>, std::string> texts;  // by name and ranks
  if (plan.is_object() && plan.contains("cases") && plan["cases"].is_array()) {
    for (const Json& json : plan["cases"]) {
      const std::optional<Planned> planned = PlannedOf(json);
      if (planned) texts[{planned->name, planned->ranks}] = planned->text;
    }
  }
  std::vector<std::optional<scenario::Scenario>> scenarios;
  for (const results::store::CaseRecord& record : run.cases) {
    std::optional<scenario::Scenario>& scenario = scenarios.emplace_back();
    const auto text = texts.find({NameOf(record), record.ranks});
    if (text == texts.end()) continue;
    Result<scenario::Scenario> parsed =
        scenario::ParseScenario(text->second, record.name, {.ranks = record.ranks});
    if (parsed.ok()) scenario = *std::move(parsed);
  }
  return scenarios;
}

}  // namespace lockstep::stress::harness
