// A step's options as the text that a plan carries, written and read by one description of them:
//   struct Walk {
//     static constexpr char kName[] = "walk";
//     double miles = 1;
//     template <typename Fields, typename S>
//     static void Describe(Fields& fields, S& walk) { fields("miles", walk.miles); }
//   };
#pragma once

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/plan/plan.h"
#include "core/base/check.h"

namespace lockstep::bench::plan {

// Names and values of a step's options, as people see them.
class SettingsWriter {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    settings.emplace_back(name, fmt::format("{}", value));
  }
  std::vector<std::pair<std::string, std::string>> settings;
};

template <typename S>
std::vector<std::pair<std::string, std::string>> SettingsOf(const S& step) {
  SettingsWriter writer;
  S::Describe(writer, step);
  return std::move(writer.settings);
}

template <typename S>
StepPlan PlanStep(const S& step) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto write = [&](const char* name, const auto& value) { json[name] = value; };
  S::Describe(write, step);
  return {S::kName, json.dump()};
}

// Of a case whose step was planned as an S: anything else is our own mistake.
template <typename S>
S StepOf(const PlannedCase& planned) {
  LOCKSTEP_CHECK(planned.step.name == S::kName, "a case has the step of its kind");
  const auto json = nlohmann::ordered_json::parse(planned.step.fields);
  S step;
  const auto read = [&](const char* name, auto& value) { json.at(name).get_to(value); };
  S::Describe(read, step);
  return step;
}

}  // namespace lockstep::bench::plan
