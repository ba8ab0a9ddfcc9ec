// A run as comma-separated values. The head is made of the same table as the rows, so that both
// have as many cells. Texts come from files: whatever needs quotes gets them.
#include "core/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "results/report/figures.h"
#include "results/report/report.h"

namespace lockstep::results::report {
namespace {

template <typename Row>
using Cells = std::vector<std::pair<std::string, std::function<std::string(const Row&)>>>;

std::string Number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string Number(std::int64_t value) { return fmt::format("{}", value); }

template <typename Row>
std::string Table(const Cells<Row>& cells, const std::vector<Row>& rows) {
  std::vector<std::string> words;
  for (const auto& [title, cell] : cells) words.push_back(title);
  std::string text = CsvLine(words);
  for (const Row& row : rows) {
    words.clear();
    for (const auto& [title, cell] : cells) words.push_back(cell(row));
    text += CsvLine(words);
  }
  return text;
}

// One name, or those of a sequence.
template <typename Name>
std::string NamesIn(const store::CaseRecord& record, const Name& name) {
  std::string text;
  std::set<std::string> seen;
  for (const collective::Operation& operation : record.operations) {
    const std::string one(name(operation));
    if (one.empty() || !seen.insert(one).second) continue;
    text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

using Record = store::CaseRecord;

void AddIdentity(const store::Run& run, Cells<Record>& cells) {
  cells.emplace_back("run", [&](const Record&) { return run.id; });
  cells.emplace_back("program", [&](const Record&) { return run.name; });
  cells.emplace_back("lockstep_version", [&](const Record&) { return run.lockstep.number; });
  cells.emplace_back("case", [](const Record& r) { return r.name; });
  cells.emplace_back("repetition",
                     [](const Record& r) { return Number(std::int64_t{r.repetition}); });
  cells.emplace_back("backend", [](const Record& r) { return r.backend; });
  cells.emplace_back("device", [](const Record& r) { return r.device; });
  cells.emplace_back("ranks", [](const Record& r) { return Number(std::int64_t{r.ranks}); });
  cells.emplace_back("collective", [](const Record& r) {
    return NamesIn(r, [](const auto& o) { return collective::NameOf(o.collective); });
  });
  cells.emplace_back("type", [](const Record& r) {
    const std::string text = TypeText(r);
    return text == "-" ? "" : text;
  });
  cells.emplace_back("reduction", [](const Record& r) {
    return NamesIn(r, [](const auto& o) {
      return collective::InfoOf(o.collective).reduces ? collective::NameOf(o.reduction) : "";
    });
  });
  cells.emplace_back("in_place", [](const Record& r) { return r.in_place ? "true" : "false"; });
  cells.emplace_back("bytes", [](const Record& r) { return Number(r.bytes); });
  cells.emplace_back("model", [](const Record& r) { return r.model; });
  cells.emplace_back(
      "bucket", [](const Record& r) { return r.bucket < 0 ? "" : Number(std::int64_t{r.bucket}); });
}

void AddFigures(Cells<Record>& cells) {
  using store::Summary;
  const auto count = [&](const char* title, std::int64_t Summary::*field) {
    cells.emplace_back(title, [field](const Record& r) { return Number(r.summary.*field); });
  };
  const auto figure = [&](const char* title, double Summary::*field) {
    cells.emplace_back(title, [field](const Record& r) {
      return r.summary.iterations > 0 ? Number(r.summary.*field) : "";
    });
  };
  cells.emplace_back(
      "verdict", [](const Record& r) { return std::string(verdict::NameOf(r.judgement.verdict)); });
  cells.emplace_back("stopped_by", [](const Record& r) { return r.summary.stopped_by; });
  count("iterations", &Summary::iterations);
  count("rounds", &Summary::rounds);
  figure("median_ns", &Summary::median_ns);
  figure("interval_low_ns", &Summary::interval_low_ns);
  figure("interval_high_ns", &Summary::interval_high_ns);
  figure("rounds_low_ns", &Summary::rounds_low_ns);
  figure("rounds_high_ns", &Summary::rounds_high_ns);
  figure("min_ns", &Summary::min_ns);
  figure("p99_ns", &Summary::p99_ns);
  figure("max_ns", &Summary::max_ns);
  cells.emplace_back("max_rank", [](const Record& r) {
    return r.summary.max_rank < 0 ? "" : Number(std::int64_t{r.summary.max_rank});
  });
  figure("rank_average_median_ns", &Summary::rank_average_median_ns);
  figure("algorithm_gbps", &Summary::algorithm_gbps);
  figure("bus_gbps", &Summary::bus_gbps);
  figure("floor_ns", &Summary::floor_ns);
  figure("percent_of_limit", &Summary::percent_of_limit);
  figure("limit_low", &Summary::limit_low);
  figure("limit_high", &Summary::limit_high);
  figure("line_least_ns", &Summary::line_least_ns);
  figure("line_most_ns", &Summary::line_most_ns);
  count("checked_elements", &Summary::checked_elements);
  count("wrong_elements", &Summary::wrong_elements);
}

// Those that any case has, in order of first appearance.
void AddSettingsAndParts(const store::Run& run, Cells<Record>& cells) {
  std::vector<std::string> settings, parts;
  const auto add = [](const std::string& name, std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Record& record : run.cases) {
    for (const auto& [name, value] : record.settings) add(name, settings);
    for (const store::Part& part : record.parts) add(part.name, parts);
  }
  for (const std::string& wanted : settings) {
    cells.emplace_back("setting:" + wanted,
                       [wanted](const Record& r) { return ValueOf(r.settings, wanted); });
  }
  for (const std::string& wanted : parts) {
    cells.emplace_back("part:" + wanted, [wanted](const Record& r) -> std::string {
      for (const store::Part& part : r.parts) {
        if (part.name == wanted && r.summary.iterations > 0) return Number(part.median);
      }
      return "";
    });
  }
}

std::string LinkTable(const store::Run& run) {
  using store::LinkPair;
  Cells<LinkPair> cells = {
      {"run", [&](const LinkPair&) { return run.id; }},
      {"lockstep_version", [&](const LinkPair&) { return run.lockstep.number; }},
      {"a", [](const LinkPair& p) { return Number(std::int64_t{p.a}); }},
      {"b", [](const LinkPair& p) { return Number(std::int64_t{p.b}); }},
      {"standing", [](const LinkPair& p) { return p.standing; }},
      {"rounds", [](const LinkPair& p) { return Number(std::int64_t{p.rounds}); }}};
  const auto figure = [&](const char* title, double LinkPair::*field) {
    cells.emplace_back(title, [field](const LinkPair& p) { return Number(p.*field); });
  };
  figure("latency_ns", &LinkPair::latency_ns);
  figure("latency_low_ns", &LinkPair::latency_low_ns);
  figure("latency_high_ns", &LinkPair::latency_high_ns);
  figure("forward_gbps", &LinkPair::forward_gbps);
  figure("back_gbps", &LinkPair::back_gbps);
  figure("retest_latency_ns", &LinkPair::retest_latency_ns);
  figure("retest_forward_gbps", &LinkPair::retest_forward_gbps);
  figure("retest_back_gbps", &LinkPair::retest_back_gbps);
  return Table(cells, run.links->pairs);
}

}  // namespace

std::string FormatCsv(const store::Run& run) {
  if (run.links) return LinkTable(run);
  Cells<Record> cells;
  AddIdentity(run, cells);
  AddFigures(cells);
  AddSettingsAndParts(run, cells);
  return Table(cells, run.cases);
}

}  // namespace lockstep::results::report
