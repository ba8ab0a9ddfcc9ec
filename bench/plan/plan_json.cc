// A plan as JSON and back, and its hash: what agents send to workers and what a run's file keeps.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "bench/plan/plan.h"
#include "core/base/named_members.h"
#include "core/collective/data_type.h"

namespace lockstep::bench::plan {
namespace {

using Json = nlohmann::ordered_json;

Json TensorsToJson(const std::vector<ddp::TensorInfo>& tensors) {
  Json json = Json::array();
  for (const ddp::TensorInfo& tensor : tensors) {
    json.push_back({tensor.name, collective::NameOf(tensor.type), tensor.shape});
  }
  return json;
}

Result<std::vector<ddp::TensorInfo>> TensorsFrom(const Json& json) {
  std::vector<ddp::TensorInfo> tensors;
  for (const Json& item : json) {
    ddp::TensorInfo& tensor = tensors.emplace_back();
    tensor.name = item.at(0).get<std::string>();
    LOCKSTEP_ASSIGN_OR_RETURN(tensor.type,
                              collective::ParseDataType("type", item.at(1).get<std::string>()));
    tensor.shape = item.at(2).get<std::vector<std::int64_t>>();
    tensor.numel = 1;
    for (const std::int64_t extent : tensor.shape) tensor.numel *= extent;
  }
  return tensors;
}

Result<RankReduction> ReductionFrom(const std::string& name) {
  for (const RankReduction reduction :
       {RankReduction::kSlowest, RankReduction::kMean, RankReduction::kMax}) {
    if (NameOf(reduction) == name) return reduction;
  }
  return InvalidInput("the plan cannot be read: '{}' is no way over ranks", name);
}

Json ToJson(const PlannedModel& model) {
  return {{"name", model.name},
          {"params", TensorsToJson(model.tensors.params)},
          {"ready_order", model.tensors.ready_order},
          {"buffers", TensorsToJson(model.tensors.buffers)}};
}

Result<PlannedModel> ModelFrom(const Json& json) {
  PlannedModel model;
  model.name = json.at("name").get<std::string>();
  LOCKSTEP_ASSIGN_OR_RETURN(model.tensors.params, TensorsFrom(json.at("params")));
  model.tensors.ready_order = json.at("ready_order").get<std::vector<int>>();
  LOCKSTEP_ASSIGN_OR_RETURN(model.tensors.buffers, TensorsFrom(json.at("buffers")));
  return model;
}

Json ToJson(const collective::Operation& operation) {
  return {{"collective", collective::NameOf(operation.collective)},
          {"type", collective::NameOf(operation.type)},
          {"reduction", collective::NameOf(operation.reduction)},
          {"blocking", operation.blocking == collective::Blocking::kBlocking},
          {"count", operation.count},
          {"root", operation.root}};
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

// What is written and read by one description: Describe(fields, plan) names each field once.
class Writer {
 public:
  explicit Writer(Json& json) : json_(json) {}
  template <typename T>
  void operator()(const char* name, const T& value) {
    json_[name] = value;
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    json_[name] = value ? Json(*value) : Json(nullptr);
  }

 private:
  Json& json_;
};

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}
  template <typename T>
  void operator()(const char* name, T& value) {
    json_.at(name).get_to(value);
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (!json_.at(name).is_null()) value = json_.at(name).get<T>();
  }

 private:
  const Json& json_;
};

void DescribeCase(auto& fields, auto& planned) {
  LOCKSTEP_FIELDS(fields, planned, name, in_place, model, bucket, bucket_cap_mb, send_bytes,
                  recv_bytes, memory_bytes, side_stream, host_access, rests, visit_iterations);
  fields("visit_batch_ns", planned.visits.batch_ns);
  fields("visit_multiple", planned.visits.multiple);
  fields("visit_most_iterations", planned.visits.most_iterations);
  fields("visit_fewest_rounds", planned.visits.fewest_rounds);
  fields("settings", planned.settings);
}

void DescribePlan(auto& fields, auto& plan) {
  LOCKSTEP_FIELDS(fields, plan, world_size, backend, iterations, warmup, precision, drift,
                  time_budget_seconds, check, deadline_seconds, seed, send_buffer_bytes,
                  recv_buffer_bytes, paired, memory_bytes);
}

void DescribeNccl(auto& fields, auto& nccl) {
  LOCKSTEP_FIELDS(fields, nccl, library, ranks_per_gpu);
  fields("register", nccl.registers);
  fields("cuda_graph", nccl.graphs);
  fields("device_marks", nccl.marks);
}

Json ToJson(const PlannedCase& planned) {
  Json json;
  Writer writer(json);
  DescribeCase(writer, planned);
  for (const collective::Operation& operation : planned.operations) {
    json["operations"].push_back(ToJson(operation));
  }
  if (!planned.step.name.empty()) {
    json["step"] = planned.step.name;
    json[planned.step.name] = Json::parse(planned.step.fields);
  }
  json["parts"] = Json::array();
  for (const PartInfo& part : planned.parts) {
    json["parts"].push_back({part.name, part.units, NameOf(part.over)});
  }
  return json;
}

Result<PlannedCase> CaseFrom(const Json& json) {
  PlannedCase planned;
  Reader reader(json);
  DescribeCase(reader, planned);
  for (const Json& item : json.at("operations")) {
    LOCKSTEP_ASSIGN_OR_RETURN(collective::Operation operation, OperationFrom(item));
    planned.operations.push_back(operation);
  }
  if (json.contains("step")) {
    planned.step.name = json["step"].get<std::string>();
    planned.step.fields = json.at(planned.step.name).dump();
  }
  for (const Json& item : json.at("parts")) {
    LOCKSTEP_ASSIGN_OR_RETURN(const RankReduction over,
                              ReductionFrom(item.at(2).get<std::string>()));
    planned.parts.push_back({item.at(0).get<std::string>(), item.at(1).get<std::string>(), over});
  }
  return planned;
}

Result<Plan> PlanFrom(const Json& json) {
  Plan plan;
  Reader reader(json);
  DescribePlan(reader, plan);
  Reader nccl(json.at("nccl"));
  DescribeNccl(nccl, plan.nccl);
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
  Writer writer(json);
  DescribePlan(writer, plan);
  Writer nccl(json["nccl"]);
  DescribeNccl(nccl, plan.nccl);
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
    return InvalidInput("the plan cannot be read: {}", error.what());
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
