// The events that a judge saw are a part of those in the file. A run keeps the newest 4096 of a
// rank, a judge looks at fewer, and a worker may go on. So a record says which of them were judged.
// A judge can be given one event beyond the journal: the exit of a rank whose program was over.
// `left` stands for it.
#include "results/store/evidence_records.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "core/verdict/device_position.h"

namespace lockstep::results::store {
namespace {

using Histories = std::map<int, const RankHistory*>;  // by rank

Histories HistoriesOf(const Run& run, int lifetime) {
  Histories histories;
  for (const RankHistory& history : run.history) {
    if (history.lifetime == lifetime) histories[history.rank] = &history;
  }
  return histories;
}

const RankHistory* HistoryOf(const Histories& histories, int rank) {
  const auto found = histories.find(rank);
  return found == histories.end() ? nullptr : found->second;
}

bool Holds(const RankHistory* history, const journal::JournalEvent& event) {
  return history != nullptr && std::ranges::any_of(history->events, [&](const auto& one) {
           return one.index == event.index && one.kind == event.kind;
         });
}

// None where the history lacks an event.
std::optional<EvidenceRecord> RecordOf(const JudgedLifetime& judged,
                                       const verdict::RankEvidence& rank,
                                       const RankHistory* history) {
  EvidenceRecord record{judged.case_index, judged.lifetime, judged.deadline_seconds, rank};
  std::vector<journal::JournalEvent> events = std::exchange(record.known.journal.events, {});
  if (!events.empty() && events.back().kind == journal::EventKind::kExit &&
      !Holds(history, events.back())) {
    record.left = true;
    events.pop_back();
  }
  if (!events.empty()) {
    if (!Holds(history, events.front()) || !Holds(history, events.back())) return std::nullopt;
    record.first_event = events.front().index;
    record.last_event = events.back().index;
  }
  const std::string device = verdict::DescribeDevicePosition(rank.journal, rank.device);
  if (!device.empty()) record.known.gpu = rank.gpu.empty() ? device : device + "; " + rank.gpu;
  record.known.device = {};
  record.known.gpu_bus.clear();
  for (verdict::TcpSocket& socket : record.known.sockets) {
    socket = {.local = socket.local,
              .remote = socket.remote,
              .written = socket.written,
              .received = socket.received,
              .unread = socket.unread,
              .retransmits = socket.retransmits,
              .closed = socket.closed};
  }
  return record;
}

verdict::RankEvidence EvidenceOf(const EvidenceRecord& record, const RankHistory* history) {
  verdict::RankEvidence rank = record.known;
  std::vector<journal::JournalEvent>& events = rank.journal.events;
  for (std::size_t i = 0; history != nullptr && i < history->events.size(); ++i) {
    const journal::JournalEvent& event = history->events[i];
    if (event.index >= record.first_event && event.index <= record.last_event) {
      events.push_back(event);
    }
  }
  if (record.left) {
    journal::JournalEvent exit = events.empty() ? journal::JournalEvent{} : events.back();
    exit.index += events.empty() ? 0 : 1;
    exit.kind = journal::EventKind::kExit;
    exit.value = 0;
    events.push_back(exit);
  }
  return rank;
}

}  // namespace

void AddEvidence(const JudgedLifetime& judged, const std::vector<verdict::RankEvidence>& evidence,
                 Run& run) {
  const Histories histories = HistoriesOf(run, judged.lifetime);
  std::vector<EvidenceRecord> records;
  for (const verdict::RankEvidence& rank : evidence) {
    const std::optional<EvidenceRecord> record =
        RecordOf(judged, rank, HistoryOf(histories, rank.rank));
    if (!record) return;
    records.push_back(*record);
  }
  run.evidence.insert(run.evidence.end(), records.begin(), records.end());
}

std::vector<verdict::RankEvidence> EvidenceOf(const Run& run, int lifetime) {
  const Histories histories = HistoriesOf(run, lifetime);
  std::vector<verdict::RankEvidence> evidence;
  for (const EvidenceRecord& record : run.evidence) {
    if (record.lifetime != lifetime) continue;
    evidence.push_back(EvidenceOf(record, HistoryOf(histories, record.known.rank)));
  }
  return evidence;
}

}  // namespace lockstep::results::store
