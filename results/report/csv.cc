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
#include "results/store/schema.h"

namespace lockstep::results::report {
namespace {

using Record = store::CaseRecord;
using Cells = std::vector<std::pair<std::string, std::string>>;  // title and text

// A row for each record, and a head of the same titles.
template <typename Row>
std::string Table(const std::vector<Row>& rows, const std::function<Cells(const Row&)>& cells_of) {
  const auto line = [](const Cells& cells, std::string Cells::value_type::*part) {
    std::vector<std::string> words;
    for (const auto& cell : cells) words.push_back(cell.*part);
    return CsvLine(words);
  };
  std::string text = line(cells_of(Row()), &Cells::value_type::first);
  for (const Row& row : rows) text += line(cells_of(row), &Cells::value_type::second);
  return text;
}

// The fields of a record under the names that the result file has for them. What is no number, or
// no number from 0 on where there are no others, is empty.
class CsvFields {
 public:
  // `measured`: false where there is no figure yet.
  CsvFields(bool measured, Cells& cells) : measured_(measured), cells_(cells) {}
  template <typename T>
  void operator()(const char* name, const T& field, const char* = "") {
    bool known = true;
    if constexpr (std::is_same_v<T, double>) known = measured_ && std::isfinite(field);
    if constexpr (std::is_same_v<T, int>) known = field >= 0;
    cells_.emplace_back(name, known ? fmt::format("{}", field) : "");
  }
  template <typename T>
  void Later(const char* name, const T& field) {
    (*this)(name, field);
  }

 private:
  bool measured_;
  Cells& cells_;
};

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

Cells IdentityOf(const store::Run& run, const Record& r) {
  const std::string type = TypeText(r);
  const auto reduction = [](const collective::Operation& o) {
    return collective::InfoOf(o.collective).reduces ? collective::NameOf(o.reduction) : "";
  };
  return {
      {"run", run.id},
      {"program", run.name},
      {"lockstep_version", run.lockstep.number},
      {"case", r.name},
      {"repetition", fmt::format("{}", r.repetition)},
      {"backend", r.backend},
      {"device", r.device},
      {"ranks", fmt::format("{}", r.ranks)},
      {"collective", NamesIn(r, [](const auto& o) { return collective::NameOf(o.collective); })},
      {"type", type == "-" ? "" : type},
      {"reduction", NamesIn(r, reduction)},
      {"in_place", r.in_place ? "true" : "false"},
      {"bytes", fmt::format("{}", r.bytes)},
      {"model", r.model},
      {"bucket", r.bucket < 0 ? "" : fmt::format("{}", r.bucket)}};
}

void AddFigures(const Record& r, Cells& cells) {
  cells.emplace_back("verdict", verdict::NameOf(r.judgement.verdict));
  cells.emplace_back("stopped_by", r.summary.stopped_by);
  CsvFields fields(r.summary.iterations > 0, cells);
  store::Describe(fields, r.summary);
  cells.pop_back();  // stopped_by again
}

// Those that any case has, in order of first appearance.
struct SettingsAndParts {
  std::vector<std::string> settings, parts;
};

SettingsAndParts ColumnsOf(const store::Run& run) {
  SettingsAndParts columns;
  const auto add = [](const std::string& name, std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Record& record : run.cases) {
    for (const auto& [name, value] : record.settings) add(name, columns.settings);
    for (const store::Part& part : record.parts) add(part.name, columns.parts);
  }
  return columns;
}

void AddColumns(const SettingsAndParts& columns, const Record& r, Cells& cells) {
  for (const std::string& name : columns.settings) {
    cells.emplace_back("setting:" + name, ValueOf(r.settings, name));
  }
  CsvFields fields(r.summary.iterations > 0, cells);
  for (const std::string& name : columns.parts) {
    const auto part = std::ranges::find(r.parts, name, &store::Part::name);
    fields(("part:" + name).c_str(), part == r.parts.end() ? std::nan("") : part->median);
  }
}

}  // namespace

std::string FormatCsv(const store::Run& run) {
  if (run.links) {
    return Table<store::LinkPair>(run.links->pairs, [&](const store::LinkPair& pair) {
      Cells cells = {{"run", run.id}, {"lockstep_version", run.lockstep.number}};
      CsvFields fields(true, cells);
      store::Describe(fields, pair);
      return cells;
    });
  }
  const SettingsAndParts columns = ColumnsOf(run);
  return Table<Record>(run.cases, [&](const Record& record) {
    Cells cells = IdentityOf(run, record);
    AddFigures(record, cells);
    AddColumns(columns, record, cells);
    return cells;
  });
}

}  // namespace lockstep::results::report
