// A run as JUnit, for CI systems. The launch is a test of its own, because it can fail although
// every case passed. An unknown verdict is an error, never a pass.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "results/report/exports/exports.h"
#include "results/report/exports/sample_times.h"
#include "results/report/exports/text.h"
#include "results/report/report.h"

namespace lockstep::results::report::exports {
namespace {

std::string Details(const verdict::Judgement& judgement, const store::CaseRecord* record) {
  std::string text;
  for (const verdict::Finding& finding : judgement.findings) {
    text += fmt::format("{} ({}, ranks {}): {}\n", finding.cause.name(),
                        finding.proved ? "proved" : "suspected", fmt::join(finding.culprits, ","),
                        finding.message);
    if (!finding.remedy.empty()) text += "  -> " + finding.remedy + "\n";
  }
  for (const verdict::RankOutcome& o : judgement.outcomes) {
    if (o.outcome == verdict::Outcome::kFinished) continue;
    text += fmt::format("rank {}: {}, exit code {}, signal {}, at {} {}\n", o.rank,
                        verdict::NameOf(o.outcome), o.exit_code, o.signal, o.where, o.evidence);
  }
  if (record == nullptr) return text;
  if (record->trial) text += record->trial->why + "\n";
  for (const store::WrongResult& w : record->wrong) {
    text += fmt::format("rank {}, iteration {}, operation {}, element {}: expected {}, got {}\n",
                        w.rank, w.iteration, w.operation, w.element, w.expected, w.got);
  }
  return text;
}

// The first finding, or what else is known.
std::string Message(const verdict::Judgement& judgement, const store::CaseRecord* record,
                    const store::Run& run) {
  if (record != nullptr && record->trial) return record->trial->why;
  if (!judgement.findings.empty()) return judgement.findings.front().headline.text();
  if (record == nullptr) return Headline(run);
  if (record->summary.wrong_elements > 0) {
    return fmt::format("{} wrong elements", record->summary.wrong_elements);
  }
  return "no verdict: " + record->summary.stopped_by;
}

// A test's element; `body` says what is wrong, "" when nothing is.
std::string Element(const std::string& suite, std::string_view name, double seconds,
                    const std::string& body) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\"",
                                       Xml(suite), Xml(name), std::max(seconds, 0.0));
  return body.empty() ? head + "/>\n" : head + ">\n" + body + "    </testcase>\n";
}

std::string Body(const store::Run& run, const verdict::Judgement& judgement,
                 const store::CaseRecord* record) {
  if (judgement.verdict == verdict::Verdict::kPass) return "";
  const char* const element = judgement.verdict == verdict::Verdict::kFail ? "failure" : "error";
  const std::string type =
      judgement.findings.empty() ? "" : std::string(judgement.findings.front().cause.name());
  return fmt::format("      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n", element,
                     Xml(type.empty() ? verdict::NameOf(judgement.verdict) : type),
                     Xml(Message(judgement, record, run)), Xml(Details(judgement, record)));
}

double SecondsOf(const store::CaseRecord& record) {
  return record.trial ? record.trial->seconds : MeasuredNs(record.samples) * 1e-9;
}

std::string Properties(const store::Run& run) {
  std::string text = "    <properties>\n";
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", Xml(name), Xml(value));
  };
  add("run", run.id);
  add("lockstep", store::LockstepOf(run));
  add("command_line", run.command_line);
  add("headline", Headline(run));
  for (const auto& [fact, value] : run.environment) add("environment/" + fact, value);
  return text + "    </properties>\n";
}

}  // namespace

std::string FormatJunit(const store::Run& run) {
  // The launch has a verdict of its own: it can fail although every case that ran passed.
  verdict::Judgement launch = run.judgement;
  launch.verdict = run.verdict;
  int failures = launch.verdict == verdict::Verdict::kFail;
  int errors = launch.verdict == verdict::Verdict::kUnknown;
  std::string tests = Element(run.name, "launch", run.duration_seconds, Body(run, launch, nullptr));
  for (const store::CaseRecord& record : run.cases) {
    failures += record.judgement.verdict == verdict::Verdict::kFail;
    errors += record.judgement.verdict == verdict::Verdict::kUnknown;
    const std::string suite = run.name + "." + (record.backend.empty() ? "none" : record.backend);
    tests += Element(suite, record.name, SecondsOf(record), Body(run, record.judgement, &record));
  }
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.9f}\"",
                  run.cases.size() + 1, failures, errors, run.duration_seconds);
  const std::string when = run.started_at.substr(0, run.started_at.find('Z'));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"lockstep\" {0}>\n"
      "  <testsuite name=\"{1}\" {0} skipped=\"0\" timestamp=\"{2}\">\n{3}{4}  "
      "</testsuite>\n</testsuites>\n",
      counts, Xml(run.name), Xml(when), Properties(run), tests);
}

}  // namespace lockstep::results::report::exports
