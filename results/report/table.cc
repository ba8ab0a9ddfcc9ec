// The console report, put together from headline, tables, findings and legend. Names become shorter
// where the table would be too wide for a terminal.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/units.h"
#include "core/base/wrap.h"
#include "results/report/figures.h"
#include "results/report/findings.h"
#include "results/report/grid.h"
#include "results/report/report.h"
#include "results/report/sections.h"
#include "results/report/trials.h"

namespace lockstep::results::report {
namespace {

// A table with all columns is wider than a terminal anyway.
constexpr std::size_t kWide = 120;

constexpr const char* kLinkLegend =
    "\nMedians over rounds. GB/s: 1e9 bytes a second, until the receiver's answer came.\n"
    "*: slow in both passes. Pairs within a host are not judged, unless they are GPUs.\n";

std::string MaxText(const store::Summary& summary, const TimeUnit& unit) {
  const std::string text = TimeText(summary.max_ns, unit);
  if (text == "-" || summary.max_rank < 0) return text;
  return fmt::format("{} ({})", text, summary.max_rank);
}

// A column of the table of collectives.
struct Column {
  const char* title;
  Grid::Align align;
  const char* unit;   // "time": the run's
  int at_a_glance;    // where few columns are shown: 0 never, 1 always, 2 and 3 while there is room
  bool needs_sample;  // figures of a case without a single whole sample are not zero but absent
  std::string (*cell)(const store::CaseRecord& record, const TimeUnit& unit);
};

using Record = store::CaseRecord;
using enum Grid::Align;

constexpr int kRoomForAll = 3;

constexpr Column kColumns[] = {
    {"bytes", kRight, "", 1, false,
     [](const Record& r, const TimeUnit&) { return FormatBytes(r.bytes); }},
    {"type", kLeft, "", false, false, [](const Record& r, const TimeUnit&) { return TypeText(r); }},
    {"median", kRight, "time", 1, true,
     [](const Record& r, const TimeUnit& unit) { return MedianText(r.summary, unit); }},
    {"+-", kRight, "%", 1, true,
     [](const Record& r, const TimeUnit&) { return PrecisionText(r.summary); }},
    {"p99", kRight, "time", 0, true,
     [](const Record& r, const TimeUnit& unit) { return TimeText(r.summary.p99_ns, unit); }},
    {"max (rank)", kRight, "time", 0, true,
     [](const Record& r, const TimeUnit& unit) { return MaxText(r.summary, unit); }},
    {"algbw", kRight, "GB/s", 0, true,
     [](const Record& r, const TimeUnit&) { return AlgorithmBandwidthText(r.summary); }},
    {"busbw", kRight, "GB/s", 2, true,
     [](const Record& r, const TimeUnit&) { return BusBandwidthText(r.summary); }},
    {"limit", kRight, "%", 1, true,
     [](const Record& r, const TimeUnit&) { return LimitText(r.summary); }},
    {"+-", kRight, "%", 3, true,
     [](const Record& r, const TimeUnit&) { return LimitPrecisionText(r.summary); }},
    {"line", kRight, "ns", 0, true,
     [](const Record& r, const TimeUnit&) { return LineText(r.summary); }},
    {"iter/rounds", kRight, "", 0, false,
     [](const Record& r, const TimeUnit&) {
       return fmt::format("{}/{}", r.summary.iterations, r.summary.rounds);
     }},
    {"wrong", kRight, "", 0, false,
     [](const Record& r, const TimeUnit&) { return WrongText(r.summary); }},
    {"measured", kLeft, "", 1, false,
     [](const Record& r, const TimeUnit&) { return MeasuredText(r.summary); }},
    {"outcome", kLeft, "", 1, false,
     [](const Record& r, const TimeUnit&) { return OutcomeText(r); }},
};

// `room`: the most of at_a_glance that is shown.
bool IsShown(const Column& column, Columns columns, int room) {
  return columns == Columns::kAll || (column.at_a_glance > 0 && column.at_a_glance <= room);
}

Grid CollectiveGrid(const store::Run& run, NameStyle names, Columns columns, int room) {
  const TimeUnit unit = TimeUnitOf(run);
  Grid grid;
  grid.AddColumn("case", kLeft);
  for (const Column& column : kColumns) {
    if (!IsShown(column, columns, room)) continue;
    const std::string text = column.unit;
    grid.AddColumn(column.title, column.align, text == "time" ? unit.name : text);
  }
  CaseRows rows(names, grid);
  for (const store::CaseRecord& record : run.cases) {
    if (!record.parts.empty() || IsUnmeasured(record)) continue;
    std::vector<std::string> cells;
    for (const Column& column : kColumns) {
      if (!IsShown(column, columns, room)) continue;
      const bool absent = column.needs_sample && record.summary.iterations == 0;
      cells.push_back(absent ? "-" : column.cell(record, unit));
    }
    rows.Add(record.name, std::move(cells));
  }
  return grid;
}

// Collectives have bandwidths, steps have parts: a table each.
std::vector<Grid> GridsOf(const store::Run& run, NameStyle names, Columns columns,
                          int room = kRoomForAll) {
  std::vector<Grid> grids;
  for (Grid grid : {CollectiveGrid(run, names, columns, room), StepGrid(run, names, columns)}) {
    if (!grid.empty()) grids.push_back(std::move(grid));
  }
  return grids;
}

std::size_t WidthOf(const store::Run& run, NameStyle names, Columns columns,
                    int room = kRoomForAll) {
  std::size_t width = 0;
  for (const Grid& grid : GridsOf(run, names, columns, room)) width = std::max(width, grid.width());
  return width;
}

// As little is done to names as lets the tables be read without a line that wraps.
NameStyle StyleOf(const store::Run& run, Columns columns) {
  const std::size_t most = columns == Columns::kFew ? kNarrow : kWide;
  NameStyle style;
  if (run.cases.empty()) return style;
  const Grid effects = EffectGrid(run, style);
  const std::size_t below = effects.empty() ? 0 : effects.width();
  if (std::max(WidthOf(run, style, columns), below) <= most) return style;
  style.skip = CommonPrefix(run.cases);
  if (columns == Columns::kAll || WidthOf(run, style, columns) <= most) return style;
  style.grouped = GroupsWell(run.cases, style.skip);
  return style;
}

// For the columns beside names of that style. Where few columns would not fit either, names have
// lines of their own, and all columns fit below them.
int RoomOf(const store::Run& run, NameStyle style, Columns columns) {
  for (int room = kRoomForAll; room > 0; --room) {
    if (WidthOf(run, style, columns, room) <= kNarrow) return room;
  }
  return kRoomForAll;
}

std::string Cases(const store::Run& run, NameStyle style, Columns columns) {
  if (run.cases.empty()) return "No case was run.\n";
  std::string text;
  if (style.skip > 0) {
    text = fmt::format("All names begin with {}\n",
                       OneLine(run.cases.front().name.substr(0, style.skip)));
  }
  bool first = true;
  for (const Grid& grid : GridsOf(run, style, columns, RoomOf(run, style, columns))) {
    text += (first ? "" : "\n") + grid.Format(columns == Columns::kFew ? kNarrow : Grid::kAny);
    first = false;
  }
  return text + UnmeasuredText(run);
}

// "2026-11-23 13:14:32 UTC" of "2026-11-23T13:14:32Z".
std::string TimeOfDay(std::string stamp) {
  std::ranges::replace(stamp, 'T', ' ');
  if (stamp.ends_with('Z')) stamp.replace(stamp.size() - 1, 1, " UTC");
  return stamp;
}

std::string About(const store::Run& run) {
  std::set<std::string> on;
  for (const store::CaseRecord& record : run.cases) {
    on.insert(fmt::format("{} ranks, {} on {}", record.ranks, record.backend, record.device));
  }
  std::string text =
      fmt::format("{}, {}, {:.1f} s", run.name, TimeOfDay(run.started_at), run.duration_seconds);
  for (const std::string& item : on) text += "; " + item;
  return text + fmt::format("; exit code {}\n\n", run.exit_code);
}

}  // namespace

std::string FormatHead(const store::Run& run) { return Headline(run) + "\n" + About(run); }

std::string FormatTable(const store::Run& run, Columns columns) {
  if (const std::string trials = FormatTrials(run.cases); !trials.empty()) {
    std::string text = FormatHead(run) + trials;
    for (const store::CaseRecord& record : run.cases) {
      if (record.judgement.verdict != verdict::Verdict::kPass) text += FormatTrialDetails(record);
    }
    return text + FormatClocks(run);
  }
  if (run.links) {
    return FormatHead(run) + FormatLinks(run) + FormatFindings(run) + kLinkLegend;
  }
  if (run.watched) return FormatHead(run) + FormatWaits(run) + FormatFindings(run);
  const NameStyle style = StyleOf(run, columns);
  std::string text = FormatHead(run) + Cases(run, style, columns) + FormatSkew(run) +
                     FormatEffects(run, style, columns) + FormatFindings(run);
  if (!run.cases.empty()) text += FormatLegend(run, columns);
  return text + FormatClocks(run);
}

std::string FormatLine(const store::Run& run) {
  return fmt::format("{}  {}  {:3} cases  {}", run.started_at, run.name, run.cases.size(),
                     Headline(run));
}

}  // namespace lockstep::results::report
