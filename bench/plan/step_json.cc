// The kinds of steps as JSON and back, by the descriptions in steps.h: a new option of a step needs
// no line here.
#include "bench/plan/step_json.h"

#include <fmt/core.h>

#include "core/collective/data_type.h"

namespace lockstep::bench::plan {
namespace {

// The two visitors of a step's description.
class JsonWriter {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    json[name] = value;
  }
  Json json = Json::object();
};

class JsonReader {
 public:
  explicit JsonReader(const Json& json) : json_(json) {}
  template <typename T>
  void operator()(const char* name, T& value) {
    value = json_.at(name).get<T>();
  }

 private:
  const Json& json_;
};

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

Result<Over> OverFrom(const std::string& name) {
  for (const Over over : {Over::kSlowest, Over::kMean, Over::kMax}) {
    if (NameOf(over) == name) return over;
  }
  return InvalidInput(fmt::format("the plan cannot be read: '{}' is no way over ranks", name));
}

}  // namespace

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

void AddStepJson(const PlannedCase& planned, Json& json) {
  JsonWriter writer;
  if (const auto* ddp = std::get_if<DdpStep>(&planned.step)) {
    DescribeDdpStep(writer, *ddp);
    json["ddp_step"] = std::move(writer.json);
  } else if (const auto* broadcast = std::get_if<StateBroadcast>(&planned.step)) {
    DescribeStateBroadcast(writer, *broadcast);
    json["state_broadcast"] = std::move(writer.json);
  } else if (const auto* load = std::get_if<ShardedLoad>(&planned.step)) {
    DescribeShardedLoad(writer, *load);
    json["sharded_load"] = std::move(writer.json);
  } else if (const auto* links = std::get_if<LinkExchange>(&planned.step)) {
    DescribeLinkExchange(writer, *links);
    json["link_exchange"] = std::move(writer.json);
  } else {
    if (!planned.settings.empty()) json["settings"] = planned.settings;
    return;
  }
  json["memory_bytes"] = planned.memory_bytes;
  json["visit_iterations"] = planned.visit_iterations;
  for (const PartInfo& part : planned.parts) {
    json["parts"].push_back({part.name, part.units, NameOf(part.over)});
  }
  json["settings"] = planned.settings;
}

Status ReadStepJson(const Json& json, PlannedCase& planned) {
  if (json.contains("ddp_step")) {
    JsonReader reader(json["ddp_step"]);
    DescribeDdpStep(reader, planned.step.emplace<DdpStep>());
  } else if (json.contains("state_broadcast")) {
    JsonReader reader(json["state_broadcast"]);
    DescribeStateBroadcast(reader, planned.step.emplace<StateBroadcast>());
  } else if (json.contains("sharded_load")) {
    JsonReader reader(json["sharded_load"]);
    DescribeShardedLoad(reader, planned.step.emplace<ShardedLoad>());
  } else if (json.contains("link_exchange")) {
    JsonReader reader(json["link_exchange"]);
    DescribeLinkExchange(reader, planned.step.emplace<LinkExchange>());
  } else {
    using Settings = decltype(planned.settings);
    if (json.contains("settings")) planned.settings = json["settings"].get<Settings>();
    return OkStatus();
  }
  planned.memory_bytes = json.at("memory_bytes").get<std::int64_t>();
  planned.visit_iterations = json.at("visit_iterations").get<std::uint32_t>();
  for (const Json& item : json.at("parts")) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Over over, OverFrom(item.at(2).get<std::string>()));
    planned.parts.push_back({item.at(0).get<std::string>(), item.at(1).get<std::string>(), over});
  }
  planned.settings = json.at("settings").get<std::vector<std::pair<std::string, std::string>>>();
  return OkStatus();
}

}  // namespace lockstep::bench::plan
