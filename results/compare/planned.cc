#include "results/compare/planned.h"

#include <nlohmann/json.hpp>

namespace lockstep::results::compare {
namespace {

using Json = nlohmann::json;

// Older plans lack some members; a plan that is damaged is not known.
Planned Read(const Json& plan) {
  Planned planned;
  plan.at("backend").get_to(planned.backend);
  plan.at("world_size").get_to(planned.ranks);
  planned.calibrates = plan.at("iterations").is_null();
  for (const Json& one : plan.at("cases")) {
    const auto name = one.at("name").get<std::string>();
    if (!one.value("rests", false)) planned.cases.insert(name);
    if (one.value("visit_iterations", 0) > 0) planned.by_mean.insert(name);
  }
  planned.known = true;
  return planned;
}

}  // namespace

Planned PlannedBy(const std::string& plan_text) {
  try {
    return Read(Json::parse(plan_text));
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace lockstep::results::compare
