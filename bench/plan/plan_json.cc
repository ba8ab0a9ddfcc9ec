// A plan as JSON and back. The text is what workers get, what the result file keeps and what is
// hashed, so each field that decides a measurement must be in it.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "bench/plan/plan.h"
#include "bench/plan/step_json.h"

namespace lockstep::bench::plan {
namespace {

Json ToJson(const collective::Operation& operation) {
  Json json;
  json["collective"] = collective::NameOf(operation.collective);
  json["type"] = collective::NameOf(operation.type);
  json["reduction"] = collective::NameOf(operation.reduction);
  json["blocking"] = operation.blocking == collective::Blocking::kBlocking;
  json["count"] = operation.count;
  json["root"] = operation.root;
  return json;
}

Result<collective::Operation> OperationFrom(const Json& json) {
  collective::Operation operation;
  LOCKSTEP_ASSIGN_OR_RETURN(
      operation.collective,
      collective::ParseCollective("collective", json.at("collective").get<std::string>()));
  LOCKSTEP_ASSIGN_OR_RETURN(operation.type,
                            collective::ParseDataType("type", json.at("type").get<std::string>()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      operation.reduction,
      collective::ParseReduction("reduction", json.at("reduction").get<std::string>()));
  operation.blocking = json.at("blocking").get<bool>() ? collective::Blocking::kBlocking
                                                       : collective::Blocking::kNonblocking;
  operation.count = json.at("count").get<std::int64_t>();
  operation.root = json.at("root").get<int>();
  return operation;
}

Json ToJson(const PlannedCase& planned) {
  Json json;
  json["name"] = planned.name;
  json["in_place"] = planned.in_place;
  json["model"] = planned.model;
  json["bucket"] = planned.bucket;
  json["bucket_cap_mb"] = planned.bucket_cap_mb;
  for (const collective::Operation& operation : planned.operations) {
    json["operations"].push_back(ToJson(operation));
  }
  AddStepJson(planned, json);
  return json;
}

Result<PlannedCase> CaseFrom(const Json& json) {
  PlannedCase planned;
  planned.name = json.at("name").get<std::string>();
  planned.in_place = json.at("in_place").get<bool>();
  planned.model = json.at("model").get<std::string>();
  planned.bucket = json.at("bucket").get<int>();
  planned.bucket_cap_mb = json.at("bucket_cap_mb").get<double>();
  for (const Json& item : json.at("operations")) {
    LOCKSTEP_ASSIGN_OR_RETURN(collective::Operation operation, OperationFrom(item));
    planned.operations.push_back(operation);
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadStepJson(json, planned));
  return planned;
}

Result<Plan> PlanFrom(const Json& json) {
  Plan plan;
  plan.world_size = json.at("world_size").get<int>();
  plan.backend = json.at("backend").get<std::string>();
  if (!json.at("iterations").is_null()) plan.iterations = json["iterations"].get<std::int64_t>();
  plan.warmup = json.at("warmup").get<std::int64_t>();
  plan.precision = json.at("precision").get<double>();
  plan.drift = json.at("drift").get<double>();
  if (!json.at("time_budget_seconds").is_null()) {
    plan.time_budget_seconds = json["time_budget_seconds"].get<double>();
  }
  plan.check = static_cast<CheckMode>(json.at("check").get<int>());
  plan.deadline_seconds = json.at("deadline_seconds").get<double>();
  plan.seed = json.at("seed").get<std::uint64_t>();
  plan.send_buffer_bytes = json.at("send_buffer_bytes").get<std::int64_t>();
  plan.recv_buffer_bytes = json.at("recv_buffer_bytes").get<std::int64_t>();
  plan.paired = json.at("paired").get<bool>();
  plan.memory_bytes = json.at("memory_bytes").get<std::int64_t>();
  for (const Json& item : json.at("models")) {
    LOCKSTEP_ASSIGN_OR_RETURN(PlannedModel model, ModelFrom(item));
    plan.models.push_back(std::move(model));
  }
  for (const Json& item : json.at("cases")) {
    LOCKSTEP_ASSIGN_OR_RETURN(PlannedCase planned, CaseFrom(item));
    plan.cases.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace

std::string PlanToJson(const Plan& plan) {
  Json json;
  json["world_size"] = plan.world_size;
  json["backend"] = plan.backend;
  json["iterations"] = plan.iterations ? Json(*plan.iterations) : Json(nullptr);
  json["warmup"] = plan.warmup;
  json["precision"] = plan.precision;
  json["drift"] = plan.drift;
  json["time_budget_seconds"] =
      plan.time_budget_seconds ? Json(*plan.time_budget_seconds) : Json(nullptr);
  json["check"] = static_cast<int>(plan.check);
  json["deadline_seconds"] = plan.deadline_seconds;
  json["seed"] = plan.seed;
  json["send_buffer_bytes"] = plan.send_buffer_bytes;
  json["recv_buffer_bytes"] = plan.recv_buffer_bytes;
  json["paired"] = plan.paired;
  json["memory_bytes"] = plan.memory_bytes;
  json["models"] = Json::array();
  for (const PlannedModel& model : plan.models) json["models"].push_back(ToJson(model));
  json["cases"] = Json::array();
  for (const PlannedCase& planned : plan.cases) json["cases"].push_back(ToJson(planned));
  return json.dump();
}

Result<Plan> PlanFromJson(const std::string& text) {
  try {
    return PlanFrom(Json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    return InvalidInput(fmt::format("the plan cannot be read: {}", error.what()));
  }
}

std::string HashOf(const Plan& plan) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, 64 bits
  for (const char c : PlanToJson(plan)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace lockstep::bench::plan
