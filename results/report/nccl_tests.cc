// The column layout of NVIDIA/nccl-tests (src/common.cu, its README's example), so that scripts
// that parse its output parse ours.
#include <fmt/core.h>

#include <cmath>
#include <vector>

#include "core/base/wrap.h"
#include "results/report/figures.h"
#include "results/report/report.h"

namespace lockstep::results::report {
namespace {

// A line: a case out of place, and its twin in place.
struct Line {
  const store::CaseRecord* out_of_place = nullptr;
  const store::CaseRecord* in_place = nullptr;
  const store::CaseRecord& any() const {
    return out_of_place != nullptr ? *out_of_place : *in_place;
  }
};

bool AreTwins(const store::CaseRecord& a, const store::CaseRecord& b) {
  return a.operations == b.operations && a.backend == b.backend && a.ranks == b.ranks &&
         a.repetition == b.repetition && a.model == b.model && a.bucket == b.bucket &&
         a.bucket_cap_mb == b.bucket_cap_mb;
}

std::vector<Line> LinesOf(const store::Run& run) {
  std::vector<Line> lines;
  for (const store::CaseRecord& record : run.cases) {
    const store::CaseRecord* Line::*mine = record.in_place ? &Line::in_place : &Line::out_of_place;
    Line* free = nullptr;
    for (Line& line : lines) {
      if (line.*mine == nullptr && AreTwins(line.any(), record)) free = &line;
    }
    if (free == nullptr) free = &lines.emplace_back();
    free->*mine = &record;
  }
  return lines;
}

std::string Identity(const store::CaseRecord& record) {
  const collective::Operation first =
      record.operations.empty() ? collective::Operation() : record.operations.front();
  const collective::CollectiveInfo& info = collective::InfoOf(first.collective);
  std::int64_t count = 0;
  for (const collective::Operation& operation : record.operations) count += operation.count;
  return fmt::format(
      "{:12}  {:12}  {:>8}  {:>6}  {:6}", record.bytes, count, collective::NcclNameOf(first.type),
      info.reduces ? collective::NameOf(first.reduction) : "none", info.rooted ? first.root : -1);
}

// Microseconds in seven characters, as many digits as fit.
std::string TimeText(double us) {
  const int decimals = us >= 10000 ? 0 : us >= 1000 ? 1 : 2;
  return fmt::format("{:.{}f}", us, decimals);
}

std::string GbpsText(double gbps) {
  return std::isfinite(gbps) ? fmt::format("{:.2f}", gbps) : "N/A";
}

bool HasTime(const store::CaseRecord* record) {
  return record != nullptr && record->summary.iterations > 0 &&
         std::isfinite(record->summary.median_ns);
}

std::string Measured(const store::CaseRecord* record) {
  const auto cells = [](const auto& time, const auto& algorithm, const auto& bus,
                        const auto& wrong) {
    return fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}", time, algorithm, bus, wrong);
  };
  if (!HasTime(record)) return cells("N/A", "N/A", "N/A", "N/A");
  const store::Summary& s = record->summary;
  const bool checked = s.checked_elements > 0 || s.wrong_elements > 0;
  return cells(TimeText(s.median_ns / 1e3), GbpsText(s.algorithm_gbps), GbpsText(s.bus_gbps),
               checked ? std::to_string(s.wrong_elements) : "N/A");
}

std::string Header(const store::Run& run) {
  std::string text =
      fmt::format("# {} {}, {}: {}\n", run.name, run.id, run.started_at, Headline(run));
  text += "# time: median over iterations of the slowest rank's time; N/A: not measured\n#\n";
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:^31}  {:^31}\n", "", "", "", "", "",
                      "out-of-place", "in-place");
  const std::string titles =
      fmt::format("  {:>7}  {:>6}  {:>6} {:>6}", "time", "algbw", "busbw", "#wrong");
  const std::string units =
      fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}", "(us)", "(GB/s)", "(GB/s)", "");
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", "size", "count", "type",
                      "redop", "root", titles, titles);
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", "(B)", "(elements)", "", "",
                      "", units, units);
  return text;
}

std::string Footer(const store::Run& run) {
  std::int64_t wrong = 0, checked = 0, measured = 0;
  double bandwidth = 0;
  for (const store::CaseRecord& record : run.cases) {
    wrong += record.summary.wrong_elements;
    checked += record.summary.checked_elements;
    if (!HasTime(&record) || !std::isfinite(record.summary.bus_gbps)) continue;
    bandwidth += record.summary.bus_gbps;
    ++measured;
  }
  const std::string values = wrong > 0     ? fmt::format("{} FAILED", wrong)
                             : checked > 0 ? "0 OK"
                                           : "N/A (not checked)";
  const std::string average =
      measured > 0 ? fmt::format("{:.6g}", bandwidth / static_cast<double>(measured)) : "N/A";
  return fmt::format("# Out of bounds values : {}\n# Avg bus bandwidth    : {}\n#\n", values,
                     average);
}

}  // namespace

std::string FormatNcclTests(const store::Run& run) {
  std::string text = Header(run);
  for (const Line& line : LinesOf(run)) {
    const store::CaseRecord& record = line.any();
    if (!record.model.empty()) text += "# " + OneLine(record.name) + "\n";
    text += Identity(record) + Measured(line.out_of_place) + Measured(line.in_place) + "\n";
  }
  return text + Footer(run);
}

}  // namespace lockstep::results::report
