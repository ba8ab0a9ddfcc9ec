#include <fmt/format.h>

#include <limits>

#include "core/base/wrap.h"
#include "core/verdict/trace.h"
#include "results/report/report.h"
#include "results/report/trials.h"
#include "stress/harness/race_table.h"
#include "stress/harness/report.h"

namespace lockstep::stress::harness {
namespace {

std::string TraceText(const cases::StressCase& stress_case, const std::string& backend,
                      const cases::CaseResult& result) {
  const verdict::Setting setting =
      cases::SettingOf(stress_case.scenario, backend, std::numeric_limits<double>::infinity());
  return verdict::FormatTrace(verdict::TraceOf(result.facts.evidence, setting, result.judgement));
}

}  // namespace

std::string FormatStressTable(const StressOutcome& outcome, const results::store::Run& run) {
  std::string text = results::report::FormatHead(run) + results::report::FormatTrials(run.cases);
  text += FormatRaceTable(RaceRowsOf(outcome.cases, outcome.results),
                          TimesMeanSomething(outcome.backend, run.environment));
  if (!outcome.skipped.empty()) {
    text += "\n" + Wrap(fmt::format("not for this number of ranks, or this backend: {}",
                                    fmt::join(outcome.skipped, ", ")));
  }
  text += cases::FormatUnmet(outcome.unmet);
  for (std::size_t i = 0; i < outcome.results.size(); ++i) {
    if (outcome.results[i].verdict == verdict::Verdict::kPass) continue;
    text += results::report::FormatTrialDetails(run.cases[i]) +
            TraceText(outcome.cases[i], outcome.backend, outcome.results[i]);
  }
  return text;
}

}  // namespace lockstep::stress::harness
