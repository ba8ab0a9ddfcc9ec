#include <utility>

#include "core/base/wrap.h"
#include "results/report/figures.h"
#include "results/report/sections.h"

namespace lockstep::results::report {
namespace {

// Up to and with the last slash; "" without one.
std::string FolderOf(const std::string& name) { return name.substr(0, name.rfind('/') + 1); }

}  // namespace

std::size_t CommonPrefix(const std::vector<store::CaseRecord>& cases) {
  const std::string& first = cases.front().name;
  std::size_t common = cases.size() < 2 ? 0 : first.size();
  for (const store::CaseRecord& record : cases) {
    while (record.name.compare(0, common, first, 0, common) != 0) --common;
  }
  const std::size_t slash = common == 0 ? std::string::npos : first.rfind('/', common - 1);
  return slash == std::string::npos ? 0 : slash + 1;
}

bool GroupsWell(const std::vector<store::CaseRecord>& cases, std::size_t skip) {
  std::size_t headings = 0;
  std::string last;
  for (const store::CaseRecord& record : cases) {
    const std::string folder = FolderOf(record.name.substr(skip));
    headings += folder != last;
    last = folder;
  }
  return 3 * headings <= cases.size();
}

void CaseRows::Add(const std::string& name, std::vector<std::string> cells) {
  std::string label = OneLine(name.substr(style_.skip));
  if (style_.grouped) {
    const std::string folder = FolderOf(label);
    if (folder != heading_ && !folder.empty()) grid_.AddHeading(folder);
    heading_ = folder;
    if (!folder.empty()) label = "  " + label.substr(folder.size());
  }
  cells.insert(cells.begin(), std::move(label));
  grid_.AddRow(std::move(cells));
}

}  // namespace lockstep::results::report
