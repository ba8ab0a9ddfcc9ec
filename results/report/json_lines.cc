// A run as JSON lines, an object a case. Its fields follow the records of results/store one for
// one. Bytes that are no UTF-8 are replaced, so every line parses.
#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "core/base/named_members.h"
#include "results/report/report.h"
#include "results/store/schema.h"

namespace lockstep::results::report {
namespace {

using Json = nlohmann::ordered_json;

// Fields of a record under the names that the result file has for them.
class JsonFields {
 public:
  template <typename T>
  void operator()(const char* name, const T& field, const char* = "") {
    std::visit([&](const auto& value) { json[name] = value; }, store::ToValue(field));
  }
  void operator()(const char* name, const std::vector<int>& ranks) { json[name] = ranks; }
  template <typename T>
  void Later(const char* name, const T& field) {
    (*this)(name, field);
  }
  Json json;
};

template <typename Record>
Json Described(const Record& record) {
  JsonFields fields;
  store::Describe(fields, record);
  return fields.json;
}

template <typename Record>
Json AllDescribed(const std::vector<Record>& records) {
  Json all = Json::array();
  for (const Record& record : records) all.push_back(Described(record));
  return all;
}

Json ToJson(const verdict::Judgement& judgement) {
  return {{"verdict", verdict::NameOf(judgement.verdict)},
          {"outcomes", AllDescribed(judgement.outcomes)},
          {"findings", AllDescribed(judgement.findings)}};
}

Json ToJson(const collective::Operation& operation) {
  const collective::CollectiveInfo& info = collective::InfoOf(operation.collective);
  Json json = {{"collective", info.name},
               {"type", collective::NameOf(operation.type)},
               {"count", operation.count},
               {"blocking", operation.blocking == collective::Blocking::kBlocking}};
  if (info.reduces) json["reduction"] = collective::NameOf(operation.reduction);
  if (info.rooted) json["root"] = operation.root;
  return json;
}

Json ToJson(const store::Part& part) {
  return {{"part", part.name},
          LOCKSTEP_PAIRS(part, units, over, median, interval_low, interval_high)};
}

Json ToJson(const store::OptionEffect& effect, const store::Run& run) {
  Json json = Described(effect);
  json["case"] = run.cases[static_cast<std::size_t>(effect.case_index)].name;
  json["baseline"] = run.cases[static_cast<std::size_t>(effect.baseline)].name;
  return json;
}

Json ToJson(const store::CaseRecord& record) {
  Json settings = Json::object();
  for (const auto& [name, value] : record.settings) settings[name] = value;
  Json parts = Json::array();
  for (const store::Part& part : record.parts) parts.push_back(ToJson(part));
  Json operations = Json::array();
  for (const collective::Operation& operation : record.operations)
    operations.push_back(ToJson(operation));
  return {LOCKSTEP_PAIRS(record, name, backend, device, ranks, repetition),
          {"operations", operations},
          LOCKSTEP_PAIRS(record, in_place, bytes, model, bucket, bucket_cap_mb),
          {"settings", settings},
          {"summary", Described(record.summary)},
          {"arrivals", record.arrivals ? Described(*record.arrivals) : Json()},
          {"parts", parts},
          {"wrong", AllDescribed(record.wrong)},
          {"judgement", ToJson(record.judgement)}};
}

Json ToJson(const store::Run& run) {
  Json environment = Json::object();
  for (const auto& [fact, value] : run.environment) environment[fact] = value;
  Json floors = Json::object();
  for (const auto& [name, value] : run.floors) floors[name] = value;
  JsonFields fields;
  fields("schema_version", run.schema_version);
  store::DescribeRoot(fields, run);
  fields.json.update({{"recommendation", run.recommendation},  // of schema 1, too
                      {"cases", run.cases.size()},
                      LOCKSTEP_PAIRS(run, seed, plan_hash),
                      {"floors", floors},
                      {"clocks", AllDescribed(run.clocks)},
                      {"environment", environment},
                      {"judgement", ToJson(run.judgement)}});
  return fields.json;
}

// nlohmann::json writes null for what is not a number; bytes that are no UTF-8 are replaced.
std::string LineOf(const char* record, const std::string& run_id, const Json& fields) {
  Json json = {{"record", record}, {"run", run_id}};
  json.update(fields);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string FormatJsonLines(const store::Run& run) {
  std::string text;
  for (const store::CaseRecord& record : run.cases) text += LineOf("case", run.id, ToJson(record));
  for (const store::OptionEffect& effect : run.effects)
    text += LineOf("effect", run.id, ToJson(effect, run));
  if (run.links) {
    for (const store::LinkPair& pair : run.links->pairs)
      text += LineOf("link", run.id, Described(pair));
    const Json together = {{"sent_gbps", run.links->all_at_once_gbps}};
    text += LineOf("all_at_once", run.id, together);
  }
  return text + LineOf("run", run.id, ToJson(run));
}

}  // namespace lockstep::results::report
