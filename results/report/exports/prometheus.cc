// One table of metrics, written in Prometheus' text format and in OpenMetrics, which differ in a
// few words. Samples of a family stand together, as both require. What was not measured has no
// sample.
#include <fmt/core.h>

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/report/exports/exports.h"
#include "results/report/exports/text.h"

namespace lockstep::results::report::exports {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : Utf8(text)) {
    if (c == '\n')
      escaped += "\\n";
    else if (c == '\\' || c == '"')
      escaped += std::string("\\") + c;
    else
      escaped += c;
  }
  return escaped;
}

// One metric family: all its samples stand together, as both formats require.
class Family {
 public:
  // `units`: the last words of the name, or "". All are gauges: a run is over.
  Family(std::string name, std::string units, std::string help)
      : name_(std::move(name)), units_(std::move(units)), help_(std::move(help)) {}

  // What is not a number was not measured: there is no sample of it.
  void Add(const Labels& labels, double value) {
    if (!std::isfinite(value)) return;
    std::string text;
    for (const auto& [label, content] : labels) {
      text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", label, Escaped(content));
    }
    samples_ += fmt::format("{}{}{}{} {}\n", name_, text.empty() ? "" : "{", text,
                            text.empty() ? "" : "}", value);
  }

  std::string Format(bool open_metrics) const {
    if (samples_.empty()) return "";
    std::string head = fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name_, help_);
    if (open_metrics && !units_.empty()) head += fmt::format("# UNIT {} {}\n", name_, units_);
    return head + samples_;
  }

 private:
  std::string name_;
  std::string units_;
  std::string help_;
  std::string samples_;
};

Labels LabelsOf(const store::Run& run, const store::CaseRecord& record) {
  Labels labels = {{"program", run.name},
                   {"case", record.name},
                   {"backend", record.backend},
                   {"ranks", std::to_string(record.ranks)}};
  if (!record.operations.empty()) {
    const collective::Operation& first = record.operations.front();
    labels.emplace_back("operation", collective::InfoOf(first.collective).name);
    labels.emplace_back("type", collective::NameOf(first.type));
  }
  if (!record.model.empty()) labels.emplace_back("model", record.model);
  return labels;
}

// A figure of a case: a member of its summary, times a factor.
struct CaseMetric {
  const char* name;
  const char* units;
  const char* help;
  double store::Summary::*value;
  double factor = 1e-9;
};
constexpr CaseMetric kFigures[] = {
    {"median_seconds", "seconds", "Median over iterations of the slowest rank's time.",
     &store::Summary::median_ns},
    {"median_low_seconds", "seconds", "Lower end of the median's 95 % confidence interval.",
     &store::Summary::interval_low_ns},
    {"median_high_seconds", "seconds", "Upper end of the median's 95 % confidence interval.",
     &store::Summary::interval_high_ns},
    {"min_seconds", "seconds", "Shortest iteration.", &store::Summary::min_ns},
    {"p99_seconds", "seconds", "99th percentile, where the samples support it.",
     &store::Summary::p99_ns},
    {"max_seconds", "seconds", "Longest iteration.", &store::Summary::max_ns},
    {"floor_seconds", "seconds", "Least time that this host's floors allow.",
     &store::Summary::floor_ns},
    {"algorithm_bytes_per_second", "bytes_per_second", "Bytes over median.",
     &store::Summary::algorithm_gbps, 1e9},
    {"bus_bytes_per_second", "bytes_per_second",
     "Bytes over median times the factor of nccl-tests.", &store::Summary::bus_gbps, 1e9},
};

std::string FormatCases(const store::Run& run, bool open_metrics) {
  std::string text;
  const auto add = [&](const char* name, const char* units, const char* help, auto value) {
    Family family(fmt::format("lockstep_case_{}", name), units, help);
    for (const store::CaseRecord& record : run.cases) {
      family.Add(LabelsOf(run, record), static_cast<double>(value(record)));
    }
    text += family.Format(open_metrics);
  };
  const auto if_measured = [](const store::CaseRecord& record, double value) {
    return record.summary.iterations > 0 ? value : std::nan("");
  };
  for (const CaseMetric& metric : kFigures) {
    add(metric.name, metric.units, metric.help, [&](const store::CaseRecord& record) {
      return if_measured(record, metric.factor * record.summary.*metric.value);
    });
  }
  add("limit_ratio", "ratio", "Floor over median: 1 is this host's limit.",
      [&](const auto& r) { return if_measured(r, r.summary.percent_of_limit / 100); });
  add("message_bytes", "bytes", "Bytes of all operations of one iteration.",
      [](const auto& r) { return r.bytes; });
  add("iterations", "", "Samples taken.", [](const auto& r) { return r.summary.iterations; });
  add("checked_elements", "", "Elements compared with the exact result.",
      [](const auto& r) { return r.summary.checked_elements; });
  add("wrong_elements", "", "Elements that differed from the exact result.",
      [](const auto& r) { return r.summary.wrong_elements; });
  return text;
}

