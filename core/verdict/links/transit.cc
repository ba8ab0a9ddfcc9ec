// A byte is on the way from the moment at which it is written to the moment at which it came. Looks
// tell neither, but for each a time after which and a time by which it was. So much is certain: it
// came after the last look that did not show it, and was written by the first look that did.
#include "core/verdict/links/transit.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace lockstep::verdict::links {
namespace {

// The first step by which `bytes` were there.
auto StepOf(const std::vector<ByteStep>& steps, std::uint64_t bytes) {
  return std::ranges::lower_bound(steps, bytes, {}, &ByteStep::bytes);
}

// So long the receiver's window was closed, from the step `since` to the first one after `until_s`.
double LimitedSeconds(const TcpSocket& writer, const ByteStep& since, double until_s) {
  const auto& steps = writer.written_steps;
  const auto after =
      std::ranges::find_if(steps, [&](const ByteStep& step) { return step.by_s >= until_s; });
  const double total_s = after == steps.end() ? writer.limited_s : after->limited_s;
  return std::max(0.0, total_s - since.limited_s);
}

// The sum at `bytes`, between two marks; none when it lies outside of them.
std::optional<double> SumAt(const std::vector<ByteMark>& marks, std::uint64_t bytes) {
  const auto mark = std::ranges::lower_bound(marks, bytes, {}, &ByteMark::bytes);
  if (mark == marks.end()) return std::nullopt;
  if (mark->bytes == bytes) return mark->byte_s;
  if (mark == marks.begin()) return std::nullopt;
  const ByteMark& before = *std::prev(mark);
  const double part =
      static_cast<double>(bytes - before.bytes) / static_cast<double>(mark->bytes - before.bytes);
  return before.byte_s + part * (mark->byte_s - before.byte_s);
}

// For so long a byte of these was to be held back, on average; 0 where the account does not reach.
double ToldSeconds(const RelayLedger& ledger, std::uint64_t from, std::uint64_t to) {
  const std::optional<double> begin = SumAt(ledger.told, from), end = SumAt(ledger.told, to);
  if (!begin || !end || to <= from) return 0;
  return (*end - *begin) / static_cast<double>(to - from);
}

const RelayLedger* LedgerOf(const TcpSocket& writer, const TcpSocket& reader) {
  if (writer.relayed) return &writer.out;
  return reader.relayed ? &reader.in : nullptr;
}

}  // namespace

std::vector<Passage> PassagesOf(const TcpSocket& writer, const TcpSocket& reader) {
  std::vector<Passage> passages;
  const RelayLedger* const ledger = LedgerOf(writer, reader);
  for (std::size_t i = 1; i < reader.received_steps.size(); ++i) {
    const ByteStep& came = reader.received_steps[i];
    const auto written = StepOf(writer.written_steps, came.bytes);
    // Of the first step it is not known which of its bytes were there before.
    if (written == writer.written_steps.end() || written == writer.written_steps.begin()) continue;
    Passage passage{.after_s = written->after_s - writer.clock_ahead_s,
                    .by_s = came.by_s - reader.clock_ahead_s};
    passage.most_s = passage.by_s - passage.after_s;
    passage.least_s =
        (came.after_s - reader.clock_ahead_s) - (written->by_s - writer.clock_ahead_s);
    passage.middle_s = (passage.least_s + passage.most_s) / 2;
    if (ledger != nullptr) {
      const std::uint64_t before =
          std::max(reader.received_steps[i - 1].bytes, std::prev(written)->bytes);
      passage.told_s = ToldSeconds(*ledger, before, came.bytes);
      passage.least_s = std::min(passage.least_s, *passage.told_s);
    } else {
      passage.least_s -= LimitedSeconds(writer, *written, passage.by_s + writer.clock_ahead_s);
    }
    passage.least_s = std::max(0.0, passage.least_s);
    passages.push_back(passage);
  }
  return passages;
}

WaitRecord::WaitRecord(const RankEvidence& rank) {
  for (const TcpSocket& socket : rank.sockets) {
    for (const auto* steps : {&socket.written_steps, &socket.received_steps}) {
      for (const ByteStep& step : *steps) totals_.emplace_back(step.by_s, step.waited_s);
    }
    last_s_ = std::max(last_s_, socket.waited_s);
  }
  std::ranges::sort(totals_);
}

std::optional<double> WaitRecord::Between(double from_s, double to_s) const {
  const auto later = [](double time_s, const auto& total) { return time_s < total.first; };
  const auto after_from = std::upper_bound(totals_.begin(), totals_.end(), from_s, later);
  if (after_from == totals_.begin()) return std::nullopt;
  // What a look tells of waits is of some moment in it.
  const auto after_to =
      std::upper_bound(after_from, totals_.end(), to_s + kLongestLookSeconds, later);
  const double end_s = after_to == totals_.end() ? last_s_ : after_to->second;
  const double waited_s = end_s - std::prev(after_from)->second;
  if (!std::isfinite(waited_s)) return std::nullopt;
  return std::max(0.0, waited_s);
}

}  // namespace lockstep::verdict::links
