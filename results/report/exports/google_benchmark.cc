// A run as Google Benchmark's JSON, for its compare.py. Repetitions of a case are one family. Facts
// that the run does not know are null.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "results/report/exports/exports.h"
#include "results/report/exports/sample_times.h"
#include "results/report/figures.h"

namespace lockstep::results::report::exports {
namespace {

using Json = nlohmann::ordered_json;

std::string FamilyOf(const store::CaseRecord& record) {
  return record.name.substr(0, record.name.find("/repetition:"));
}

Json Context(const store::Run& run) {
  const std::string cpus = ValueOf(run.environment, "host/cpus_online");
  const std::string host = ValueOf(run.environment, "ranks/0/host");
  const bool known = !cpus.empty() && cpus.find_first_not_of("0123456789") == std::string::npos;
  return {{"date", run.started_at},
          {"host_name", host.empty() ? "unknown" : host},
          {"executable", run.command_line.substr(0, run.command_line.find(' '))},
          {"num_cpus", known ? Json(std::strtol(cpus.c_str(), nullptr, 10)) : Json(nullptr)},
          {"mhz_per_cpu", nullptr},
          {"cpu_scaling_enabled", nullptr},
          {"caches", Json::array()},
          {"library_build_type", "release"},
          {"lockstep_version", store::LockstepOf(run)},
          {"lockstep_run", run.id},
          {"lockstep_verdict", run.summary_line},
          {"lockstep_cpu_time", "not measured: cpu_time repeats real_time"}};
}

void AddFigures(const store::CaseRecord& record, Json& json) {
  const std::vector<double> slowest = SlowestNs(record.samples);
  const double mean = MeasuredNs(record.samples) / static_cast<double>(slowest.size());
  json["iterations"] = slowest.size();
  json["real_time"] = mean;
  json["cpu_time"] = mean;
  json["time_unit"] = "ns";
  for (const auto& [name, value] : GoogleBenchmarkCounters(record.summary)) {
    if (std::isfinite(value)) json[name] = value;
  }
}

Json ToJson(const store::CaseRecord& record, std::size_t family, std::size_t repetitions) {
  Json json = {{"name", FamilyOf(record)},
               {"family_index", family},
               {"per_family_instance_index", 0},
               {"run_name", FamilyOf(record)},
               {"run_type", "iteration"},
               {"repetitions", repetitions},
               {"repetition_index", record.repetition},
               {"threads", 1}};
  if (!SlowestNs(record.samples).empty()) {
    AddFigures(record, json);
    return json;
  }
  const auto& findings = record.judgement.findings;
  json["error_occurred"] = true;
  json["error_message"] = findings.empty() ? record.summary.stopped_by : findings.front().message;
  return json;
}

}  // namespace

std::vector<std::pair<const char*, double>> GoogleBenchmarkCounters(const store::Summary& s) {
  return {{"median_ns", s.median_ns},
          {"p99_ns", s.p99_ns},
          {"max_ns", s.max_ns},
          {"algbw_GBps", s.algorithm_gbps},
          {"busbw_GBps", s.bus_gbps},
          {"percent_of_limit", s.percent_of_limit},
          {"wrong", static_cast<double>(s.wrong_elements)}};
}

std::string FormatGoogleBenchmark(const store::Run& run) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> families;  // index, repetitions
  for (const store::CaseRecord& record : run.cases) {
    ++families.emplace(FamilyOf(record), std::pair{families.size(), 0}).first->second.second;
  }
  Json benchmarks = Json::array();
  for (const store::CaseRecord& record : run.cases) {
    const auto& [family, repetitions] = families.at(FamilyOf(record));
    benchmarks.push_back(ToJson(record, family, repetitions));
  }
  const Json json = {{"context", Context(run)}, {"benchmarks", benchmarks}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::results::report::exports
