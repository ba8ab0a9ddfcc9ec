// Books of samples, one a case, repetition and rank, filled from outboxes. Stamps are those of each
// rank's counter until PutOnOneClock.
#include "bench/measure/sample_book.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/measure/visit_figure.h"

namespace lockstep::bench::measure {

std::int64_t CaseBook::complete_rows() const {
  std::size_t rows = ranks.front().entry.size();
  for (const RankRows& rank : ranks) rows = std::min(rows, rank.entry.size());
  return static_cast<std::int64_t>(rows);
}

double CaseBook::so_far_ns() const {
  return round_medians_ns.empty() ? first_visit_ns : stats::Median(round_medians_ns);
}

double CaseBook::DurationNs(std::int64_t row, const std::vector<double>& ns_per_tick) const {
  const std::size_t k = static_cast<std::size_t>(row);
  double longest_ns = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const Ticks ticks = ranks[rank].exit[k] - ranks[rank].entry[k];
    longest_ns = std::max(longest_ns, static_cast<double>(ticks) * ns_per_tick[rank]);
  }
  return longest_ns;
}

SampleBook::SampleBook(int ranks, std::size_t cases, TickScale scale)
    : ranks_(ranks),
      cases_(cases),
      scale_(scale),
      ns_per_tick_(static_cast<std::size_t>(ranks), scale.ns_per_tick) {
  BeginRepetition();
}

void SampleBook::BeginRepetition() {
  books_.emplace_back(cases_);
  for (CaseBook& book : books_.back()) book.ranks.resize(static_cast<std::size_t>(ranks_));
}

bool SampleBook::empty() const {
  return std::ranges::all_of(books_, [](const std::vector<CaseBook>& cases) {
    return std::ranges::all_of(cases, [](const CaseBook& book) {
      return std::ranges::all_of(book.ranks, [](const auto& rank) { return rank.entry.empty(); });
    });
  });
}

const CaseBook& SampleBook::Book(int repetition, std::size_t case_index) const {
  return books_[static_cast<std::size_t>(repetition)][case_index];
}

void SampleBook::AddSample(int rank, const SampleRecord& record) {
  CaseBook::RankRows& rows = Current(record.case_index).ranks[static_cast<std::size_t>(rank)];
  rows.entry.push_back(record.entry);
  rows.exit.push_back(record.exit);
  rows.round.push_back(static_cast<std::int32_t>(record.round));
}

namespace {

// Ranks on three hosts have clocks of which two can be off, in opposite directions.
double ErrorBetweenTwo(const coordinator::HostClocks& clocks, const CaseBook& book,
                       std::size_t row) {
  double most = 0;
  double second = 0;
  for (const coordinator::HostClocks::Host& host : clocks.hosts()) {
    const auto rank = static_cast<std::size_t>(host.ranks.front());
    const double error = clocks.ErrorNs(host.ranks.front(), book.ranks[rank].entry[row]);
    second = std::max(second, std::min(most, error));
    most = std::max(most, error);
  }
  return most + second;
}

void PutOnClock(const coordinator::HostClocks& clocks, CaseBook& book) {
  for (std::size_t row = 0; row < static_cast<std::size_t>(book.complete_rows()); ++row) {
    book.clock_error_ns = std::max(book.clock_error_ns, ErrorBetweenTwo(clocks, book, row));
  }
  for (std::size_t rank = 0; rank < book.ranks.size(); ++rank) {
    const auto ours = [&](Ticks ticks) { return clocks.ToOurs(static_cast<int>(rank), ticks); };
    std::ranges::transform(book.ranks[rank].entry, book.ranks[rank].entry.begin(), ours);
    std::ranges::transform(book.ranks[rank].exit, book.ranks[rank].exit.begin(), ours);
  }
}

}  // namespace

void SampleBook::PutOnOneClock(const coordinator::HostClocks& clocks) {
  if (clocks.hosts().size() < 2) return;
  for (std::vector<CaseBook>& cases : books_) {
    for (CaseBook& book : cases) PutOnClock(clocks, book);
  }
  ns_per_tick_.assign(ns_per_tick_.size(), scale_.ns_per_tick);
}

