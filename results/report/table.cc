// The console report, put together from headline, tables, findings and legend. The legend explains
// only what the tables show. Long names lose their common beginning, which stands above the table
// once.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/units.h"
#include "results/report/figures.h"
#include "results/report/findings.h"
#include "results/report/grid.h"
#include "results/report/links.h"
#include "results/report/report.h"
#include "results/report/steps.h"
#include "results/report/trials.h"

namespace lockstep::results::report {
namespace {

// Beyond this width the common beginning of the names goes to a line of its own.
constexpr std::size_t kWide = 120;

constexpr const char* kLinkLegend =
    "\nMedians over rounds. GB/s: 1e9 bytes a second, until the receiver's answer came. *: slow in "
    "both\npasses. Pairs within a host are not judged, unless they are GPUs.\n";

std::string MaxText(const store::Summary& summary) {
  if (!std::isfinite(summary.max_ns) || summary.max_rank < 0) return DurationText(summary.max_ns);
  return fmt::format("{} ({})", DurationText(summary.max_ns), summary.max_rank);
}

// Figures of a case without a single whole sample are not zero but absent.
std::vector<std::string> RowOf(const store::CaseRecord& record, std::size_t skip) {
  const store::Summary& s = record.summary;
  std::vector<std::string> row = {record.name.substr(skip),
                                  FormatBytes(record.bytes),
                                  TypeText(record),
                                  DurationText(s.median_ns),
                                  PrecisionText(s),
                                  DurationText(s.p99_ns),
                                  MaxText(s),
                                  BandwidthText(s.algorithm_gbps),
                                  BandwidthText(s.bus_gbps),
                                  s.floor_ns > 0 ? PercentText(s.percent_of_limit) : "-"};
  if (s.iterations == 0) std::fill(row.begin() + 3, row.end(), "-");
  row.push_back(fmt::format("{}/{}", s.iterations, s.rounds));
  row.push_back(s.checked_elements > 0 || s.wrong_elements > 0 ? std::to_string(s.wrong_elements)
                                                               : "-");
  row.push_back(OutcomeText(record));
  return row;
}

Grid MakeGrid(const store::Run& run, std::size_t skip) {
  using enum Grid::Align;
  Grid grid;
  grid.AddColumn("case", kLeft);
  grid.AddColumn("bytes", kRight);
  grid.AddColumn("type", kLeft);
  for (const char* title : {"median", "+-%", "p99", "max (rank)", "algbw", "busbw", "% limit",
                            "iter/rounds", "wrong"}) {
    grid.AddColumn(title, kRight);
  }
  grid.AddColumn("outcome", kLeft);
  for (const store::CaseRecord& record : run.cases) {
    if (record.parts.empty()) grid.AddRow(RowOf(record, skip));
  }
  return grid;
}

// Characters that all names begin with, up to and with a slash.
std::size_t CommonPrefix(const store::Run& run) {
  const std::string& first = run.cases.front().name;
  std::size_t common = run.cases.size() < 2 ? 0 : first.size();
  for (const store::CaseRecord& record : run.cases) {
    while (record.name.compare(0, common, first, 0, common) != 0) --common;
  }
  const std::size_t slash = common == 0 ? std::string::npos : first.rfind('/', common - 1);
  return slash == std::string::npos ? 0 : slash + 1;
}

bool AnyCollectives(const store::Run& run) {
  return std::any_of(run.cases.begin(), run.cases.end(),
                     [](const store::CaseRecord& record) { return record.parts.empty(); });
}

// Collectives have bandwidths, steps have parts: a table each.
std::string Tables(const store::Run& run, std::size_t skip) {
  std::string text = AnyCollectives(run) ? MakeGrid(run, skip).Format() : "";
  if (const Grid steps = StepGrid(run, skip); !steps.empty()) {
    text += (text.empty() ? "" : "\n") + steps.Format();
  }
  return text;
}

std::string Cases(const store::Run& run) {
  if (run.cases.empty()) return "No case was run.\n";
  const std::size_t width =
      std::max(AnyCollectives(run) ? MakeGrid(run, 0).width() : 0, StepGrid(run, 0).width());
  const std::size_t skip = width <= kWide ? 0 : CommonPrefix(run);
  if (skip == 0) return Tables(run, 0);
  return fmt::format("All names begin with {}\n{}", run.cases.front().name.substr(0, skip),
                     Tables(run, skip));
}

// The factors of the collectives that the run has, with their formulas.
// Source: NVIDIA/nccl-tests doc/PERFORMANCE.md.
std::string BusFactors(const store::Run& run) {
  std::set<std::string> factors;
  for (const store::CaseRecord& record : run.cases) {
    if (!record.parts.empty()) continue;
    for (const collective::Operation& operation : record.operations) {
      const std::string name(collective::NameOf(operation.collective));
      switch (operation.collective) {
        case collective::Collective::kAllReduce:
          factors.insert("2(n-1)/n (" + name + ")");
          break;
        case collective::Collective::kAllGather:
        case collective::Collective::kReduceScatter:
          factors.insert("(n-1)/n (" + name + ")");
          break;
        case collective::Collective::kBarrier:
          break;
        default:
          factors.insert("1 (" + name + ")");
      }
    }
  }
  std::string text;
  for (const std::string& factor : factors) text += (text.empty() ? "" : ", ") + factor;
  return text;
}

std::string Legend(const store::Run& run) {
  std::string text =
      "\nmedian +-%: of the slowest rank's time in each iteration, with half its 95 % confidence "
      "interval\n"
      "precise: the rounds agree to --precision; +-% adds what the machine drifts (--drift)\n";
  if (const std::string factors = BusFactors(run); !factors.empty()) {
    text += "algbw = bytes / median in GB/s (1e9 bytes); busbw = algbw x f for n ranks, f = " +
            factors + "\n";
  }
  text += StepLegend(run);
  if (!AnyCollectives(run)) return text;
  text +=
      "% limit = 100 x floor / median; floor: the least time that this host's measured rates "
      "allow for the case\n";
  return text;
}

std::string Floors(const store::Run& run) {
  if (run.floors.empty()) return "";
  std::string text = "Floors and clock, measured in this run:";
  std::size_t column = text.size();
  for (const auto& [name, value] : run.floors) {
    const std::string item =
        fmt::format(" {} {:.4g}{}", name, value, &name == &run.floors.back().first ? "" : ",");
    if (column + item.size() > 100) {
      text += "\n ";
      column = 1;
    }
    text += item;
    column += item.size();
  }
  return text + "\n";
}

std::string About(const store::Run& run) {
  std::set<std::string> on;
  for (const store::CaseRecord& record : run.cases) {
    on.insert(fmt::format("{} ranks, {} on {}", record.ranks, record.backend, record.device));
  }
  std::string text =
      fmt::format("{} {}, {}, {:.1f} s", run.name, run.id, run.started_at, run.duration_seconds);
  for (const std::string& item : on) text += "; " + item;
  return text + fmt::format("; exit code {}\n\n", run.exit_code);
}

}  // namespace

std::string FormatTable(const store::Run& run) {
  if (const std::string trials = FormatTrials(run.cases); !trials.empty()) {
    std::string text = Headline(run) + "\n" + About(run) + trials;
    for (const store::CaseRecord& record : run.cases) {
      if (record.judgement.verdict != verdict::Verdict::kPass) text += FormatTrialDetails(record);
    }
    return text + FormatClocks(run);
  }
  if (run.links) {
    return Headline(run) + "\n" + About(run) + FormatLinks(run) + FormatFindings(run) + kLinkLegend;
  }
  std::string text = Headline(run) + "\n" + About(run) + Cases(run) + FormatSkew(run) +
                     FormatEffects(run) + FormatFindings(run);
  if (!run.cases.empty()) text += Legend(run);
  return text + Floors(run) + FormatClocks(run);
}

std::string FormatLine(const store::Run& run) {
  return fmt::format("{}  {}  {:3} cases  {}", run.started_at, run.name, run.cases.size(),
                     Headline(run));
}

}  // namespace lockstep::results::report
