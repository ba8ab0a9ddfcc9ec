// Reads what a comparison needs of a plan. Options that change how is measured, and not what, are
// left out of a case's work, and so is what only judges it. The seed is chance: launches differ in
// it.
#include "results/compare/planned.h"

#include <fmt/core.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace lockstep::results::compare {
namespace {

using Json = nlohmann::json;

constexpr const char* kJudges = "slow_factor";
constexpr int kFullCheck = 2;  // it leaves the caches cold

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// "25557032 f32": the buckets of a model; of a sweep the name tells the size.
void AddOperations(const Json& one, Work& work) {
  std::string buckets;
  for (const Json& operation : one.value("operations", Json::array())) {
    work["root"] = TextOf(operation.at("root"));
    buckets += fmt::format("{}{} {}", buckets.empty() ? "" : ", ", operation.at("count").dump(),
                           TextOf(operation.at("type")));
  }
  if (!one.contains("step") && one.value("model", "") != "") work["buckets"] = buckets;
}

// As a digest: a model has hundreds of tensors.
void AddTensors(const Json& plan, const std::string& model, Work& work) {
  for (const Json& one : plan.value("models", Json::array())) {
    if (one.at("name") != model) continue;
    work["tensors"] = fmt::format("{:016x}", std::hash<std::string>()(one.dump()));
  }
}

Work WorkOf(const Json& plan, const Json& one) {
  Work work;
  AddOperations(one, work);
  AddTensors(plan, one.value("model", ""), work);
  const std::string step = one.value("step", "");
  if (!step.empty()) {
    for (const auto& [option, value] : one.at(step).items()) work[option] = TextOf(value);
  }
  work.erase(kJudges);
  if (plan.contains("check")) work["check"] = plan.at("check") == kFullCheck ? "full" : "not full";
  return work;
}

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
    planned.work[name] = WorkOf(plan, one);
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