// A family a kind of verdict, with the value 1 at the one that was given: sums count them.
std::string FormatVerdicts(const store::Run& run, bool open_metrics) {
  Family launch("lockstep_run_verdict", "", "1 at the verdict of the run, 0 at the others.");
  Family cases("lockstep_cases", "", "How many cases ended with this verdict.");
  Family each("lockstep_case_verdict", "", "1 at the verdict of the case, 0 at the others.");
  for (const verdict::Verdict verdict :
       {verdict::Verdict::kPass, verdict::Verdict::kFail, verdict::Verdict::kUnknown}) {
    const std::string name(verdict::NameOf(verdict));
    int count = 0;
    for (const store::CaseRecord& record : run.cases) count += record.judgement.verdict == verdict;
    launch.Add({{"program", run.name}, {"verdict", name}}, run.verdict == verdict);
    cases.Add({{"program", run.name}, {"verdict", name}}, count);
    for (const store::CaseRecord& record : run.cases) {
      Labels labels = LabelsOf(run, record);
      labels.emplace_back("verdict", name);
      each.Add(labels, record.judgement.verdict == verdict);
    }
  }
  return launch.Format(open_metrics) + cases.Format(open_metrics) + each.Format(open_metrics);
}

std::string FormatFound(const store::Run& run, bool open_metrics) {
  std::map<std::pair<std::string, bool>, int> causes;
  const auto count = [&](const verdict::Judgement& judgement) {
    for (const verdict::Finding& finding : judgement.findings)
      ++causes[{std::string(finding.cause.name()), finding.proved}];
  };
  for (const store::CaseRecord& record : run.cases) count(record.judgement);
  if (run.cases.empty()) count(run.judgement);
  Family findings("lockstep_findings", "", "Findings of all cases, by cause.");
  for (const auto& [cause, times] : causes) {
    findings.Add({{"program", run.name},
                  {"cause", cause.first},
                  {"proved", cause.second ? "true" : "false"}},
                 times);
  }
  Family outcomes("lockstep_rank_outcome", "", "1 at what became of the rank in the launch.");
  for (const verdict::RankOutcome& o : run.judgement.outcomes) {
    outcomes.Add({{"program", run.name},
                  {"rank", std::to_string(o.rank)},
                  {"outcome", std::string(verdict::NameOf(o.outcome))}},
                 1);
  }
  return findings.Format(open_metrics) + outcomes.Format(open_metrics);
}

std::string FormatParts(const store::Run& run, bool open_metrics) {
  Family seconds("lockstep_case_part_seconds", "seconds",
                 "Median over iterations of a part of the case.");
  Family others("lockstep_case_part", "", "Median of a part that is no time, in its own units.");
  for (const store::CaseRecord& record : run.cases) {
    for (const store::Part& part : record.parts) {
      Labels labels = LabelsOf(run, record);
      const bool time = part.units == "ns";
      labels.emplace_back("part", time ? part.name.substr(0, part.name.rfind("_ns")) : part.name);
      if (time)
        seconds.Add(labels, part.median * 1e-9);
      else
        others.Add(labels, part.median);
    }
  }
  return seconds.Format(open_metrics) + others.Format(open_metrics);
}

// "copy_gbps_alone" becomes lockstep_floor_copy_alone_bytes_per_second.
std::string FormatFloors(const store::Run& run, bool open_metrics) {
  std::string text;
  for (const auto& [floor, value] : run.floors) {
    std::string name = floor;
    std::string units;
    double factor = 1;
    if (const std::size_t at = name.find("_gbps"); at != std::string::npos) {
      units = "bytes_per_second";
      name.erase(at, 5);
      factor = 1e9;
    } else if (name.ends_with("_ns")) {
      units = "seconds";
      name.resize(name.size() - 3);
      factor = 1e-9;
    }
    Family family(fmt::format("lockstep_floor_{}{}{}", name, units.empty() ? "" : "_", units),
                  units, "What this host can do at best, measured in the run.");
    family.Add({{"program", run.name}}, factor * value);
    text += family.Format(open_metrics);
  }
  return text;
}

std::string FormatRun(const store::Run& run, bool open_metrics) {
  const Labels program = {{"program", run.name}};
  // OpenMetrics' own type `info` would need another name than Prometheus' text format.
  Family info("lockstep_run_identity", "", "Always 1: which run this is.");
  info.Add({{"program", run.name},
            {"run", run.id},
            {"started_at", run.started_at},
            {"lockstep", store::LockstepOf(run)},
            {"plan", run.plan_hash}},
           1);
  Family machine("lockstep_environment", "", "Always 1: a fact of machine or software.");
  for (const auto& [fact, value] : run.environment) {
    if (!fact.starts_with("host/") && !fact.starts_with("software/")) continue;
    machine.Add({{"program", run.name}, {"fact", fact}, {"value", value}}, 1);
  }
  Family duration("lockstep_run_duration_seconds", "seconds", "From start to the result file.");
  duration.Add(program, run.duration_seconds);
  Family code("lockstep_run_exit_code", "", "0 pass, 1 failed, 3 inconclusive.");
  code.Add(program, run.exit_code);
  Family complete("lockstep_run_complete", "", "0: saved on the way out.");
  complete.Add(program, run.complete);
  std::string text;
  for (const Family& family : {info, machine, duration, code, complete}) {
    text += family.Format(open_metrics);
  }
  return text;
}

std::string Format(const store::Run& run, bool open_metrics) {
  return FormatRun(run, open_metrics) + FormatVerdicts(run, open_metrics) +
         FormatFound(run, open_metrics) + FormatCases(run, open_metrics) +
         FormatParts(run, open_metrics) + FormatFloors(run, open_metrics);
}

}  // namespace

std::string FormatPrometheus(const store::Run& run) { return Format(run, false); }
std::string FormatOpenMetrics(const store::Run& run) { return Format(run, true) + "# EOF\n"; }

}  // namespace lockstep::results::report::exports
