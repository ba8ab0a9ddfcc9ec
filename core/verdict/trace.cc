// Chooses rows and columns around the operation in question, and prints them as a table of equal
// widths.
#include "core/verdict/trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "core/collective/collective.h"
#include "core/collective/data_type.h"
#include "core/journal/purpose.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict {
namespace {

struct Place {
  int group = 0;
  std::uint64_t sequence = 0;
};

// The group on whose communicator these ranks call the operation.
int GroupOf(const Situation& situation, const Finding& finding) {
  for (const RankView& view : situation.views) {
    const bool named = std::ranges::find(finding.culprits, view.rank()) != finding.culprits.end();
    if (!named) continue;
    const Track* track = view.TrackOf(*finding.operation);
    if (track != nullptr && track->group != kUnknownGroup) return track->group;
  }
  return finding.operation->communicator == kWorld ? 0 : kUnknownGroup;
}

std::optional<Place> PlaceOf(const Situation& situation, const Judgement& judgement) {
  for (const Finding& finding : judgement.findings) {
    if (!finding.operation) continue;
    const int group = GroupOf(situation, finding);
    if (group != kUnknownGroup) return Place{group, finding.operation->sequence};
  }
  std::optional<Place> earliest, making;
  for (const RankView& view : situation.views) {
    const JournalEvent* const failed = FailedCallOf(view);
    const JournalEvent* const call = failed != nullptr ? failed : view.open;
    const int group = call == nullptr ? kUnknownGroup : view.TrackOf(*call)->group;
    if (group == kUnknownGroup) continue;
    std::optional<Place>& place = journal::IsSplit(call->kind) ? making : earliest;
    if (&place == &earliest && group != 0) continue;
    if (!place || call->sequence < place->sequence) place = Place{group, call->sequence};
  }
  return making ? making : earliest;
}

// Culprits first, because somebody will want to see them; then the others from the lowest.
std::vector<std::size_t> ColumnsOf(const Situation& situation, const Judgement& judgement,
                                   const Group& group, std::size_t most) {
  std::unordered_set<int> culprits;
  if (!judgement.findings.empty()) {
    const auto& named = judgement.findings.front().culprits;
    // Half of the columns: a culprit alone shows nothing.
    const std::size_t shown = std::max<std::size_t>(1, most / 2);
    culprits.insert(named.begin(),
                    named.begin() + static_cast<std::ptrdiff_t>(std::min(named.size(), shown)));
  }
  std::vector<std::size_t> columns;
  for (const std::size_t i : group.members) {
    if (culprits.count(situation.views[i].rank()) != 0) columns.push_back(i);
  }
  for (const std::size_t i : group.members) {
    if (columns.size() >= most) break;
    if (culprits.count(situation.views[i].rank()) == 0) columns.push_back(i);
  }
  std::ranges::sort(columns);
  return columns;
}

std::string CallOf(const JournalEvent& event) {
  if (journal::IsSplit(event.kind)) {
    return fmt::format("split: communicator {}{}", event.count, event.root < 0 ? " (left)" : "");
  }
  const collective::CollectiveInfo& info = collective::InfoOf(event.collective);
  std::string call(info.name);
  if (event.collective != Collective::kBarrier) {
    call += fmt::format(" {}[{}]", collective::NameOf(event.type), event.count);
  }
  if (info.reduces && event.reduction != collective::Reduction::kSum) {
    call += fmt::format(" {}", collective::NameOf(event.reduction));
  }
  if (info.rooted) call += fmt::format(" root {}", event.root);
  Annotation annotation = journal::UnpackAnnotation(event.value);
  annotation.iteration = -1;
  const std::string purpose = journal::Describe(annotation);
  // "barrier  barrier" says it twice.
  if (!purpose.empty() && purpose != call) call += "  " + purpose;
  return call;
}

CallState StateOf(const RankView& view, const JournalEvent& event) {
  if (event.kind == EventKind::kSplitEnd && event.value != 0) return CallState::kError;
  if (event.kind == EventKind::kEnd || event.kind == EventKind::kSplitEnd) return CallState::kDone;
  if (event.kind == EventKind::kError) return CallState::kError;
  if (view.evidence->state == ProcessState::kExited ||
      view.evidence->state == ProcessState::kSignalled) {
    return CallState::kEnded;
  }
  if (view.evidence->state == ProcessState::kStopped) return CallState::kStopped;
  return event.kind == EventKind::kEnqueue ? CallState::kQueued : CallState::kWaits;
}

TraceCell Instead(const RankView& view) {
  if (IsGone(view)) return {fmt::format("({})", FateOf(view)), CallState::kNone};
  return {fmt::format("({})", WhereOf(view)), CallState::kNone};
}

// The newest event of every shown operation of one rank, by row.
void FillColumn(Trace& trace, const RankView& view, int group, std::size_t column) {
  const Track* track = view.On(group);
  std::vector<const JournalEvent*> newest(trace.rows.size());
  if (track != nullptr) {
    const auto& events = view.evidence->journal.events;
    const std::uint64_t first = trace.rows.front().sequence;
    for (std::size_t i = track->begin; i < events.size(); ++i) {
      const JournalEvent& event = events[i];
      if (!IsOn(*track, event)) continue;
      if (event.sequence < first || event.sequence - first >= newest.size()) continue;
      newest[event.sequence - first] = &event;
    }
  }
  for (std::size_t row = 0; row < newest.size(); ++row) {
    TraceCell& cell = trace.rows[row].cells[column];
    if (newest[row] != nullptr) {
      cell = {CallOf(*newest[row]), StateOf(view, *newest[row])};
    } else if (trace.rows[row].in_question) {
      cell = Instead(view);
    }
  }
}

bool IsEmpty(const TraceRow& row) {
  return std::ranges::all_of(row.cells, [](const TraceCell& cell) { return cell.call.empty(); });
}

std::string Trimmed(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line + "\n";
}

}  // namespace