void SampleBook::Add(int rank, std::string_view bytes) {
  RecordHandlers handlers;
  handlers.sample = [&](const SampleRecord& record) { AddSample(rank, record); };
  handlers.batch = [&](const BatchRecord& record) {
    CaseBook& book = Current(record.case_index);
    book.checked += record.checked;
    book.wrong_elements += record.wrong;
    book.last_wall_ns =
        static_cast<double>(record.wall_ticks) * ns_per_tick_[static_cast<std::size_t>(rank)];
    book.iteration_wall_ns = book.last_wall_ns / std::max(record.iterations, 1u);
    const bool first = book.least_wall_ns == 0;
    book.least_wall_ns =
        first ? book.last_wall_ns : std::min(book.least_wall_ns, book.last_wall_ns);
  };
  handlers.parts = [&](const PartsRecord& record) {
    auto& parts = Current(record.case_index).ranks[static_cast<std::size_t>(rank)].parts;
    parts.insert(parts.end(), record.values.begin(), record.values.end());
  };
  handlers.wrong = [&](const WrongRecord& record) {
    CaseBook& book = Current(record.case_index);
    const std::size_t rows = book.ranks[static_cast<std::size_t>(rank)].entry.size();
    const std::int64_t row = record.warmup ? -1 : static_cast<std::int64_t>(rows) - 1;
    book.wrong.push_back(
        {rank, row, record.operation, record.element, record.expected, record.got});
  };
  ForEachRecord(bytes, handlers);
}

void SampleBook::CloseRound(const plan::Plan& plan) {
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    CaseBook& book = Current(i);
    const std::int64_t rows = book.complete_rows();
    if (rows == book.closed_rows) continue;
    std::vector<double> durations;
    for (std::int64_t row = book.closed_rows; row < rows; ++row) {
      durations.push_back(book.DurationNs(row, ns_per_tick_));
    }
    const double figure_ns = FigureOfVisit(CountsByMean(plan.cases[i]), durations);
    if (book.first_visit_ns == 0) {
      book.first_visit_ns = std::max(figure_ns, 1.0);
    } else {
      book.round_medians_ns.push_back(figure_ns);
      book.round_crossings.push_back(crossing_);
    }
    book.closed_rows = rows;
  }
}

std::vector<results::store::Part> PartsOf(const CaseBook& book, const plan::PlannedCase& planned) {
  std::size_t rows = 0;
  for (const CaseBook::RankRows& rank : book.ranks) rows = std::max(rows, rank.entry.size());
  std::vector<results::store::Part> parts;
  for (std::size_t i = 0; i < planned.parts.size(); ++i) {
    const plan::PartInfo& info = planned.parts[i];
    results::store::Part& part = parts.emplace_back(
        results::store::Part{info.name, info.units, std::string(plan::NameOf(info.over)), {}});
    for (std::size_t row = 0; row < rows; ++row) {
      for (const CaseBook::RankRows& rank : book.ranks) {
        const std::size_t k = row * planned.parts.size() + i;
        part.values.push_back(k < rank.parts.size() ? rank.parts[k]
                                                    : std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  return parts;
}

results::store::Samples SamplesOf(const CaseBook& book, const TickScale& scale) {
  results::store::Samples samples;
  samples.ranks = static_cast<int>(book.ranks.size());
  std::size_t rows = 0;
  for (const CaseBook::RankRows& rank : book.ranks) rows = std::max(rows, rank.entry.size());
  for (std::size_t row = 0; row < rows; ++row) {
    std::int32_t round = 0;
    for (const CaseBook::RankRows& rank : book.ranks) {
      const bool present = row < rank.entry.size();
      samples.entry_ns.push_back(present ? std::llround(scale.ToNs(rank.entry[row]))
                                         : results::store::Samples::kNoTime);
      samples.exit_ns.push_back(present ? std::llround(scale.ToNs(rank.exit[row]))
                                        : results::store::Samples::kNoTime);
      if (present) round = rank.round[row];
    }
    samples.round.push_back(round);
  }
  return samples;
}

}  // namespace lockstep::bench::measure
