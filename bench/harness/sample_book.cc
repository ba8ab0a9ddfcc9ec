#include "bench/harness/sample_book.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {

std::int64_t CaseBook::complete_rows() const {
  std::size_t rows = ranks.front().entry.size();
  for (const RankRows& rank : ranks) rows = std::min(rows, rank.entry.size());
  return static_cast<std::int64_t>(rows);
}

double CaseBook::DurationNs(std::int64_t row, double ns_per_tick) const {
  const std::size_t k = static_cast<std::size_t>(row);
  Ticks longest = 0;
  for (const RankRows& rank : ranks) longest = std::max(longest, rank.exit[k] - rank.entry[k]);
  return static_cast<double>(longest) * ns_per_tick;
}

SampleBook::SampleBook(int ranks, std::size_t cases, TickScale scale)
    : ranks_(ranks), cases_(cases), scale_(scale) {
  BeginRepetition();
}

void SampleBook::BeginRepetition() {
  books_.emplace_back(cases_);
  for (CaseBook& book : books_.back()) book.ranks.resize(static_cast<std::size_t>(ranks_));
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

void SampleBook::Add(int rank, std::string_view bytes) {
  RecordHandlers handlers;
  handlers.sample = [&](const SampleRecord& record) { AddSample(rank, record); };
  handlers.batch = [&](const BatchRecord& record) {
    CaseBook& book = Current(record.case_index);
    book.checked += record.checked;
    book.wrong_elements += record.wrong;
    book.last_wall_ns = static_cast<double>(record.wall_ticks) * scale_.ns_per_tick;
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

void SampleBook::CloseRound() {
  for (CaseBook& book : books_.back()) {
    const std::int64_t rows = book.complete_rows();
    if (rows == book.closed_rows) continue;
    std::vector<double> durations;
    for (std::int64_t row = book.closed_rows; row < rows; ++row) {
      durations.push_back(book.DurationNs(row, scale_.ns_per_tick));
    }
    const double median_ns = Median(durations);
    if (book.first_visit_ns == 0) {
      book.first_visit_ns = std::max(median_ns, 1.0);
    } else {
      book.round_medians_ns.push_back(median_ns);
    }
    book.closed_rows = rows;
  }
}

std::vector<Part> PartsOf(const CaseBook& book, const PlannedCase& planned) {
  std::size_t rows = 0;
  for (const CaseBook::RankRows& rank : book.ranks) rows = std::max(rows, rank.entry.size());
  std::vector<Part> parts;
  for (std::size_t i = 0; i < planned.parts.size(); ++i) {
    const PartInfo& info = planned.parts[i];
    Part& part =
        parts.emplace_back(Part{info.name, info.units, std::string(NameOf(info.over)), {}});
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

Samples SamplesOf(const CaseBook& book, const TickScale& scale) {
  Samples samples;
  samples.ranks = static_cast<int>(book.ranks.size());
  std::size_t rows = 0;
  for (const CaseBook::RankRows& rank : book.ranks) rows = std::max(rows, rank.entry.size());
  for (std::size_t row = 0; row < rows; ++row) {
    std::int32_t round = 0;
    for (const CaseBook::RankRows& rank : book.ranks) {
      const bool present = row < rank.entry.size();
      samples.entry_ns.push_back(present ? std::llround(scale.ToNs(rank.entry[row]))
                                         : Samples::kNoTime);
      samples.exit_ns.push_back(present ? std::llround(scale.ToNs(rank.exit[row]))
                                        : Samples::kNoTime);
      if (present) round = rank.round[row];
    }
    samples.round.push_back(round);
  }
  return samples;
}

}  // namespace lockstep
