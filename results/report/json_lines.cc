// A run as JSON lines, an object a case. Its fields follow the records of results/store one for
// one. Bytes that are no UTF-8 are replaced, so every line parses.
#include <nlohmann/json.hpp>
#include <optional>

#include "results/report/report.h"

namespace lockstep::results::report {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const verdict::Judgement& judgement) {
  Json outcomes = Json::array();
  for (const verdict::RankOutcome& o : judgement.outcomes) {
    outcomes.push_back({{"rank", o.rank},
                        {"outcome", verdict::NameOf(o.outcome)},
                        {"exit_code", o.exit_code},
                        {"signal", o.signal},
                        {"where", o.where},
                        {"seconds_silent", o.seconds_silent},
                        {"evidence", o.evidence}});
  }
  Json findings = Json::array();
  for (const verdict::Finding& f : judgement.findings) {
    findings.push_back({{"cause", f.cause.name()},
                        {"culprits", f.culprits},
                        {"proved", f.proved},
                        {"headline", f.headline.text()},
                        {"message", f.message},
                        {"remedy", f.remedy}});
  }
  return {{"verdict", verdict::NameOf(judgement.verdict)},
          {"outcomes", outcomes},
          {"findings", findings}};
}

Json ToJson(const store::Summary& s) {
  return {{"iterations", s.iterations},
          {"rounds", s.rounds},
          {"median_ns", s.median_ns},
          {"interval_low_ns", s.interval_low_ns},
          {"interval_high_ns", s.interval_high_ns},
          {"min_ns", s.min_ns},
          {"p99_ns", s.p99_ns},
          {"max_ns", s.max_ns},
          {"max_rank", s.max_rank},
          {"rank_average_median_ns", s.rank_average_median_ns},
          {"algorithm_gbps", s.algorithm_gbps},
          {"bus_gbps", s.bus_gbps},
          {"floor_ns", s.floor_ns},
          {"percent_of_limit", s.percent_of_limit},
          {"checked_elements", s.checked_elements},
          {"wrong_elements", s.wrong_elements},
          {"stopped_by", s.stopped_by}};
}

Json ToJson(const std::optional<store::Arrivals>& arrivals) {
  if (!arrivals) return nullptr;
  return {{"skew_ns", arrivals->skew_ns},
          {"transfer_ns", arrivals->transfer_ns},
          {"clock_error_ns", arrivals->clock_error_ns},
          {"last_rank", arrivals->last_rank},
          {"last_share", arrivals->last_share}};
}

Json ToJson(const store::HostClock& clock) {
  return {{"host", clock.host},
          {"ranks", clock.ranks},
          {"state", clock.state},
          {"drift_ppm", clock.drift_ppm},
          {"drift_error_ppm", clock.drift_error_ppm},
          {"error_ns", clock.error_ns},
          {"day_offset_ns", clock.day_offset_ns},
          {"day_offset_error_ns", clock.day_offset_error_ns},
          {"shortest_round_trip_ns", clock.shortest_round_trip_ns},
          {"exchanges", clock.exchanges},
          {"probes", clock.probes}};
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
          {"units", part.units},
          {"over", part.over},
          {"median", part.median},
          {"interval_low", part.interval_low},
          {"interval_high", part.interval_high}};
}

Json ToJson(const store::OptionEffect& effect, const store::Run& run) {
  const auto name = [&](std::int32_t index) {
    return run.cases[static_cast<std::size_t>(index)].name;
  };
  return {{"option", effect.option},
          {"value", effect.value},
          {"baseline_value", effect.baseline_value},
          {"case", name(effect.case_index)},
          {"baseline", name(effect.baseline)},
          {"rounds", effect.rounds},
          {"ratio", effect.ratio},
          {"interval_low", effect.interval_low},
          {"interval_high", effect.interval_high}};
}

Json ToJson(const store::LinkPair& pair) {
  return {{"a", pair.a},
          {"b", pair.b},
          {"standing", pair.standing},
          {"rounds", pair.rounds},
          {"latency_ns", pair.latency_ns},
          {"latency_low_ns", pair.latency_low_ns},
          {"latency_high_ns", pair.latency_high_ns},
          {"forward_gbps", pair.forward_gbps},
          {"back_gbps", pair.back_gbps},
          {"retest_latency_ns", pair.retest_latency_ns},
          {"retest_forward_gbps", pair.retest_forward_gbps},
          {"retest_back_gbps", pair.retest_back_gbps}};
}

Json ToJson(const store::CaseRecord& record) {
  Json settings = Json::object();
  for (const auto& [name, value] : record.settings) settings[name] = value;
  Json parts = Json::array();
  for (const store::Part& part : record.parts) parts.push_back(ToJson(part));
  Json operations = Json::array();
  for (const collective::Operation& operation : record.operations)
    operations.push_back(ToJson(operation));
  Json wrong = Json::array();
  for (const store::WrongResult& w : record.wrong) {
    wrong.push_back({{"rank", w.rank},
                     {"iteration", w.iteration},
                     {"operation", w.operation},
                     {"element", w.element},
                     {"expected", w.expected},
                     {"got", w.got}});
  }
  return {{"name", record.name},
          {"backend", record.backend},
          {"device", record.device},
          {"ranks", record.ranks},
          {"repetition", record.repetition},
          {"operations", operations},
          {"in_place", record.in_place},
          {"bytes", record.bytes},
          {"model", record.model},
          {"bucket", record.bucket},
          {"bucket_cap_mb", record.bucket_cap_mb},
          {"settings", settings},
          {"summary", ToJson(record.summary)},
          {"arrivals", ToJson(record.arrivals)},
          {"parts", parts},
          {"wrong", wrong},
          {"judgement", ToJson(record.judgement)}};
}

Json ToJson(const store::Run& run) {
  Json environment = Json::object();
  for (const auto& [fact, value] : run.environment) environment[fact] = value;
  Json clocks = Json::array();
  for (const store::HostClock& clock : run.clocks) clocks.push_back(ToJson(clock));
  Json floors = Json::object();
  for (const auto& [name, value] : run.floors) floors[name] = value;
  return {{"schema_version", run.schema_version},
          {"lockstep_version", run.lockstep.number},
          {"lockstep_commit", run.lockstep.commit},
          {"lockstep_modified", run.lockstep.modified},
          {"id", run.id},
          {"name", run.name},
          {"started_at", run.started_at},
          {"duration_seconds", run.duration_seconds},
          {"command_line", run.command_line},
          {"exit_code", run.exit_code},
          {"verdict", verdict::NameOf(run.verdict)},
          {"summary_line", run.summary_line},
          {"recommendation", run.recommendation},
          {"complete", run.complete},
          {"cases", run.cases.size()},
          {"seed", run.seed},
          {"plan_hash", run.plan_hash},
          {"floors", floors},
          {"clocks", clocks},
          {"environment", environment},
          {"judgement", ToJson(run.judgement)}};
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
      text += LineOf("link", run.id, ToJson(pair));
    const Json together = {{"sent_gbps", run.links->all_at_once_gbps}};
    text += LineOf("all_at_once", run.id, together);
  }
  return text + LineOf("run", run.id, ToJson(run));
}

}  // namespace lockstep::results::report