std::string_view NameOf(CallState state) {
  static constexpr std::array<std::string_view, 7> kNames = {"",      "done",  "WAITS",  "queued",
                                                             "ERROR", "ended", "stopped"};
  return kNames[static_cast<std::size_t>(state)];
}

Trace TraceOf(const std::vector<RankEvidence>& evidence, const Setting& setting,
              const Judgement& judgement, const TraceLimits& limits) {
  const Situation situation = SituationOf(evidence, setting);
  const std::optional<Place> place = PlaceOf(situation, judgement);
  Trace trace;
  if (!place) return trace;
  const Group& group = situation.GroupAt(place->group);
  trace.communicator = group.name;
  const std::vector<std::size_t> columns = ColumnsOf(situation, judgement, group, limits.columns);
  for (const std::size_t i : columns) trace.ranks.push_back(situation.views[i].rank());
  const std::uint64_t before = std::min<std::uint64_t>(place->sequence, limits.rows_before);
  for (std::uint64_t n = 0; n <= before + limits.rows_after; ++n) {
    const std::uint64_t sequence = place->sequence - before + n;
    trace.rows.push_back(
        {sequence, sequence == place->sequence, std::vector<TraceCell>(columns.size())});
  }
  for (std::size_t column = 0; column < columns.size(); ++column) {
    FillColumn(trace, situation.views[columns[column]], place->group, column);
  }
  std::erase_if(trace.rows, IsEmpty);
  return trace;
}

std::string FormatTrace(const Trace& trace) {
  constexpr std::size_t kMostWidth = 56;
  if (trace.rows.empty()) return "";
  std::vector<std::size_t> widths(trace.ranks.size(), 10);
  for (const TraceRow& row : trace.rows) {
    for (std::size_t c = 0; c < widths.size(); ++c) {
      widths[c] = std::min(kMostWidth, std::max(widths[c], row.cells[c].call.size()));
    }
  }
  std::string line = fmt::format("{:>7}", "seq");
  for (std::size_t c = 0; c < widths.size(); ++c) {
    line += fmt::format("  {:{}}", fmt::format("rank {}", trace.ranks[c]), widths[c] + 9);
  }
  std::string text = Trimmed(line);
  for (const TraceRow& row : trace.rows) {
    line = fmt::format("{}{:>6}", row.in_question ? '>' : ' ', row.sequence);
    for (std::size_t c = 0; c < widths.size(); ++c) {
      std::string call = row.cells[c].call;
      if (call.size() > widths[c]) call = call.substr(0, widths[c] - 4) + " …";
      line += fmt::format("  {:{}}  {:7}", call, widths[c], NameOf(row.cells[c].state));
    }
    text += Trimmed(line);
  }
  return text;
}

}  // namespace lockstep::verdict
