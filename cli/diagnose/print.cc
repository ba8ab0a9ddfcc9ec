// Findings, outcomes and traces in the form that all sources of a diagnosis share: run files and
// dumps of PyTorch's Flight Recorder. Long lists of ranks are cut, and the rest is counted.
#include "cli/diagnose/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <utility>

#include "core/base/csv.h"
#include "core/base/named_members.h"
#include "results/report/findings.h"

namespace lockstep::cli::diagnose {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string FormatFirstLine(const verdict::Judgement& judgement) {
  if (judgement.findings.empty()) return "";
  return fmt::format("{}: {}\n", results::report::Shout(judgement.verdict),
                     judgement.findings.front().headline.text());
}

std::string FormatFinding(const verdict::Finding& finding, const std::string& indent,
                          std::string_view label) {
  constexpr std::size_t kShown = 8;
  std::string ranks =
      fmt::format("{}", fmt::join(finding.culprits | std::views::take(kShown), ","));
  if (finding.culprits.size() > kShown) ranks += ",…";
  std::string text = fmt::format("{}{}{} ({}{}{}): {}\n", indent, label, finding.cause.name(),
                                 finding.proved ? "proved" : "suspected",
                                 ranks.empty() ? "" : ", ranks ", ranks, finding.message);
  if (!finding.remedy.empty()) text += fmt::format("{}  -> {}\n", indent, finding.remedy);
  for (const verdict::Finding& general : finding.evidence) {
    const verdict::Finding alone{.cause = general.cause,
                                 .culprits = general.culprits,
                                 .proved = general.proved,
                                 .message = general.message,
                                 .remedy = ""};
    text += FormatFinding(alone, indent + "  ", "evidence: ");
  }
  return text;
}

std::string FormatOutcomes(const verdict::Judgement& judgement) {
  const std::ptrdiff_t finished = std::ranges::count(
      judgement.outcomes, verdict::Outcome::kFinished, &verdict::RankOutcome::outcome);
  return fmt::format("{}\n{} of {} ranks finished\n", results::report::FormatUnfinished(judgement),
                     finished, judgement.outcomes.size());
}

std::string CsvHead() {
  return CsvLine({"source", "case", "backend", "verdict", "cause", "certainty", "culprits",
                  "headline", "message", "remedy"});
}

std::string CsvRows(const std::string& source, const std::string& of, const std::string& backend,
                    const verdict::Judgement& judgement) {
  const std::string word(verdict::NameOf(judgement.verdict));
  if (judgement.findings.empty()) {
    return CsvLine({source, of, backend, word, "", "", "", "", "", ""});
  }
  std::string rows;
  for (const verdict::Finding& finding : judgement.findings) {
    rows += CsvLine({source, of, backend, word, std::string(finding.cause.name()),
                     finding.proved ? "proved" : "suspected",
                     fmt::format("{}", fmt::join(finding.culprits, " ")), finding.headline.text(),
                     finding.message, finding.remedy});
  }
  return rows;
}

verdict::Verdict Worse(verdict::Verdict a, verdict::Verdict b) {
  if (a == verdict::Verdict::kFail || b == verdict::Verdict::kFail) return verdict::Verdict::kFail;
  return a == verdict::Verdict::kUnknown ? a : b;
}

Json ToJson(const verdict::Finding& finding) {
  Json json = {{"cause", finding.cause.name()},
               {"culprits", finding.culprits},
               {"certainty", finding.proved ? "proved" : "suspected"},
               {"headline", finding.headline.text()},
               LOCKSTEP_PAIRS(finding, message, remedy)};
  if (finding.operation) {
    json["communicator"] = finding.operation->communicator;
    json["sequence"] = finding.operation->sequence;
  }
  if (!finding.evidence.empty()) json["evidence"] = ToJson(finding.evidence);
  return json;
}

Json ToJson(const verdict::RankOutcome& outcome) {
  return {{"rank", outcome.rank},
          {"outcome", verdict::NameOf(outcome.outcome)},
          LOCKSTEP_PAIRS(outcome, where, seconds_silent)};
}

Json ToJson(const verdict::Trace& trace) {
  Json rows = Json::array();
  for (const verdict::TraceRow& row : trace.rows) {
    Json cells = Json::array();
    for (const verdict::TraceCell& cell : row.cells) {
      cells.push_back({{"call", cell.call}, {"state", verdict::NameOf(cell.state)}});
    }
    rows.push_back({LOCKSTEP_PAIRS(row, sequence, in_question), {"cells", std::move(cells)}});
  }
  return {LOCKSTEP_PAIRS(trace, communicator, ranks), {"rows", std::move(rows)}};
}

}  // namespace lockstep::cli::diagnose
